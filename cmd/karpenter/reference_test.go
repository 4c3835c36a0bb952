package main

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/reference, and the texts that docs hold, again")

// comparePage compares a page of the docs with the text that the code generates, or writes it.
func comparePage(t *testing.T, page, want string) {
	t.Helper()
	path := filepath.Join("../../docs", page)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s differs from the generated text (make reference), -code +page:\n%s", path, diff)
	}
}

const flagsHead = `# Commands and flags

Generated from ` + "`cmd/karpenter`" + ` (` + "`make reference`" + `; a test compares). ` + "`karpenter VERB --help`" + ` says the same. Flags of
` + "`karpenter controller`" + ` can be given as environment variables too; a flag wins over its variable.
`

func TestReferenceOfFlags(t *testing.T) {
	var b strings.Builder
	b.WriteString(flagsHead)
	describeVerb(&b, newRootCommand())
	if n := strings.Count(b.String(), "\n## "); n < 8 {
		t.Errorf("%d verbs", n)
	}
	comparePage(t, "reference/flags.md", b.String())
}

// describeVerb writes a verb and its subcommands.
func describeVerb(b *strings.Builder, command *cobra.Command) {
	if command.Runnable() && !command.HasSubCommands() && !command.Hidden {
		fmt.Fprintf(b, "\n## %s\n\n%s.\n", strings.TrimSuffix(command.UseLine(), " [flags]"), strings.TrimSuffix(command.Short, "."))
		if rows := flagRows(command); rows != "" {
			fmt.Fprintf(b, "\n| flag |%s default | |\n|---|%s---|---|\n%s", variableColumn(command, " variable |"), variableColumn(command, "---|"), rows)
		}
	}
	for _, below := range command.Commands() {
		if below.Name() != "help" && below.Name() != "completion" {
			describeVerb(b, below)
		}
	}
}

// variableColumn returns the column for a verb that reads the environment, else "".
func variableColumn(command *cobra.Command, text string) string {
	if command.Name() == "controller" {
		return text
	}
	return ""
}

// cacheFolder is the cache folder of this machine; the page contains Linux's default.
var cacheFolder, _ = os.UserCacheDir()

func flagRows(command *cobra.Command) string {
	var b strings.Builder
	command.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		variable := " `" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_")) + "` |"
		if f.Name == "kubeconfig" {
			variable = " `KUBECONFIG` |"
		}
		fallback := strings.TrimSuffix("`"+strings.Replace(f.DefValue, cacheFolder, "~/.cache", 1)+"`", "``")
		fmt.Fprintf(&b, "| %s |%s %s | %s |\n", name, variableColumn(command, variable), fallback, cmp.Or(strings.ReplaceAll(f.Usage, "|", "\\|"), " "))
	})
	return b.String()
}
