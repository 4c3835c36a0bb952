package main

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/clitest"
)

const referenceHead = `# The controller: commands and flags

Generated from ` + "`cmd/karpenter`" + ` (` + "`make reference`" + `; a test compares). ` + "`karpenter VERB --help`" + ` says the same. Flags of
` + "`karpenter controller`" + ` can be given as environment variables too; a flag wins over its variable. The operator's commands
are those of the [plugin](plugin.md).
`

func TestReferenceOfFlags(t *testing.T) {
	clitest.Reference(t, "reference/flags.md", referenceHead, newRootCommand(), "controller")
}

// TestDocumentedCommands checks the commands of the program in the pages.
func TestDocumentedCommands(t *testing.T) {
	clitest.Documented(t, newRootCommand, 1, "karpenter", "bin/karpenter")
}
