package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/doctor"
	"github.com/karpenter-go/karpenter/plugin/web"
)

// reportFlags holds the flags of the verb. It reads what the page reads.
type reportFlags struct {
	pageFlags
	cluster bool
	output  string
	// consultation has the settings of the doctor that are no flags of the verb from its environment variables.
	consultation consultation
}

// reportFormats are the formats of the verb.
var reportFormats = []string{formatHTML, formatMarkdown, formatJSON}

// newReportCommand returns the verb that writes what the page shows as a file.
func newReportCommand() *cobra.Command { return reportCommandAt(time.Now) }

// reportCommandAt returns the verb with a clock.
func reportCommandAt(now func() time.Time) *cobra.Command {
	f := reportFlags{consultation: consultation{now: now}}
	command := &cobra.Command{
		Use:   "report --live | -f FILE|DIR|- ...",
		Short: "Write fleet, cost, savings, pending pods and findings of a cluster as one file",
		Long: `Reads a live cluster (--live), or a capture or manifests (-f), and writes one file for others: the fleet as picture and
table, its cost beside that of a fresh fleet and the lower bound, what the cost is for, the plan, what keeps nodes
although they could be removed and what that costs, why pods are pending, and with --live what "doctor" finds. Nothing is
changed in the cluster.

The HTML loads nothing from elsewhere, and needs no script. Markdown and JSON hold the same without pictures.

Settings of the doctor come from the environment variables that the verb "doctor" reads, such as CLUSTER_NAME.`,
		Example: "  kubectl karpenter report --live > report.html\n  kubectl karpenter report --live -o markdown\n" +
			"  kubectl karpenter report -f capture.json -o json",
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return f.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	f.addFlags(command.Flags())
	return command
}

func (f *reportFlags) addFlags(flags *pflag.FlagSet) {
	f.addSourceFlags(flags)
	flags.BoolVar(&f.cluster, "live", false, "read the cluster that the kubeconfig names, and change nothing there")
	flags.StringVarP(&f.output, "output", "o", formatHTML, orList(reportFormats))
	others := pflag.NewFlagSet("", pflag.ContinueOnError)
	f.consultation.addFlags(others)
	flags.AddFlag(others.Lookup("service-account"))
}

func (f *reportFlags) run(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	f.output = markdownOf(f.output)
	_, err := f.cost.grouping()
	if err := errors.Join(checkOutput(f.output, reportFormats), err, f.live.Check(), f.policy.Check()); err != nil {
		return err
	}
	if f.cluster == (len(f.from) > 0) {
		return cli.UsageErrorf("want one of --live, to read a cluster, and -f, to read files")
	}
	overview, err := f.overview(in)(ctx)
	if err != nil {
		return err
	}
	problems := overview.Problems()
	if len(problems) > 0 && overview.Empty() {
		return unreadable(problems, progress)
	}
	var findings *doctor.Report
	if f.cluster {
		c := &f.consultation
		c.live, c.provider = f.live.Connection, f.live.CloudProvider
		if findings, err = c.examine(ctx); err != nil {
			return err
		}
	}
	report, err := web.NewReport(ctx, overview, f.source(), findings)
	if err != nil {
		return err
	}
	switch f.output {
	case formatJSON:
		err = report.WriteJSON(out)
	case formatMarkdown:
		err = report.WriteMarkdown(out)
	default:
		err = report.WriteHTML(out)
	}
	return errors.Join(err, unreadable(problems, progress))
}
