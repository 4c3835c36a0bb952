// Command karpenter is the one program of this project; each verb is a file, or a few with its name.
//
//	controller   what runs in a cluster: puts cloud, store, loops and controllers together (controller_wiring.go)
//	demo         a control plane, the controller and pods that come and go, and a report of what happened
//	sandbox      the control plane alone
//	simulate     a plan for pods and pools in files or a live cluster
//	replay       the same decision again, from a capture
//	explain      what becomes of a pod, a node or a pool of a live cluster
//	migrate      manifests of older versions, and of the Cluster Autoscaler, in today's API
//	doctor       what is wrong with the installation, and what would put it right
//	top          its nodes, what they hold and cost, and the pods that wait
//
// A verb reads flags and files, checks them, builds what it needs from internal/ and prints. Here, and only here, flags
// become the options of packages, and the cloud provider is picked by its name.
//
// Exit codes are the same everywhere: 0, 2 for bad input or wrong usage, 1 where the work failed or the answer is no.
// What went wrong is one line on standard error; standard output holds results only, progress goes to standard error.
//
// The package must not decide anything about pods or nodes, nor hold what another program could want: that is in
// internal/, where it can be tested without a process. It must not know what a provider does behind package cloud.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/sandbox"
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
		Short:         "Buys nodes for pods that wait, and lets those go that nobody needs",
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

// newVersionCommand prints what --version does.
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

// flagProblem says of a value that is not of its flag's type what would be.
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

// wantOf is what a flag's values are, in words; "" where no type says it.
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

// usageError is bad input: a wrong flag, argument or file.
type usageError struct{ err error }

func usageErrorf(format string, arguments ...any) error {
	return &usageError{fmt.Errorf(format, arguments...)}
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }
