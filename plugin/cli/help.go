package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

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

// addHelp sets help and usage that fit the terminal, whose width columns returns. They are written without templates: package
// text/template finds methods by their names, so with it the linker keeps every exported method of every type, which doubles
// a program.
func addHelp(root *cobra.Command, columns func(io.Writer) int) {
	width := HelpColumns
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		// Not later, because cobra writes the usage to a buffer first.
		if now := columns(c.OutOrStdout()); now > 0 {
			width = max(LeastColumns, min(now, HelpColumns))
		}
		if text := strings.TrimRightFunc(cmp.Or(c.Long, c.Short), unicode.IsSpace); text != "" {
			fmt.Fprint(c.OutOrStdout(), table.Wrap(unwrapped(text), width, 0)+"\n\n")
		}
		if c.Runnable() || c.HasSubCommands() {
			fmt.Fprint(c.OutOrStdout(), c.UsageString())
		}
	})
	root.SetUsageFunc(func(c *cobra.Command) error {
		_, err := io.WriteString(c.OutOrStderr(), usage(c, width))
		return err
	})
}

// usage describes how a command is called.
func usage(c *cobra.Command, width int) string {
	var b strings.Builder
	b.WriteString("Usage:")
	if c.Runnable() {
		b.WriteString("\n  " + c.UseLine())
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n  " + c.CommandPath() + " [command]")
	}
	if len(c.Aliases) > 0 {
		b.WriteString("\n\nAliases:\n  " + c.NameAndAliases())
	}
	if c.HasExample() {
		b.WriteString("\n\nExamples:\n" + c.Example)
	}
	if c.HasAvailableSubCommands() {
		b.WriteString("\n\nAvailable Commands:")
		for _, below := range c.Commands() {
			if below.IsAvailableCommand() || below.Name() == "help" {
				name := fmt.Sprintf("%-*s", below.NamePadding(), below.Name())
				b.WriteString("\n  " + strings.TrimSpace(table.Wrap("  "+name+" "+below.Short, width, len(name)+1)))
			}
		}
	}
	if local := c.LocalFlags(); c.HasAvailableLocalFlags() {
		b.WriteString("\n\nFlags:\n" + ownFlags(local, width))
		if hasShared(local) {
			b.WriteString("\n\nUse \"" + c.Root().CommandPath() + " " + OptionsCommand + "\" for flags that select the cluster and the user.")
		}
	}
	if c.HasAvailableInheritedFlags() {
		b.WriteString("\n\nGlobal Flags:\n" + ownFlags(c.InheritedFlags(), width))
	}
	if c.HasAvailableSubCommands() {
		more := fmt.Sprintf("Use %q for more information about a command.", c.CommandPath()+" [command] --help")
		b.WriteString("\n\n" + table.Wrap(unwrapped(more), width, 0))
	}
	return b.String() + "\n"
}

// ownFlags lists the flags that are not shared.
func ownFlags(flags *pflag.FlagSet, width int) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		if !Shared(f) {
			own.AddFlag(f)
		}
	})
	return strings.TrimRight(own.FlagUsagesWrapped(width), " \n")
}

func hasShared(flags *pflag.FlagSet) (found bool) {
	flags.VisitAll(func(f *pflag.Flag) { found = found || Shared(f) })
	return found
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
