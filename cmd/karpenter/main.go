// Command karpenter is the only program of this project. Each verb is a file, or a few files with its name.
//
//	controller   runs in a cluster: assembles cloud, store, loops and controllers (controller_wiring.go)
//	demo         starts a control plane and the controller, scales pods up and down, and prints a report
//	sandbox      runs the control plane alone
//	simulate     plans for pods and pools in files or a live cluster
//	replay       repeats a decision, from a capture
//	explain      explains the result for a pod, a node or a pool of a live cluster
//	migrate      converts manifests of older versions, and of the Cluster Autoscaler, to the current API
//	doctor       diagnoses the installation, and prints fixes
//	top          shows the nodes, their contents and costs, and the pending pods
//
// A verb reads flags and files, validates them, builds what it needs from internal/ and prints. Only this package
// converts flags to the options of packages, and selects the cloud provider by its name.
//
// Exit codes are the same everywhere: 0 for success, 2 for invalid input or usage, 1 if the work failed or the answer
// is negative. An error is one line on standard error. Standard output contains only results; progress is written to
// standard error.
//
// The package must not decide anything about pods or nodes, nor hold what another program could use: that belongs to
// internal/, where it can be tested without a process. It must not depend on what a provider does behind package
// cloud.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/testing/sandbox"
)

// release is set by the linker: -ldflags "-X main.release=v1.2.3".
var release string

func main() {
	root := newRootCommand()
	os.Exit(run(context.Background(), root))
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "karpenter",
		Short:         "Launches nodes for unschedulable pods and removes nodes that are no longer needed",
		Version:       programVersion(),
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return command.Help()
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usageErrorf("%w (see `%s --help`)", flagProblem(err), command.CommandPath())
	})
	root.AddCommand(
		newControllerCommand(),
		newDemoCommand(),
		newDoctorCommand(),
		newExplainCommand(),
		newMigrateCommand(),
		newReplayCommand(),
		newSandboxCommand(),
		newSimulateCommand(),
		newTopCommand(),
		newVersionCommand(),
	)
	return root
}

// newVersionCommand prints the same as --version.
func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), "karpenter version", command.Root().Version)
			return err
		},
	}
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

// wantOf describes the values of a flag; "" if its type does not define them.
func wantOf(flag *pflag.Flag) string {
	switch flag.Value.Type() {
	case "int", "int32", "int64":
		return "a whole number"
	case "float32", "float64":
		return "a number"
	case "bool":
		return "true or false"
	case "duration":
		return "a duration such as 500ms, 30s or 1h30m"
	}
	return ""
}

// usageError reports invalid input: a wrong flag, argument or file.
type usageError struct{ err error }

func usageErrorf(format string, arguments ...any) error {
	return &usageError{fmt.Errorf(format, arguments...)}
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
