package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/review"
)

// simulation holds the flags of the verb.
type simulation struct {
	source  offline.Source
	cluster offline.Cluster
	now     string
	capture string
	repeat  int
	output  string
	disrupt bool
	diff    bool
	policy  offline.Policy
	// exitCode makes it an error that the answer is not allowed; failUnschedulable is the older name for it and
	// allowed.Unschedulable.
	exitCode, failUnschedulable bool
	allowed                     review.Policy
	marker                      string
}

// newSimulateCommand returns the verb that computes, from files or a live cluster, which nodes would be launched for
// pending pods.
func newSimulateCommand() *cobra.Command {
	var s simulation
	command := &cobra.Command{
		Use:   "simulate -f FILE|DIR|- ... | --live | --diff OLD NEW",
		Short: "Print which nodes would be launched for pods, or which nodes would be removed",
		Long: `Reads manifests, a live cluster (--live), or both, decides as the controller would, and prints the nodes that would
be launched, the pods that fit on existing nodes, and the unschedulable pods with the reasons. Nothing is changed.

Files hold YAML documents, JSON objects or Lists: NodePools, NodeClaims, Nodes, Pods; Deployments, StatefulSets,
ReplicaSets, Jobs and CronJobs, whose missing replicas count as pending pods; DaemonSets, which use capacity of the
nodes on which their pods run; PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes, Namespaces,
Services, LimitRanges, RuntimeClasses, PriorityClasses and PodDisruptionBudgets; NodeOverlays; CapacityQuotas;
CapacityBuffers with what they refer to, whose room is planned after the pods; and captures that --capture wrote. Other
kinds are skipped. Pools of files count as ready, and pods of files as unschedulable. Types and prices of AWS and of
simulated nodes are built in; those of other providers come from --instance-types. With --live, objects of files take the
place of those of the cluster.

With --disrupt it prints which nodes would be removed and which would be launched to replace them: the steps with their
savings, and for each node that is kept, why. Nodes that belong to a pool count as initialized.

With --diff OLD NEW it compares two versions of manifests, files or folders, for example of a NodePool before and after a
change: the fleet of the cluster (--live) or of the files of -f, at rest with each of them. The first line says what
changed and what it costs; then come the fields, which nodes are replaced because they drift, how many pods move, and
which pods are unschedulable. --live --diff -f NEW compares with the objects of the cluster. -o markdown, which implies
--diff, is for a comment on a pull request. With --exit-code, the exit code is 1 if the change is not allowed.

On a terminal, the text fits its width: long names are shortened, and the last columns may be missing. -o wide prints
all of them, as for a file.

Input that cannot be read is reported on standard error; the rest is decided and printed, and the exit code is 2.`,
		Example: "  kubectl karpenter simulate -f pools.yaml -f app/ --instance-types types.json\n" +
			"  kubectl get nodepools,pods,nodes -A -o json | kubectl karpenter simulate -f - -o json\n" +
			"  kubectl karpenter simulate --live -f changed-pool.yaml --capture what-if.json\n" +
			"  kubectl karpenter simulate --live --disrupt --until-stable --payback 24h\n" +
			"  kubectl karpenter simulate --live --diff old/pool.yaml new/pool.yaml -o markdown\n" +
			"  kubectl karpenter simulate -f capture.json --diff old/ new/ --exit-code --max-increase 5%",
		RunE: func(command *cobra.Command, arguments []string) error {
			s.output = markdownOf(s.output)
			if s.diff = s.diff || s.output == formatMarkdown; s.diff {
				return s.runDiff(command, arguments)
			}
			if err := cli.NoArguments(command, arguments); err != nil {
				return err
			}
			for _, name := range []string{"payback", "min-stay", "move-price", "min-saving"} {
				if !s.disrupt && command.Flags().Changed(name) {
					return cli.UsageErrorf("--%s requires --disrupt", name)
				}
			}
			return s.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	s.addFlags(command.Flags())
	return command
}

func (s *simulation) addFlags(flags *pflag.FlagSet) {
	s.source.Cluster = &s.cluster
	addFilesFlag(flags, &s.source.Paths, "file or folder of manifests")
	flags.StringVar(&s.source.InstanceTypes, "instance-types", "",
		"file of instance types and prices (default: instance-types.json in a folder given by -f, else those of the cloud provider)")
	flags.BoolVar(&s.source.Live, "live", false, "read the cluster that the kubeconfig names, and change nothing there")
	addClusterFlags(flags, &s.cluster)
	addNamespaceFlag(flags, &s.cluster.Connection,
		"namespace of objects of files that name none (default: default; with --live that of the kubeconfig's context)")
	flags.StringVar(&s.now, "now", "", "the time of the decision, RFC 3339 (default: the newest timestamp of the input)")
	flags.StringVar(&s.capture, "capture", "", "file to write input, options and answer to, as one JSON document")
	flags.IntVar(&s.repeat, "repeat", 1, "convert and decide so many times, and print the last answer (for measurements)")
	cli.Hide(flags, "repeat")
	flags.IntVar(&s.source.MaxPods, "max-pods", offline.MostPods, "how many pods workloads may be expanded to, those that are there included")
	flags.BoolVar(&s.diff, "diff", false, "compare the manifests OLD and NEW, or with --live those of the cluster with those of -f")
	flags.StringVarP(&s.output, "output", "o", formatText, orList(documents)+"; with --diff also markdown")
	flags.BoolVar(&s.exitCode, "exit-code", false, "exit with 1 when the answer is not allowed: by --forbid-unschedulable; with --diff "+
		"also by --max-increase, and when a NodePool can launch nothing with the change only")
	flags.BoolVar(&s.allowed.Unschedulable, "forbid-unschedulable", false,
		"allow no unschedulable pod; with --diff none that is unschedulable with the change only")
	flags.Var(&s.allowed.Increase, "max-increase",
		"with --diff: the most that the fleet at rest may cost more, in USD a month (50) or as a share (5%)")
	flags.BoolVar(&s.failUnschedulable, "fail-on-unschedulable", false, "the older name of --exit-code --forbid-unschedulable")
	cli.Hide(flags, "fail-on-unschedulable")
	flags.StringVar(&s.marker, "marker", review.DefaultMarker,
		"with -o markdown: the key in the first line, by which a workflow finds this comment among several")
	flags.BoolVar(&s.disrupt, "disrupt", false, "print which nodes would be removed, instead of which would be launched")
	addPolicyFlags(flags, &s.policy)
	addDisruptFlags(flags, &s.policy)
	flags.BoolVar(&s.policy.UntilStable, "until-stable", false, "with --disrupt: apply the steps to the model, and let time pass, until none is left")
}

func (s *simulation) check() error {
	if s.failUnschedulable {
		s.exitCode, s.allowed.Unschedulable = true, true
	}
	known := documents
	if s.diff {
		known = append(slices.Clone(documents), formatMarkdown)
	}
	if err := checkOutput(s.output, known); err != nil {
		return err
	}
	switch {
	case len(s.source.Paths) == 0 && !s.source.Live && !s.diff:
		return cli.UsageErrorf("no manifests: name files or folders with -f, - for standard input, or read a cluster with --live")
	case s.repeat < 1:
		return cli.UsageErrorf("--repeat is %d, want 1 or more", s.repeat)
	case s.source.MaxPods < 1:
		return cli.UsageErrorf("--max-pods is %d, want 1 or more", s.source.MaxPods)
	case s.policy.UntilStable && !s.disrupt:
		return cli.UsageErrorf("--until-stable requires --disrupt")
	case s.allowed.Unschedulable && s.disrupt:
		return cli.UsageErrorf("--forbid-unschedulable is about pending pods, and --disrupt about nodes: want one of them")
	case s.exitCode && !s.diff && !s.allowed.Unschedulable:
		return cli.UsageErrorf("--exit-code without --diff judges unschedulable pods: want --forbid-unschedulable too")
	case s.allowed.Increase.String() != "" && !s.diff:
		return cli.UsageErrorf("--max-increase requires --diff")
	case s.marker != review.DefaultMarker && s.output != formatMarkdown:
		return cli.UsageErrorf("--marker requires -o markdown")
	}
	if _, err := review.Marker(s.marker); err != nil {
		return cli.UsageErrorf("--marker is %q, %w", s.marker, err)
	}
	if s.now != "" {
		var err error
		if s.source.Now, err = time.Parse(time.RFC3339, s.now); err != nil {
			return cli.UsageErrorf("--now is %q, want a time such as 2026-01-31T12:00:00Z", s.now)
		}
	}
	if err := s.cluster.Check(); err != nil {
		return err
	}
	return s.policy.Check()
}

func (s *simulation) run(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	// 1. Read.
	s.source.Stdin, s.source.Keep = in, s.capture != ""
	w, err := s.source.Read(ctx, s.policy)
	if err != nil {
		return err
	}
	if len(w.Problems) > 0 && w.Empty() {
		return unreadable(w.Problems, progress)
	}
	for _, note := range w.Notes() {
		fmt.Fprintln(progress, note)
	}
	// Garbage of reading is collected before the decision, so that the decision can reuse the memory.
	runtime.GC()
	// 2. Convert and decide.
	a := s.decide(w)
	for _, note := range w.DaemonsAside() {
		fmt.Fprintln(progress, note)
	}
	launches, ofPods := a.(*offline.LaunchAnswer)
	if ofPods && launches.Pods.Total == 0 && launches.Room == nil {
		if len(w.Problems) > 0 { // which may be the pending pods
			return unreadable(w.Problems, progress)
		}
		fmt.Fprintln(progress, w.NothingPending())
	}
	// 3. Print.
	if err := s.print(a, out); err != nil {
		return err
	}
	if s.capture != "" {
		if err := offline.WriteCapture(s.capture, w, s.policy, a); err != nil {
			return err
		}
	}
	if err := unreadable(w.Problems, progress); err != nil {
		return err
	}
	if ofPods && len(launches.Unschedulable) > 0 && s.exitCode {
		return fmt.Errorf("%d of %d pods are unschedulable", len(launches.Unschedulable), launches.Pods.Total)
	}
	return nil
}

func (s *simulation) decide(w *offline.Manifests) offline.Answer {
	if s.disrupt {
		return w.Disrupt(&s.policy, s.repeat).Answer()
	}
	return w.Decide(&s.policy, s.repeat).Answer()
}

func (s *simulation) print(a offline.Answer, out io.Writer) error {
	var err error
	switch s.output {
	case formatJSON:
		err = a.WriteJSON(out)
	case formatYAML:
		err = asYAML(out, a.WriteJSON)
	case formatMarkdown:
		var marker string
		if marker, err = review.Marker(s.marker); err == nil {
			err = a.(*offline.DiffAnswer).WriteMarkdown(out, marker)
		}
	default:
		width := widthOf(s.output, out)
		_, err = io.WriteString(out, wrapped(a.Text(width), width))
	}
	if err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// unreadable reports what could not be read: the last problem is the error, the previous ones are lines.
func unreadable(problems []error, progress io.Writer) error {
	if len(problems) == 0 {
		return nil
	}
	last := len(problems) - 1
	for _, problem := range problems[:last] {
		fmt.Fprintf(progress, "%s: %s\n", plugin, offline.OneLine(problem))
	}
	return cli.UsageErrorf("%s", offline.OneLine(problems[last]))
}
