// Command karpenter is the one program of this project; each verb is a file.
//
// Exit codes are the same everywhere: 0, 2 for bad input or wrong usage, 1 where
// the work failed or the answer is no. What went wrong is one line on standard
// error; standard output holds results only, progress goes to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/internal/sandbox"
)

func main() {
	root := newRootCommand()
	os.Exit(run(context.Background(), root))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "karpenter",
		Short:         "Buys nodes for pods that wait, and sells those that nobody needs",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return command.Help()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usageErrorf("%w (see `%s --help`)", err, command.CommandPath())
	})
	root.AddCommand(
		newControllerCommand(),
		newDemoCommand(),
		newSandboxCommand(),
		newSimulateCommand(),
	)
	return root
}

// run runs the command line and returns the exit code.
func run(ctx context.Context, root *cobra.Command) int {
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintf(root.ErrOrStderr(), "karpenter: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	var usage *usageError
	var directory *sandbox.DirectoryError // of --data-dir
	if errors.As(err, &usage) || errors.As(err, &directory) {
		return 2
	}
	return 1
}

// usageError is bad input: a wrong flag, argument or file.
type usageError struct{ err error }

func usageErrorf(format string, arguments ...any) error {
	return &usageError{fmt.Errorf(format, arguments...)}
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
