// Package clitest has the tests of command lines that every program needs: the reference page of its flags, and the
// commands in the documentation.
//
//	cobra command -> page in docs/reference (compared, or written with -update)
//	pages in docs -> commands of the program -> verbs and flags that it has
//
// It must not know what a command does.
package clitest

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/testing/golden/update"
	"github.com/karpenter-go/karpenter/plugin/cli"
)

// repository returns the root of the repository, above the folder of the test.
func repository(t *testing.T) string {
	t.Helper()
	for root := ".."; len(root) < 30; root = filepath.Join(root, "..") {
		if _, err := os.Stat(filepath.Join(root, "docs", "reference")); err == nil {
			return root
		}
	}
	t.Fatal("docs/reference is not above the folder of the test")
	return ""
}

// comparePage compares a page of the docs with the text that the code generates, or writes it.
func comparePage(t *testing.T, page, want string) {
	t.Helper()
	path := filepath.Join(repository(t), "docs", page)
	if *update.Files {
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

// Reference compares a page of docs with a head, and a section for each command and its flags. The flags of commands
// that variables names can be given by environment variables.
func Reference(t *testing.T, page, head string, root *cobra.Command, variables ...string) {
	t.Helper()
	r := &reference{variables: variables}
	r.WriteString(head)
	r.describe(root)
	comparePage(t, page, r.String())
}

// reference is the text of a page.
type reference struct {
	strings.Builder
	variables []string
}

// describe writes a command and its subcommands.
func (r *reference) describe(command *cobra.Command) {
	if command.Runnable() && !command.HasSubCommands() && !command.Hidden {
		fmt.Fprintf(r, "\n## %s\n\n%s.\n", strings.TrimSuffix(command.UseLine(), " [flags]"), strings.TrimSuffix(command.Short, "."))
		rows, shared := r.flagRows(command)
		if rows != "" {
			fmt.Fprintf(r, "\n| flag |%s default | |\n|---|%s---|---|\n%s", r.variableColumn(command, " variable |"),
				r.variableColumn(command, "---|"), rows)
		}
		if shared {
			path := command.Root().CommandPath() + " " + cli.OptionsCommand
			fmt.Fprintf(r, "\nIt also has the flags of [`%s`](#%s).\n", path, strings.ReplaceAll(path, " ", "-"))
		}
	}
	for _, below := range command.Commands() {
		if below.Name() != "help" && below.Name() != "completion" {
			r.describe(below)
		}
	}
}

// variableColumn returns the column for a command that reads the environment, else "".
func (r *reference) variableColumn(command *cobra.Command, text string) string {
	if slices.Contains(r.variables, command.Name()) {
		return text
	}
	return ""
}

// cacheFolder is the cache folder of this machine; the page contains Linux's default.
var cacheFolder, _ = os.UserCacheDir()

// flagRows returns the rows of the command's own flags, and reports whether it has shared ones too.
func (r *reference) flagRows(command *cobra.Command) (rows string, shared bool) {
	var b strings.Builder
	command.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if shared = shared || cli.Shared(f); f.Hidden || f.Name == "help" || cli.Shared(f) {
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
		fmt.Fprintf(&b, "| %s |%s %s | %s |\n", name, r.variableColumn(command, variable), fallback,
			cmp.Or(strings.ReplaceAll(f.Usage, "|", "\\|"), " "))
	})
	return b.String(), shared
}
