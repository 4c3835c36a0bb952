package main

import (
	"context"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/karpenter-go/karpenter/internal/offline"
)

// newExplainQuotaCommand returns the command that explains a CapacityQuota.
func newExplainQuotaCommand() *cobra.Command {
	var e explanation
	command := &cobra.Command{
		Use:     "quota NAME",
		Aliases: []string{"quotas", "capacityquota", "capacityquotas", "cq"},
		Short:   "Explain which nodes a CapacityQuota counts, what is left of it, and what it excludes",
		Long: `Reads the cluster once, decides as the controller would, and prints what the nodes of a CapacityQuota use of its limits,
which nodes and NodePools count, whether a further node of each NodePool fits, and for which pods the quota excludes a
NodePool. With --from, a capture or manifests are read instead of the cluster. Nothing is changed.`,
		Example: "  kubectl karpenter explain quota gpus\n  kubectl karpenter explain quota gpus -o json\n" +
			"  kubectl karpenter explain quota gpus --from capture.json",
		Args: oneName("the name of the CapacityQuota"),

		ValidArgsFunction: completeName("CapacityQuota"),
		RunE: func(command *cobra.Command, arguments []string) error {
			return e.print(command, func(ctx context.Context, out io.Writer) error {
				w, err := e.read(ctx, time.Now())
				if err != nil {
					return err
				}
				outcome, err := w.ExplainQuota(&e.policy, bareName(command, arguments[0]))
				if err != nil {
					return err
				}
				return printOutcome(outcome, e.output, out)
			})
		},
	}
	addNamespaceFlag(command.Flags(), &offline.Connection{}, "ignored, as by kubectl: CapacityQuotas have no namespace")
	e.addFlags(command.Flags())
	e.watch.addFlags(command.Flags())
	return command
}
