// Package cli holds what the command lines of all programs share: how a command ends, how flags are read and how
// invalid usage is reported.
//
//	cobra command --Run--> exit code: 0 success, 2 invalid usage or input, 1 any other error
//	                       standard error: one line
//
// It must not know what a command does.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
)

// NamespaceFile is a file that contains, inside a cluster, the namespace that the program runs in.
const NamespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// NoTerminal is for programs whose help has the same width everywhere.
func NoTerminal(io.Writer) int { return 0 }

// Root completes a root command. Without arguments it prints its help. columns returns the width of a terminal, and 0 for
// anything else.
func Root(root *cobra.Command, columns func(io.Writer) int) *cobra.Command {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.Args = NoArguments
	root.RunE = func(command *cobra.Command, _ []string) error { return command.Help() }
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return UsageErrorf("%w%s (see `%s --help`)", flagProblem(err), flagMeant(command, err), command.CommandPath())
	})
	addHelp(root, columns)
	root.AddCommand(&cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), root.Name(), "version", root.Version)
			return err
		},
	})
	return root
}

// Run runs the command line and returns the exit code.
func Run(ctx context.Context, root *cobra.Command) int {
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintf(root.ErrOrStderr(), "%s: %s\n", root.CommandPath(), strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return ExitCode(err)
}

// ExitCode returns the exit code of a program that ends with the error. Errors of any package determine theirs by a
// method ExitCode.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	var coded interface{ ExitCode() int }
	if errors.As(err, &coded) {
		return coded.ExitCode()
	}
	return 1
}

// UsageError reports invalid input: a wrong flag, argument or file.
type UsageError struct{ err error }

// UsageErrorf returns a UsageError with a message like that of fmt.Errorf.
func UsageErrorf(format string, arguments ...any) error {
	return &UsageError{fmt.Errorf(format, arguments...)}
}

func (e *UsageError) Error() string { return e.err.Error() }

// Unwrap returns the error that the message contains.
func (e *UsageError) Unwrap() error { return e.err }

// ExitCode implements the interface that function ExitCode reads.
func (e *UsageError) ExitCode() int { return 2 }

// NoArguments accepts no arguments. A name that is similar to a verb is suggested.
func NoArguments(command *cobra.Command, arguments []string) error {
	if len(arguments) > 0 {
		if flag := command.Flags().Lookup("filename"); flag != nil && !command.HasSubCommands() {
			return UsageErrorf("unexpected argument %q: to read a file or a folder, write -f %s (see `%s --help`)", arguments[0],
				arguments[0], command.CommandPath())
		}
		meant := ""
		if command.SuggestionsMinimumDistance = 2; len(command.SuggestionsFor(arguments[0])) > 0 {
			meant = "; did you mean " + command.SuggestionsFor(arguments[0])[0] + "?"
		} else if command.HasParent() && command.HasSubCommands() {
			meant = fmt.Sprintf("; want a verb before it, such as `%s %s %s`", command.CommandPath(), command.Commands()[1].Name(), arguments[0])
		}
		return UsageErrorf("unexpected argument %q%s (see `%s --help`)", arguments[0], meant, command.CommandPath())
	}
	return nil
}

// DidYouMean completes an error about a name that is similar to a known one.
func DidYouMean(name string, known []string) string {
	if meant := explain.Nearest(name, known); meant != "" {
		return "; did you mean " + meant + "?"
	}
	return ""
}

// FromEnvironment sets the flags that were not given from their environment variables. Hidden flags have no
// variables. A value that cannot be parsed is an error, unlike upstream, which silently uses the default.
func FromEnvironment(flags *pflag.FlagSet) error {
	var wrong error
	flags.VisitAll(func(flag *pflag.Flag) {
		name := strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value := os.Getenv(name)
		if value == "" || flag.Changed || flag.Hidden || flag.Name == "kubeconfig" || flag.Name == "help" || wrong != nil {
			return
		}
		err := flags.Set(flag.Name, value)
		if flag.Value.Type() == "bool" && value != "true" && value != "false" {
			err = fmt.Errorf("want true or false")
		}
		switch want := wantOf(flag); {
		case err != nil && want != "":
			wrong = UsageErrorf("environment variable %s is %q, want %s", name, value, want)
		case err != nil:
			wrong = UsageErrorf("environment variable %s is %q: %w", name, value, err)
		}
	})
	return wrong
}

// flagProblem describes which values a flag accepts, for a value that does not have the flag's type.
func flagProblem(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	if want := wantOf(invalid.GetFlag()); want != "" {
		return fmt.Errorf("--%s is %q, want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
	}
	return err
}

// flagMeant completes an error about an unknown flag.
func flagMeant(command *cobra.Command, err error) string {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	var names []string
	command.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return DidYouMean("--"+unknown.GetSpecifiedName(), names)
}

// wantOf describes the values of a flag; "" if its type does not define them.
func wantOf(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int", "int32", "int64":
		return "an integer"
	case "float32", "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 500ms, 30s or 1h30m"
	}
	return ""
}

// PriorityCutoffFlag adds the flag of the priority below which pods are expendable; without it, to remains nil.
func PriorityCutoffFlag(flags *pflag.FlagSet, to **int32) {
	flags.Var(optionalInt32{to}, "expendable-pods-priority-cutoff",
		"pods with a lower priority are expendable: no node is launched or kept for them (default: none are; the Cluster Autoscaler's is -10)")
}

// optionalInt32 is the value of a flag that need not have one.
type optionalInt32 struct{ to **int32 }

// Set implements pflag.Value.
func (o optionalInt32) Set(text string) error {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("want an integer: %w", err)
	}
	value := int32(n)
	*o.to = &value
	return nil
}

// String implements pflag.Value.
func (o optionalInt32) String() string {
	if o.to == nil || *o.to == nil {
		return ""
	}
	return strconv.Itoa(int(**o.to))
}

// Type implements pflag.Value.
func (o optionalInt32) Type() string { return "int32" }
