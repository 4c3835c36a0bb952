package main

import (
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/clitest"
)

const referenceHead = `# The plugin: commands and flags

Generated from ` + "`plugin/kubectl-karpenter`" + ` (` + "`make reference`" + `; a test compares). ` + "`kubectl karpenter VERB --help`" + ` says the same.
`

func TestReferenceOfFlags(t *testing.T) {
	clitest.Reference(t, "reference/plugin.md", referenceHead, newRootCommand())
}

// TestDocumentedCommands checks the commands of the plugin in the pages.
func TestDocumentedCommands(t *testing.T) {
	clitest.Documented(t, newRootCommand, 30, plugin, "kubectl-karpenter", "bin/kubectl-karpenter")
}

// TestDocumentedCommandsAreFound checks that commands are found in each form that pages use, and that wrong commands
// are detected.
func TestDocumentedCommandsAreFound(t *testing.T) {
	page := "say `kubectl karpenter buy`\n```sh\nA=1 kubectl karpenter top --nonce # why\nx | kubectl-karpenter simulate \\\n  --disrup > f\n" +
		"$(bin/kubectl-karpenter explain podd)\nkubectl exec a -- kubectl karpenter doctor --fix\nhelm install karpenter charts/karpenter --set a=b\nkubectl get pods\n```\n"
	commands := clitest.Commands(page, plugin, "kubectl-karpenter", "bin/kubectl-karpenter")
	if len(commands) != 5 {
		t.Errorf("found %q, want five commands", commands)
	}
	for _, words := range commands {
		if clitest.Unknown(newRootCommand(), words) == nil {
			t.Errorf("%s %s is accepted", plugin, strings.Join(words, " "))
		}
	}
}
