// Command kubectl-karpenter is the operator's tool. kubectl runs it for `kubectl karpenter VERB`; it runs alone, too.
//
//	simulate     plans for pods and pools in files or a live cluster
//	replay       repeats a decision, from a capture
//	explain      explains the result for a pod, a node or a pool of a live cluster
//	top          shows the nodes, their contents and costs, and the pending pods
//	history      shows what happened to nodes and pods, from the controller's log
//	web          shows the same, plans and what-ifs as pictures and tables in a browser
//	report       writes the same as one file
//	doctor       diagnoses the installation, and prints fixes
//	migrate      converts manifests of older versions, and of the Cluster Autoscaler, to the current API
//
// A command reads flags, validates them, and prints what plugin/offline, plugin/top, plugin/history,
// plugin/web, plugin/doctor or internal/legacy/migrate answers. None of them writes to a cluster.
//
// Exit codes are the same everywhere: 0 for success, 2 for invalid input or usage, 1 if the work failed or the answer
// is negative. An error is one line on standard error. Standard output contains only results; progress is written to
// standard error.
//
// The package must not decide anything about pods or nodes, nor hold what another program could use: that belongs to
// internal/, where it can be tested without a process.
package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// release is set by the linker: -ldflags "-X main.release=v1.2.3".
var release string

// programVersion returns the version that the program was built from.
func programVersion() string { return cli.Version(release) }

// plugin is the form in which the documentation and the help texts call the program.
const plugin = "kubectl karpenter"

// garbage is how much garbage may accumulate before it is collected, in percent of the live memory: plans create much, and
// retain little. The variable GOGC changes it.
const garbage = 200

func main() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	root := newRootCommand()
	callAs(root, calledAs(os.Args[0], os.Getenv("_")))
	os.Exit(cli.Run(context.Background(), root))
}

func newRootCommand() *cobra.Command {
	root := cli.Root(&cobra.Command{
		Use:   "kubectl-karpenter",
		Short: "Explain, simulate and check what Karpenter does with the nodes of a cluster",
		Example: "  # Why are pods pending?\n  kubectl karpenter explain pods -A\n" +
			"  # What keeps nodes that could be removed?\n  kubectl karpenter explain node\n" +
			"  # What would a change of a NodePool do?\n  kubectl karpenter simulate --live --diff pool.yaml new-pool.yaml",
		Version:     programVersion(),
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: plugin},
	}, columnsOf)
	root.AddCommand(
		newDoctorCommand(),
		newExplainCommand(),
		newHistoryCommand(),
		newManCommand(),
		newMigrateCommand(),
		newOptionsCommand(),
		newReplayCommand(),
		newReportCommand(),
		newSimulateCommand(),
		newTopCommand(),
		newWebCommand(),
	)
	root.CompletionOptions.HiddenDefaultCmd = false
	addCompletion(root)
	return root
}

// calledAs returns the form by which the program was called, from its first argument and the shell's variable _. kubectl
// executes a plugin by its absolute path and leaves _ at its own.
func calledAs(program, shell string) string {
	name := strings.TrimSuffix(filepath.Base(program), ".exe")
	if filepath.IsAbs(program) && strings.HasPrefix(name, "kubectl-") && filepath.Base(shell) != filepath.Base(program) {
		return plugin
	}
	return name
}

// callAs makes the texts of all commands name the program in the form by which it was called.
func callAs(command *cobra.Command, form string) {
	if !command.HasParent() {
		command.Annotations[cobra.CommandDisplayNameAnnotation] = form
	}
	command.Long = strings.ReplaceAll(command.Long, plugin+" ", form+" ")
	command.Example = strings.ReplaceAll(command.Example, plugin+" ", form+" ")
	for _, c := range command.Commands() {
		callAs(c, form)
	}
}
