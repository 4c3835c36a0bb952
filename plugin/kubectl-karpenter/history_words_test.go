package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// TestWordsOfHistory checks that bad input of the past is told in one line that says what would be right.
func TestWordsOfHistory(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "karpenter.log")
	text := `{"time":"2026-05-01T12:00:01Z","message":"hello"}` + "\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name      string
		arguments []string
		code      int
		want      string
	}{
		{"a folder", []string{"history", "-f", folder}, 2, "-f: reading the log: read " + folder},
		{"a name", []string{"history", "steady-ofzm4", "-f", file}, 2, "history node steady-ofzm4`"},
		{"a verb", []string{"history", "nod", "-f", file}, 2, "did you mean node?"},
		{"after the end", []string{"history", "-f", file, "--since", "2027-01-01T00:00:00Z"}, 2,
			"is after the end of the log, 2026-05-01T12:00:01Z"},
		{"nothing about nodes", []string{"history", "-f", file}, 0, "no line is about a node"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, stderr, err := runBoth(t, "", test.arguments...)
			if err != nil {
				stderr += err.Error() + "\n"
			}
			code := cli.ExitCode(err)
			if code != test.code || !strings.Contains(stderr, test.want) {
				t.Errorf("exit code %d, want %d; want %q in it, got:\n%s", code, test.code, test.want, stderr)
			}
		})
	}
	e := explanation{logs: []string{file + "x"}}
	if _, err := e.readPast(); err == nil || cli.ExitCode(err) != 2 || !strings.HasPrefix(err.Error(), "--log: open ") {
		t.Errorf("got the error %v for a log that does not exist, want one that names the flag", err)
	}
}
