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
	"os"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/internal/cli"
)

// release is set by the linker: -ldflags "-X main.release=v1.2.3".
var release string

func main() {
	os.Exit(cli.Run(context.Background(), newRootCommand()))
}

func newRootCommand() *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:     "karpenter",
		Short:   "Launches nodes for unschedulable pods and removes nodes that are no longer needed",
		Version: programVersion(),
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
	)
	return root
}
