package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/plugin/cli"
)

// newExplainBufferCommand returns the command that explains a CapacityBuffer.
func newExplainBufferCommand() *cobra.Command {
	var e explanation
	command := &cobra.Command{
		Use:     "buffer [NAMESPACE/]NAME",
		Aliases: []string{"buffers", "capacitybuffer", "capacitybuffers", "cb"},
		Short:   "Explain where the room of a CapacityBuffer is, what it costs, and why some is missing",
		Long: `Reads the cluster once, decides as the controller would, and prints for how many pods a CapacityBuffer asks and gets room,
on which nodes the room is or would be launched, its price, and for pods without room the constraint that excludes each
pool. With -f, a capture or manifests are read instead of the cluster. Nothing is changed.`,
		Example: "  kubectl karpenter explain buffer web/spare\n  kubectl karpenter explain buffer spare -n web -o json\n" +
			"  kubectl karpenter explain buffer web/spare -f capture.json",
		Args: oneName("the CapacityBuffer as NAMESPACE/NAME, or NAME and --namespace"),

		ValidArgsFunction: completeName("CapacityBuffer"),
		RunE: func(command *cobra.Command, arguments []string) error {
			return e.print(command, func(ctx context.Context, out io.Writer) error {
				return e.runBuffer(ctx, bareName(command, arguments[0]), out)
			})
		},
	}
	addNamespaceFlag(command.Flags(), &e.live.Connection,
		"namespace of the CapacityBuffer (default: that of the kubeconfig's context; with -f any)")
	e.addFlags(command.Flags())
	e.watch.addFlags(command.Flags())
	return command
}

func (e *explanation) runBuffer(ctx context.Context, name string, out io.Writer) error {
	namespace, _, full := strings.Cut(name, "/")
	switch given := e.live.Namespace; {
	case full && given != "" && namespace != given:
		return cli.UsageErrorf("buffer %s is not in --namespace %s: give one of them", name, given)
	case full:
	case len(e.from) == 0:
		name = e.live.Home() + "/" + name
	case given != "":
		name = given + "/" + name
	}
	w, err := e.read(ctx, time.Now())
	if err != nil {
		return err
	}
	outcome, err := w.ExplainBuffer(&e.policy, name)
	if err != nil {
		return err
	}
	return printOutcome(outcome, e.output, out)
}
