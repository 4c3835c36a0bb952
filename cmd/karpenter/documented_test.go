package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	shellBlock = regexp.MustCompile("(?m)^```sh\n((?s:.*?))^```$")
	inlineCode = regexp.MustCompile("`((?:bin/)?karpenter [a-z][^`]*)`")
	shellWord  = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s|;&<>()]+|[|;&<>()]`)
)

// documented are the commands of karpenter that a page writes, as words, after the name of the program.
func documented(page string) [][]string {
	var lines []string
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		lines = append(lines, strings.Split(strings.ReplaceAll(block[1], "\\\n", " "), "\n")...)
	}
	for _, code := range inlineCode.FindAllStringSubmatch(page, -1) {
		lines = append(lines, code[1])
	}
	var commands [][]string
	for _, line := range lines {
		line, _, _ = strings.Cut(line, " #")
		words := shellWord.FindAllString(line, -1)
		for i, word := range words {
			// Where a command may begin: not a resource or a release of that name.
			begins := i == 0 || strings.Contains("|;&(--", words[i-1]) || strings.HasSuffix(words[i-1], "$") || strings.Contains(words[i-1], "=")
			if begins && (word == "karpenter" || word == "bin/karpenter") {
				end := i + 1
				for end < len(words) && !strings.Contains("|;&<>()", words[end]) {
					end++
				}
				commands = append(commands, words[i+1:end])
			}
		}
	}
	return commands
}

// placeholder is what a page writes where readers have a value of their own: the complaint about it is none.
var placeholder = regexp.MustCompile(`invalid argument "[A-Z]+"`)

// unknown is what is wrong with a command: a verb, or a flag of it, that the program does not have.
func unknown(words []string) error {
	command, rest, err := newRootCommand().Find(words)
	if err != nil {
		return err
	}
	if command.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no verb %s", command.CommandPath(), rest[0])
	}
	for i := range rest {
		rest[i] = strings.Trim(rest[i], `'"`)
	}
	if err := command.ParseFlags(rest); err != nil && !placeholder.MatchString(err.Error()) {
		return err
	}
	return nil
}

// TestDocumentedCommands: every command of karpenter that the pages write has a verb and flags that there are, with values
// that those take.
func TestDocumentedCommands(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range append(pages, "../../README.md") {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range documented(string(text)) {
			n++
			if err := unknown(words); err != nil {
				t.Errorf("%s: karpenter %s: %v", name, strings.Join(words, " "), err)
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d commands were found", n)
	}
}

// TestDocumentedCommandsAreFound: in each form that pages write, and what there is not is found out.
func TestDocumentedCommandsAreFound(t *testing.T) {
	page := "say `karpenter buy`\n```sh\nA=1 karpenter top --nonce # why\nx | karpenter simulate \\\n  --disrup > f\n" +
		"$(bin/karpenter sandbox upp)\nkubectl exec deploy/karpenter -- karpenter doctor --fix\nhelm install karpenter charts/karpenter --set a=b\n```\n"
	commands := documented(page)
	if len(commands) != 5 {
		t.Errorf("found %q, want five commands", commands)
	}
	for _, words := range commands {
		if unknown(words) == nil {
			t.Errorf("karpenter %s is found right", strings.Join(words, " "))
		}
	}
}
