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

// documented returns the karpenter commands in a page, as words after the name of the program.
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
			// These are the places where a command may begin. A resource or a release of that name is not a command.
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

// placeholder matches the error about a placeholder in a page, in place of which readers use their own value. It is
// not a defect.
var placeholder = regexp.MustCompile(`invalid argument "[A-Z]+"`)

// unknown returns what is wrong with a command: a verb or a flag that the program does not have.
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

// TestDocumentedCommands checks that every karpenter command in the pages has an existing verb and existing flags,
// with values that those accept.
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
		t.Errorf("found only %d commands", n)
	}
}

// TestDocumentedCommandsAreFound checks that commands are found in each form that pages use, and that wrong commands
// are detected.
func TestDocumentedCommandsAreFound(t *testing.T) {
	page := "say `karpenter buy`\n```sh\nA=1 karpenter top --nonce # why\nx | karpenter simulate \\\n  --disrup > f\n" +
		"$(bin/karpenter sandbox upp)\nkubectl exec deploy/karpenter -- karpenter doctor --fix\nhelm install karpenter charts/karpenter --set a=b\n```\n"
	commands := documented(page)
	if len(commands) != 5 {
		t.Errorf("found %q, want five commands", commands)
	}
	for _, words := range commands {
		if unknown(words) == nil {
			t.Errorf("karpenter %s is accepted", strings.Join(words, " "))
		}
	}
}
