package main

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/gates"
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

// TestFeaturesHaveFlags checks that the flags of features have the text and the default of the table.
func TestFeaturesHaveFlags(t *testing.T) {
	flags := newControllerCommand().Flags()
	for _, f := range gates.Features {
		if f.Flag == "" {
			continue
		}
		flag := flags.Lookup(f.Flag)
		if flag == nil {
			t.Errorf("there is no flag --%s of feature %s", f.Flag, f.Name)
			continue
		}
		if flag.Usage != f.Does || flag.DefValue != f.Default {
			t.Errorf("--%s: %q, default %q; the feature %s has %q, %q", f.Flag, flag.Usage, flag.DefValue, f.Name, f.Does, f.Default)
		}
	}
}

// TestDocumentedCommands checks the commands of the program in the pages.
func TestDocumentedCommands(t *testing.T) {
	clitest.Documented(t, newRootCommand, 1, "karpenter", "bin/karpenter")
}
