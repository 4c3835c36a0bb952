package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// HelpColumns is the width that help texts fit. On a terminal that is narrower they fit its width, down to
// LeastColumns.
const HelpColumns = 100

// LeastColumns is the width below which help texts are not made narrower.
const LeastColumns = 60

// shared annotates flags that many commands have, and that help lists once, with the command OptionsCommand.
const shared = "karpenter-go.github.io/shared"

// OptionsCommand is the name of the command whose help lists the shared flags.
const OptionsCommand = "options"

// Share marks the flags as shared.
func Share(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations == nil {
			f.Annotations = map[string][]string{}
		}
		f.Annotations[shared] = []string{}
	})
}

// Unshare takes the marks of Share away.
func Unshare(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) { delete(f.Annotations, shared) })
}

// Shared reports whether a flag is listed with the command OptionsCommand.
func Shared(f *pflag.Flag) bool { return f.Annotations[shared] != nil }

// Hide removes flags from help and reference. They are for developers.
func Hide(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		flags.Lookup(name).Hidden = true
	}
}

// addHelp sets templates that fit the terminal, whose width columns returns.
func addHelp(root *cobra.Command, columns func(io.Writer) int) {
	width, help := HelpColumns, root.HelpFunc()
	root.SetHelpFunc(func(command *cobra.Command, arguments []string) {
		// Not later, because cobra writes parts of the help to a buffer first.
		if now := columns(command.OutOrStdout()); now > 0 {
			width = max(LeastColumns, min(now, HelpColumns))
		}
		help(command, arguments)
	})
	cobra.AddTemplateFunc("ownFlags", func(flags *pflag.FlagSet) string {
		own := pflag.NewFlagSet("", pflag.ContinueOnError)
		flags.VisitAll(func(f *pflag.Flag) {
			if !Shared(f) {
				own.AddFlag(f)
			}
		})
		return strings.TrimRight(own.FlagUsagesWrapped(width), " \n")
	})
	cobra.AddTemplateFunc("hasShared", func(flags *pflag.FlagSet) (found bool) {
		flags.VisitAll(func(f *pflag.Flag) { found = found || Shared(f) })
		return found
	})
	cobra.AddTemplateFunc("wrapped", func(text string) string { return table.Wrap(unwrapped(text), width, 0) })
	cobra.AddTemplateFunc("short", func(name, text string) string { // the line of a command in a list
		return strings.TrimSpace(table.Wrap("  "+name+" "+text, width, len(name)+1))
	})
	root.SetHelpTemplate(strings.Replace(root.HelpTemplate(), "{{. | trimTrailingWhitespaces}}", "{{. | trimTrailingWhitespaces | wrapped}}", 1))
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages | trimTrailingWhitespaces}}", "ownFlags .LocalFlags}}{{if hasShared .LocalFlags}}\n\n"+
			`Use "{{.Root.CommandPath}} `+OptionsCommand+`" for flags that select the cluster and the user.{{end}}`,
		"{{rpad .Name .NamePadding }} {{.Short}}", "{{short (rpad .Name .NamePadding) .Short}}",
		`Use "{{.CommandPath}} [command] --help" for more information about a command.`,
		`{{printf "Use \"%s [command] --help\" for more information about a command." .CommandPath | wrapped}}`,
		".InheritedFlags.FlagUsages | trimTrailingWhitespaces}}", "ownFlags .InheritedFlags}}",
	).Replace(root.UsageTemplate()))
}

// unwrapped joins the lines of each paragraph. Lines that begin with a space, such as those of a table, stay lines.
func unwrapped(text string) string {
	var b strings.Builder
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		b.WriteString(line)
		if i+1 == len(lines) {
			break
		}
		if next := lines[i+1]; line == "" || next == "" || line[0] == ' ' || next[0] == ' ' {
			b.WriteByte('\n')
		} else {
			b.WriteByte(' ')
		}
	}
	return b.String()
}
