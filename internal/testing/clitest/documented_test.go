package clitest

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestDocumentedCommandsAreFound checks that commands are found in each form that pages use, and that wrong commands
// are detected.
func TestDocumentedCommandsAreFound(t *testing.T) {
	newRoot := func() *cobra.Command {
		root := &cobra.Command{Use: "karpenter", SilenceErrors: true, SilenceUsage: true}
		group := &cobra.Command{Use: "sandbox"}
		run := func(*cobra.Command, []string) {}
		group.AddCommand(&cobra.Command{Use: "up", Run: run})
		doctor := &cobra.Command{Use: "doctor", Run: run}
		doctor.Flags().Int("most", 1, "")
		root.AddCommand(group, doctor, &cobra.Command{Use: "top", Run: run}, &cobra.Command{Use: "simulate", Run: run})
		return root
	}
	page := "say `karpenter buy`\n```sh\nA=1 karpenter top --nonce # why\nx | karpenter simulate \\\n  --disrup > f\n" +
		"$(bin/karpenter sandbox upp)\nkubectl exec deploy/karpenter -- karpenter doctor --fix\nhelm install karpenter charts/karpenter --set a=b\n```\n"
	commands := Commands(page, "karpenter", "bin/karpenter")
	if len(commands) != 5 {
		t.Errorf("found %q, want five commands", commands)
	}
	for _, words := range commands {
		if Unknown(newRoot(), words) == nil {
			t.Errorf("karpenter %s is accepted", strings.Join(words, " "))
		}
	}
	for _, words := range [][]string{{"sandbox", "up"}, {"doctor", "--most", "2"}, {"doctor", "--most", "N"}} {
		if err := Unknown(newRoot(), words); err != nil {
			t.Errorf("karpenter %s: %v", strings.Join(words, " "), err)
		}
	}
	if found := Commands(page+"`bin/karpenter-sandbox up`", "karpenter-sandbox", "bin/karpenter-sandbox"); len(found) != 1 {
		t.Errorf("of another program: %q, want one command", found)
	}
}
