package clitest

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var (
	shellBlock = regexp.MustCompile("(?m)^```sh\n((?s:.*?))^```$")
	inlineCode = regexp.MustCompile("`([^`]*)`")
	shellWord  = regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s|;&<>()]+|[|;&<>()]`)
)

// Commands returns the commands of programs in a page, as words after the name of the program. A name is one word or,
// for a plugin, two: "kubectl karpenter".
func Commands(page string, programs ...string) [][]string {
	var lines []string
	for _, block := range shellBlock.FindAllStringSubmatch(page, -1) {
		lines = append(lines, strings.Split(strings.ReplaceAll(block[1], "\\\n", " "), "\n")...)
	}
	for _, code := range inlineCode.FindAllStringSubmatch(page, -1) {
		if slices.ContainsFunc(programs, func(p string) bool { return verbAfter(code[1], p) }) {
			lines = append(lines, code[1])
		}
	}
	var commands [][]string
	for _, line := range lines {
		line, _, _ = strings.Cut(line, " #")
		words := shellWord.FindAllString(line, -1)
		for i := range words {
			// These are the places where a command may begin. A resource or a release of that name is not a command.
			begins := i == 0 || strings.Contains("|;&(--", words[i-1]) || strings.HasSuffix(words[i-1], "$") || strings.Contains(words[i-1], "=")
			if n := lengthOf(words[i:], programs); begins && n > 0 {
				end := i + n
				for end < len(words) && !strings.Contains("|;&<>()", words[end]) {
					end++
				}
				commands = append(commands, words[i+n:end])
			}
		}
	}
	return commands
}

// verbAfter reports whether code begins with the program and a verb in lower case.
func verbAfter(code, program string) bool {
	rest, found := strings.CutPrefix(code, program+" ")
	return found && rest != "" && rest[0] >= 'a' && rest[0] <= 'z'
}

// lengthOf returns how many words at the beginning are the name of a program, 0 for none.
func lengthOf(words, programs []string) int {
	for _, program := range programs {
		name := strings.Fields(program)
		if len(words) >= len(name) && slices.Equal(words[:len(name)], name) {
			return len(name)
		}
	}
	return 0
}

// placeholder matches the error about a placeholder in a page, in place of which readers use their own value. It is
// not a defect.
var placeholder = regexp.MustCompile(`invalid argument "[A-Z]+"`)

// Unknown returns what is wrong with a command: a verb or a flag that the program does not have.
func Unknown(root *cobra.Command, words []string) error {
	command, rest, err := root.Find(words)
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

// Documented checks that every command of the programs in README.md and docs/*.md has an existing verb and existing
// flags, with values that those accept, and that there are at least so many commands. Each one gets a new root command.
func Documented(t *testing.T, root func() *cobra.Command, least int, programs ...string) {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(repository(t), "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, name := range append(pages, filepath.Join(repository(t), "README.md")) {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, words := range Commands(string(text), programs...) {
			n++
			if err := Unknown(root(), words); err != nil {
				t.Errorf("%s: %s %s: %v", name, programs[0], strings.Join(words, " "), err)
			}
		}
	}
	if n < least {
		t.Errorf("found only %d commands", n)
	}
}
