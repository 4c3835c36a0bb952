package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// TestStatusSaysNothingTwice checks that a status is printed once: the phase as the result, and the error contains
// only what the phase does not.
func TestStatusSaysNothingTwice(t *testing.T) {
	for _, c := range []struct {
		status sandbox.Status
		want   string
	}{
		{sandbox.Status{Phase: sandbox.Failed, Message: "etcd ended with exit code 1"}, "etcd ended with exit code 1"},
		{sandbox.Status{Phase: sandbox.Stopped}, "`karpenter-sandbox up --data-dir here` starts it"},
		{sandbox.Status{Phase: sandbox.Starting}, "it is on its way"},
	} {
		var out bytes.Buffer
		err := printStatus(&out, "here", c.status)
		if err == nil || err.Error() != c.want {
			t.Errorf("got error %v, want %q", err, c.want)
		}
		if want := "sandbox here: " + string(c.status.Phase) + "\n"; out.String() != want {
			t.Errorf("it printed %q, want %q", out.String(), want)
		}
	}
}

// TestSandboxExitCodes checks that the verbs distinguish invalid usage (2), a negative answer (1) and
// nothing to do (0).
func TestSandboxExitCodes(t *testing.T) {
	theirs := t.TempDir()
	file := filepath.Join(theirs, "thesis.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arguments []string
		code      int
		stdout    string
	}{
		"unknown verb":             {[]string{"sideways"}, 2, ""},
		"unknown flag":             {[]string{"up", "--upside-down"}, 2, ""},
		"stray argument":           {[]string{"status", "now"}, 2, ""},
		"no such assets":           {[]string{"up", "--data-dir", t.TempDir(), "--binaries", t.TempDir()}, 2, ""},
		"status of nothing":        {[]string{"status", "--data-dir", t.TempDir()}, 1, "absent"},
		"down of nothing":          {[]string{"down", "--data-dir", t.TempDir()}, 0, "no sandbox is running"},
		"kubeconfig of nothing":    {[]string{"kubeconfig", "--data-dir", t.TempDir()}, 1, ""},
		"assets that do not exist": {[]string{"assets", "--binaries", t.TempDir()}, 2, ""},
		"up in no directory":       {[]string{"up", "--data-dir", ""}, 2, ""},
		"up in a file":             {[]string{"up", "--data-dir", file}, 2, ""},
		"up among files":           {[]string{"up", "--data-dir", theirs}, 2, ""},
		"up in no time":            {[]string{"up", "--data-dir", t.TempDir(), "--timeout", "-1s"}, 2, ""},
		"status of a file":         {[]string{"status", "--data-dir", file}, 2, ""},
		"demo in no directory":     {[]string{"demo", "--data-dir", ""}, 2, ""},
		"demo in a file":           {[]string{"demo", "--data-dir", file}, 2, "Logs"},
		"demo among files":         {[]string{"demo", "--data-dir", theirs}, 2, "Logs"},
		"help":                     {[]string{}, 0, "Usage:"},
	} {
		t.Run(name, func(t *testing.T) {
			root := newRoot()
			var stdout, stderr bytes.Buffer
			root.SetOut(&stdout)
			root.SetErr(&stderr)
			root.SetArgs(test.arguments)
			if code := cli.Run(context.Background(), root); code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stdout.String(), test.stdout) {
				t.Errorf("output %q, want %q in it", stdout.String(), test.stdout)
			}
			message := strings.TrimSuffix(stderr.String(), "\n")
			if test.code != 0 {
				if !strings.HasPrefix(message, "karpenter-sandbox: ") || strings.Contains(message, "\n") {
					t.Errorf("message %q, want one line that begins with karpenter-sandbox:", message)
				}
			}
		})
	}
}
