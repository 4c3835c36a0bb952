package main

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/testing/clitest"
)

const referenceHead = `# karpenter-sandbox: commands and flags

Generated from ` + "`sandbox`" + ` (` + "`make reference`" + `; a test compares). ` + "`karpenter-sandbox VERB --help`" + ` says the same.
`

func TestReferenceOfFlags(t *testing.T) {
	clitest.Reference(t, "reference/sandbox-flags.md", referenceHead, newRoot())
}

// TestDocumentedCommands checks the commands of the program in the pages.
func TestDocumentedCommands(t *testing.T) {
	clitest.Documented(t, newRoot, 10, "karpenter-sandbox", "bin/karpenter-sandbox")
}
