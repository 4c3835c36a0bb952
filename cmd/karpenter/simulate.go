package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/cli"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// simulation holds the flags of the verb.
type simulation struct {
	manifests         []string
	instanceTypes     string
	live              liveOptions
	fromCluster       bool
	now               string
	capture           string
	repeat            int
	maxPods           int
	output            string
	failUnschedulable bool
	disrupt           bool
	policy            policy
}

// policy holds the options of a decision.
type policy struct {
	preferences     string
	minValues       string
	nodePrice       float64
	packingEffort   int
	workBudget      int
	schedulerConfig string
	// economics and untilStable apply only with --disrupt.
	economics   economics
	untilStable bool
	// featureGates are the controller's. Only SpotToSpotConsolidation and StaticCapacity matter here.
	featureGates string
}

// newSimulateCommand returns the verb that computes, from files or a live cluster, which nodes would be launched for
// pending pods.
func newSimulateCommand() *cobra.Command {
	var s simulation
	command := &cobra.Command{
		Use:   "simulate -f FILE|DIR|- ... | --live",
		Short: "Say which nodes would be bought for the pods in some files, or which should leave",
		Long: `Reads manifests, a live cluster (--live), or both, decides as the controller would, and prints the nodes that would
be bought, what goes onto nodes that exist, and which pods have no place, with the reasons. Nothing is changed.

Files hold YAML documents, JSON objects or Lists: NodePools, NodeClaims, Nodes, Pods; Deployments, StatefulSets,
ReplicaSets, Jobs and CronJobs, whose missing replicas count as pending pods; DaemonSets, which take room on every node;
PersistentVolumeClaims, PersistentVolumes, StorageClasses, CSINodes, Namespaces, Services, LimitRanges, RuntimeClasses,
PriorityClasses and PodDisruptionBudgets; and captures that --capture wrote. Other kinds are passed over. Pools of files count as ready,
whatever the kind of their node class, and pods of files as tried in vain by kube-scheduler. With --live, objects of
files take the place of those of the cluster.

With --disrupt the question is another one: which nodes should leave, and what is bought in their place. The steps are
printed with what they save, and, for each node that stays, why; nodes that belong to a pool count as initialized.

What cannot be read is reported on standard error; the rest is decided and printed, and the exit code is 2.`,
		Example: "  karpenter simulate -f pools.yaml -f app/ --instance-types types.json\n" +
			"  kubectl get nodepools,pods,nodes -A -o json | karpenter simulate -f - -o json\n" +
			"  karpenter simulate --live -f changed-pool.yaml --capture what-if.json\n" +
			"  karpenter simulate --live --disrupt --until-stable --payback 24h",
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			for _, name := range []string{"payback", "min-stay", "move-price", "min-saving"} {
				if !s.disrupt && command.Flags().Changed(name) {
					return cli.UsageErrorf("--%s is about --disrupt, which is not given", name)
				}
			}
			return s.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	s.addFlags(command.Flags())
	return command
}

func (s *simulation) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVarP(&s.manifests, "filename", "f", nil, "file or folder of manifests, - for standard input; may be repeated")
	flags.StringVar(&s.instanceTypes, "instance-types", "", "file of instance types and prices (default: instance-types.json in a folder given by -f, else those of the cloud provider)")
	flags.BoolVar(&s.fromCluster, "live", false, "read the cluster that the kubeconfig names, and change nothing there")
	s.live.addFlags(flags)
	s.live.addNamespace(flags, "namespace of objects of files that name none (default: default; with --live that of the kubeconfig's context)")
	flags.StringVar(&s.now, "now", "", "the time of the decision, RFC 3339 (default: the newest timestamp of the input)")
	flags.StringVar(&s.capture, "capture", "", "file to write input, options and answer to, as one JSON document")
	flags.IntVar(&s.repeat, "repeat", 1, "convert and decide so many times, and print the last answer (for measurements)")
	flags.IntVar(&s.maxPods, "max-pods", mostPods, "how many pods workloads may be expanded to, those that are there included")
	flags.StringVarP(&s.output, "output", "o", "text", "text or json")
	flags.BoolVar(&s.failUnschedulable, "fail-on-unschedulable", false, "exit with 1 when a pod has no place")
	flags.BoolVar(&s.disrupt, "disrupt", false, "say which nodes should leave, instead of which should be bought")
	flags.BoolVar(&s.policy.untilStable, "until-stable", false, "with --disrupt: carry the steps out, in the model, until none is left")
	s.policy.addDisruptFlags(flags)
	s.policy.addFlags(flags)
}

func (p *policy) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&p.preferences, "preference-policy", "Respect", "Respect or Ignore preferences of pods")
	flags.StringVar(&p.minValues, "min-values-policy", "Strict", "Strict or BestEffort minValues")
	flags.Float64Var(&p.nodePrice, "node-overhead-price", usd(placement.ProductionNodePrice), "what a node costs beyond its price, in USD per hour")
	flags.IntVar(&p.packingEffort, "packing-effort", 1, "how many times the usual work may be spent on a cheaper plan")
	flags.IntVar(&p.workBudget, "work-budget", 0, "how many questions (may these pods go there?) the plan may ask; what is done by then is the answer (0: any number)")
	flags.StringVar(&p.schedulerConfig, "scheduler-config", "", "default topology spread, as text of YAML or JSON")
}

// addDisruptFlags adds the flags that matter only for disruption.
func (p *policy) addDisruptFlags(flags *pflag.FlagSet) {
	p.economics.addFlags(flags)
	flags.StringVar(&p.featureGates, "feature-gates", "", "those of the controller, Name=true|false, separated by commas; SpotToSpotConsolidation and StaticCapacity matter")
}

func (p *policy) check() error {
	switch {
	case p.preferences != "Respect" && p.preferences != "Ignore":
		return cli.UsageErrorf("--preference-policy is %q, want Respect or Ignore", p.preferences)
	case p.minValues != "Strict" && p.minValues != "BestEffort":
		return cli.UsageErrorf("--min-values-policy is %q, want Strict or BestEffort", p.minValues)
	case !(p.nodePrice >= 0) || p.nodePrice > 1e6:
		return cli.UsageErrorf("--node-overhead-price is %v, want USD per hour, zero or more", p.nodePrice)
	case p.packingEffort < 1 || p.packingEffort > 1000:
		return cli.UsageErrorf("--packing-effort is %d, want 1 to 1000", p.packingEffort)
	case p.workBudget < 0:
		return cli.UsageErrorf("--work-budget is %d, want zero or more", p.workBudget)
	}
	if _, err := convert.ParseSchedulerConfig(p.schedulerConfig); err != nil {
		return cli.UsageErrorf("--scheduler-config: %w", err)
	}
	if _, _, err := gates.Read(p.featureGates); err != nil {
		return cli.UsageErrorf("%w", err)
	}
	return p.economics.check()
}

// options converts the policy to options of the engine.
func (p *policy) options() placement.Options {
	nodePrice := int64(math.Round(p.nodePrice * model.Nano))
	if nodePrice == 0 {
		nodePrice = -1
	}
	return placement.Options{NodePrice: nodePrice, IgnorePreferences: p.preferences == "Ignore", RelaxMinValues: p.minValues == "BestEffort", Effort: p.packingEffort, WorkBudget: p.workBudget,
		AskNodes: true}
}

func usd(nano int64) float64 { return float64(nano) / model.Nano }

func (s *simulation) check() error {
	switch {
	case len(s.manifests) == 0 && !s.fromCluster:
		return cli.UsageErrorf("no manifests: name files or folders with -f, - for standard input, or read a cluster with --live")
	case s.output != "text" && s.output != "json":
		return cli.UsageErrorf("--output is %q, want text or json", s.output)
	case s.repeat < 1:
		return cli.UsageErrorf("--repeat is %d, want 1 or more", s.repeat)
	case s.maxPods < 1:
		return cli.UsageErrorf("--max-pods is %d, want 1 or more", s.maxPods)
	case s.policy.untilStable && !s.disrupt:
		return cli.UsageErrorf("--until-stable is about --disrupt, which is not given")
	case s.failUnschedulable && s.disrupt:
		return cli.UsageErrorf("--fail-on-unschedulable is about pods that wait, and --disrupt about nodes: want one of them")
	}
	if err := s.live.check(); err != nil {
		return err
	}
	return s.policy.check()
}

func (s *simulation) run(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	// 1. Read.
	w, err := s.read(ctx, in)
	if err != nil {
		return err
	}
	if len(w.problems) > 0 && len(w.pools)+len(w.pods)+len(w.nodes)+len(w.claims)+len(w.daemons)+len(w.workloads) == 0 {
		return unreadable(w.problems, progress) // there is nothing to decide
	}
	for _, kind := range w.ignored() {
		fmt.Fprintln(progress, "passed over", kind)
	}
	for _, notice := range append(w.notices(), w.assumed...) {
		fmt.Fprintln(progress, notice)
	}
	if invented := w.inventedFor(); invented != "" && s.instanceTypes == "" {
		fmt.Fprintln(progress, invented)
	}
	// Garbage of reading is collected before the decision, so that the decision can reuse the memory.
	runtime.GC()
	// 2. Convert and decide.
	a := s.decide(w)
	if a, ok := a.(*answer); ok && a.Pods.Total == 0 {
		fmt.Fprintln(progress, w.nobodyWaits())
	}
	// 3. Print.
	if err := s.tell(a, out); err != nil {
		return err
	}
	if s.capture != "" {
		if err := writeCapture(s.capture, w, s.policy, a); err != nil {
			return err
		}
	}
	if err := unreadable(w.problems, progress); err != nil {
		return err
	}
	if a, ok := a.(*answer); ok && len(a.Unschedulable) > 0 && s.failUnschedulable {
		return fmt.Errorf("%d of %d pods have no place", len(a.Unschedulable), a.Pods.Total)
	}
	return nil
}

// report is an answer of either kind.
type report interface {
	writeText(io.Writer) error
	writeJSON(io.Writer) error
	// brief returns the answer in one clause.
	brief() string
}

func (s *simulation) decide(w *world) report {
	if s.disrupt {
		return w.disrupt(&s.policy, s.repeat).answer()
	}
	return w.decide(s.policy.options(), s.repeat).answer()
}

func (s *simulation) tell(a report, out io.Writer) error {
	write := a.writeText
	if s.output == "json" {
		write = a.writeJSON
	}
	if err := write(out); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// read reads files, cluster and types, and prepares the rounds.
func (s *simulation) read(ctx context.Context, in io.Reader) (*world, error) {
	o, err := newObjects()
	if err != nil {
		return nil, err
	}
	o.keep, o.mostPods = s.capture != "", s.maxPods
	if o.home = s.live.namespace; s.fromCluster {
		o.home = s.live.home()
	}
	o.readAllPaths(s.manifests, in)
	if s.fromCluster {
		err = s.live.read(ctx, o, s.instanceTypes)
	} else {
		err = s.live.stockFiles(ctx, o, s.instanceTypes)
	}
	if err != nil {
		return nil, err
	}
	if s.now == "" && s.fromCluster {
		return newWorld(o, time.Now().UTC().Format(time.RFC3339), s.policy)
	}
	return newWorld(o, s.now, s.policy)
}

// newWorld completes the objects that were read.
func newWorld(o *objects, now string, p policy) (*world, error) {
	o.finish()
	w := &world{objects: o, now: o.newest}
	if w.now.IsZero() {
		w.now = time.Unix(0, 0)
	}
	if o.options != nil {
		w.now = o.options.Now
	}
	if now != "" {
		t, err := time.Parse(time.RFC3339, now)
		if err != nil {
			return nil, cli.UsageErrorf("--now is %q, want a time such as 2026-01-31T12:00:00Z", now)
		}
		w.now = t
	}
	w.now = w.now.UTC()
	var err error
	if w.defaultSpread, err = convert.ParseSchedulerConfig(p.schedulerConfig); err != nil {
		return nil, cli.UsageErrorf("--scheduler-config: %w", err)
	}
	w.prepare()
	return w, nil
}

// decision is a plan and its input.
type decision struct {
	told  *told
	snap  *model.Snapshot
	plan  *plan.Provision
	opts  placement.Options
	stats *stats
	// source is the source of the prices.
	source string
}

// decide converts the objects and decides, rounds times. No state is kept between rounds.
func (w *world) decide(opts placement.Options, rounds int) *decision {
	var d *decision
	for range rounds {
		d = &decision{opts: opts, source: w.sale.Source}
		d.stats = measure(func() {
			d.told = w.tell()
			d.snap = d.told.builder.Snapshot(w.now)
			d.plan = plan.Restrain(d.snap, placement.Schedule(d.snap, opts))
		})
	}
	w.problems = append(w.problems, d.told.problems...)
	return d
}

// unreadable reports what could not be read: the last problem is the error, the previous ones are lines.
func unreadable(problems []error, progress io.Writer) error {
	if len(problems) == 0 {
		return nil
	}
	last := len(problems) - 1
	for _, problem := range problems[:last] {
		fmt.Fprintln(progress, "karpenter:", oneLine(problem))
	}
	return cli.UsageErrorf("%s", oneLine(problems[last]))
}

// writeFile writes the data to a file.
func writeFile(path string, data []byte) error {
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return fmt.Errorf("writing: %w", readable(err))
	}
	return nil
}
