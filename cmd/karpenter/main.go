// Command karpenter is the controller. Its verb controller runs in a cluster: it assembles cloud, store, loops and
// controllers (controller_wiring.go).
//
// The operator's commands are those of plugin/kubectl-karpenter; the sandbox and the demo are in the module sandbox/. Only
// this package converts flags to the options of the controller's packages, and selects the cloud provider by its name.
//
// Exit codes: 0 for success, 2 for invalid input or usage, 1 if the work failed. An error is one line on standard
// error.
//
// The package must not decide anything about pods or nodes, nor hold what another program could use: that belongs to
// internal/, where it can be tested without a process. It must not depend on what a provider does behind package
// cloud, nor on packages that only operators need (arch_test.go has the list).
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// release is set by the linker: -ldflags "-X main.release=v1.2.3".
var release string

func main() {
	os.Exit(cli.Run(context.Background(), newRootCommand()))
}

func newRootCommand() *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:   "karpenter",
		Short: "Launches nodes for unschedulable pods and removes nodes that are no longer needed",
		Long: `Launches nodes for unschedulable pods and removes nodes that are no longer needed: karpenter controller.

The operator's commands (simulate, explain, top, doctor, migrate, replay) are those of the kubectl plugin
kubectl-karpenter: see kubectl karpenter --help.`,
		Version: programVersion(),
	}, cli.NoTerminal)
	root.AddCommand(newControllerCommand())
	return root
}
