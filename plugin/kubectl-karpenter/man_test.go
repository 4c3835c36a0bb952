package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/spf13/cobra"
)

// TestMan checks that each listed command has a manual page with its description and flags, and that the pages have the
// given date.
func TestMan(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1767225600") // 2026-01-01
	folder := filepath.Join(t.TempDir(), "man1")
	if out, err := runProgram(t, "", "man", folder); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var want []string
	var visit func(*cobra.Command)
	visit = func(command *cobra.Command) {
		if !command.IsAvailableCommand() || command.IsAdditionalHelpTopicCommand() {
			return
		}
		want = append(want, strings.ReplaceAll(command.CommandPath(), " ", "-")+".1")
		for _, child := range command.Commands() {
			visit(child)
		}
	}
	root := newRootCommand()
	root.InitDefaultCompletionCmd()
	visit(root)
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, entry := range entries {
		got = append(got, entry.Name())
	}
	less := func(a, b string) bool { return a < b }
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(less)); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	page, err := os.ReadFile(filepath.Join(folder, "kubectl-karpenter-explain-pod.1"))
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.ReplaceAll(string(page), `\-`, "-")
	for _, text := range []string{"Jan 2026", "decides as the controller would", "--all-namespaces"} {
		if !strings.Contains(plain, text) {
			t.Errorf("the page has no %q:\n%s", text, plain)
		}
	}
}
