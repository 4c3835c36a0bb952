package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/charmbracelet/x/term"
	"sigs.k8s.io/yaml"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// These are the formats that --output selects.
const (
	formatText = "text"
	formatJSON = "json"
	formatYAML = "yaml"
	// formatWide is formatText with all columns and names, whatever the width of the terminal.
	formatWide = "wide"
	// formatName prints KIND/NAME lines, as kubectl does.
	formatName = "name"
	// formatMarkdown is for comments on pull requests, formatHTML for browsers.
	formatMarkdown = "markdown"
	formatHTML     = "html"
)

// documents are the formats of simulate and doctor, whose answers are about more than objects with names. formats are
// those of all other verbs.
var (
	documents = []string{formatText, formatWide, formatJSON, formatYAML}
	formats   = []string{formatText, formatWide, formatName, formatJSON, formatYAML}
)

// orList joins words: "text, json or yaml".
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// markdownOf returns the format, in full if it is the ending of Markdown files.
func markdownOf(format string) string {
	if format == "md" {
		return formatMarkdown
	}
	return format
}

// checkOutput returns an error unless the format is one of the known ones.
func checkOutput(format string, known []string) error {
	if slices.Contains(known, format) {
		return nil
	}
	return cli.UsageErrorf("--output is %q, want %s%s", format, orList(known), cli.DidYouMean(format, known))
}

// outcome is a result that can be printed in every format. Its JSON is that of encoding/json.
type outcome interface {
	Text() string
	Names() []string
}

// printOutcome writes a result in a format. Text is broken into lines that fit a terminal.
func printOutcome(o outcome, format string, out io.Writer) error {
	var text string
	switch format {
	case formatJSON:
		return writeJSON(o, out)
	case formatYAML:
		return asYAML(out, func(out io.Writer) error { return writeJSON(o, out) })
	case formatName:
		for _, name := range o.Names() {
			text += name + "\n"
		}
	default:
		text = wrapped(o.Text(), widthOf(format, out))
	}
	_, err := io.WriteString(out, text)
	return err
}

// widthOf returns the width that text has to fit, 0 for unlimited.
func widthOf(format string, out io.Writer) int {
	if format == formatWide {
		return 0
	}
	return columnsOf(out)
}

// wrapped breaks lines that are wider than the width. What continues a line is indented.
func wrapped(text string, width int) string { return table.Wrap(text, width, 2) }

// glue stands for a blank at which no line is broken. It occurs in no text.
const glue = "\x00"

// wrappedProse is wrapped for text with commands that are copied from it: no line is broken within a command, even if
// it is wider than the width. A command begins with the word kubectl or aws. It ends with its line, or with a word that
// ends in a semicolon, a comma, a closing parenthesis or a backquote. Prose that follows a command without one of these
// stays on its line.
func wrappedProse(text string, width int) string {
	if width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = unbroken(lines[i])
	}
	return strings.ReplaceAll(wrapped(strings.Join(lines, "\n"), width), glue, " ")
}

// unbroken replaces the blanks within the commands of a line.
func unbroken(line string) string {
	words := strings.SplitAfter(line, " ")
	command := false
	for i, word := range words {
		bare := strings.TrimRight(word, " .:")
		if command {
			command = strings.TrimRight(bare, ";,)`") == bare
		} else {
			name := strings.TrimLeft(bare, "(`")
			command = name == "kubectl" || name == "aws"
		}
		if command {
			words[i] = strings.ReplaceAll(word, " ", glue)
		}
	}
	return strings.Join(words, "")
}

func writeJSON(value any, out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(value)
}

// asYAML writes as YAML what the function writes as JSON.
func asYAML(out io.Writer, write func(io.Writer) error) error {
	var document bytes.Buffer
	if err := write(&document); err != nil {
		return err
	}
	text, err := yaml.JSONToYAML(document.Bytes())
	if err != nil {
		return fmt.Errorf("writing YAML: %w", err)
	}
	_, err = out.Write(text)
	return err
}

// columnsOf returns the width of a terminal in characters, and 0 for a file or a pipe.
func columnsOf(out io.Writer) int {
	if sized, ok := out.(interface{ Columns() int }); ok {
		return sized.Columns()
	}
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(file.Fd()) {
		return 0
	}
	width, _, err := term.GetSize(file.Fd())
	if err != nil {
		return 0
	}
	return width
}
