package main

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// helpOf returns what --help prints.
func helpOf(t *testing.T, arguments ...string) string {
	t.Helper()
	root := newRootCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append(arguments, "--help"))
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// verbs returns the path of each command below the root.
func verbs(command *cobra.Command, above ...string) [][]string {
	paths := [][]string{above}
	for _, c := range command.Commands() {
		if c.Name() != "help" && c.Name() != "completion" {
			paths = append(paths, verbs(c, append(append([]string{}, above...), c.Name())...)...)
		}
	}
	return paths
}

// TestHelpFits checks that help texts fit, and that the flags of developers and those of kubectl are not among them.
func TestHelpFits(t *testing.T) {
	for _, path := range verbs(newRootCommand()) {
		help := helpOf(t, path...)
		for line := range strings.Lines(help) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > cli.HelpColumns {
				t.Errorf("%v: %d characters: %s", path, n, line)
			}
		}
		for _, flag := range []string{"--packing-effort", "--work-budget", "--repeat", "--as-group"} {
			if strings.Contains(help, flag) {
				if len(path) == 0 || path[0] != cli.OptionsCommand {
					t.Errorf("the help of %v lists %s, want it only in that of %s", path, flag, cli.OptionsCommand)
				}
			}
		}
	}
	if help := helpOf(t, "top"); !strings.Contains(help, `Use "kubectl karpenter options" for flags`) {
		t.Errorf("the help does not name the verb options:\n%s", help)
	}
	for _, flag := range []string{"--as string", "--as-group", "--cluster string", "--context", "--kubeconfig", "--request-timeout", "--user string", "--token"} {
		if help := helpOf(t, cli.OptionsCommand); !strings.Contains(help, flag) {
			t.Errorf("no %s in\n%s", flag, help)
		}
	}
}

// TestHelpFitsTerminal checks that help fits a terminal of 80 characters, except for commands to copy.
func TestHelpFitsTerminal(t *testing.T) {
	for _, path := range verbs(newRootCommand()) {
		root, out := newRootCommand(), &terminal{columns: 80}
		root.SetOut(out)
		root.SetArgs(append(path, "--help"))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > out.columns && !strings.HasPrefix(line, "  kubectl ") {
				t.Errorf("%v: %d characters: %s", path, n, line)
			}
		}
	}
}

// TestSimilarFlag checks that an unknown flag is compared with the known ones.
func TestSimilarFlag(t *testing.T) {
	for want, arguments := range map[string][]string{
		"did you mean --context?":  {"top", "--contxt", "a"},
		"did you mean --interval?": {"top", "--intervall", "5s"},
		"did you mean top?":        {"topp"},
	} {
		if _, err := runProgram(t, "", arguments...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", arguments, err, want)
		}
	}
}
