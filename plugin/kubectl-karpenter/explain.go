package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/history"
	"github.com/karpenter-go/karpenter/plugin/offline"
)

// newExplainCommand returns the verb that explains what happens to an object of a live cluster. Objects are named as
// in kubectl: by kind in singular, plural or short, and as KIND/NAME too.
func newExplainCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "explain",
		Short: "Explain what happens to a pod, a node or a pool, and why",
		// An argument that is not a kind is a name, or an error of its own. Its flags are those of the kind.
		DisableFlagParsing: true,
		RunE:               explainNamed,
		ValidArgsFunction:  completeKind,
	}
	command.AddCommand(newExplainPodCommand(), newExplainNodeCommand(), newExplainPoolCommand(),
		newExplainOverlayCommand(), newExplainBufferCommand(), newExplainQuotaCommand())
	for _, w := range workloads {
		command.AddCommand(newExplainWorkloadCommand(w.kind, w.aliases))
	}
	return command
}

// explainNamed runs the command of the kind in KIND/NAME.
func explainNamed(command *cobra.Command, arguments []string) error {
	if len(arguments) == 0 || slices.Contains(arguments, "-h") || slices.Contains(arguments, "--help") {
		return command.Help()
	}
	for i, argument := range arguments {
		kind, name, both := strings.Cut(argument, "/")
		of := kindNamed(command, kind)
		if !both || of == nil {
			continue
		}
		of.SetContext(command.Context())
		if err := of.ParseFlags(slices.Concat(arguments[:i], []string{name}, arguments[i+1:])); err != nil {
			return command.Root().FlagErrorFunc()(of, err)
		}
		if err := of.Args(of, of.Flags().Args()); err != nil {
			return err
		}
		return of.RunE(of, of.Flags().Args())
	}
	what := arguments[0]
	if strings.HasPrefix(what, "-") {
		return cli.UsageErrorf("nothing to explain: want pod, node, pool or a workload, and a name")
	}
	kind, _, _ := strings.Cut(what, "/")
	return cli.UsageErrorf("%q is not known, want pod, node, pool or a workload%s", kind, cli.DidYouMean(kind, kindsOf(command)))
}

// kindNamed returns the command of a kind; nil if there is none.
func kindNamed(command *cobra.Command, kind string) *cobra.Command {
	kind, _, _ = strings.Cut(kind, ".") // kubectl get -o name prints nodepool.karpenter.sh/default
	at := slices.IndexFunc(command.Commands(), func(c *cobra.Command) bool { return c.Name() == kind || c.HasAlias(kind) })
	if at < 0 {
		return nil
	}
	return command.Commands()[at]
}

// kindsOf returns all names of the kinds that can be explained.
func kindsOf(command *cobra.Command) []string {
	var names []string
	for _, c := range command.Commands() {
		names = append(append(names, c.Name()), c.Aliases...)
	}
	return names
}

// oneName accepts exactly one argument.
func oneName(want string) cobra.PositionalArgs {
	return func(_ *cobra.Command, arguments []string) error {
		if len(arguments) != 1 {
			return cli.UsageErrorf("%d arguments, want one: %s", len(arguments), want)
		}
		return nil
	}
}

// bareName returns a name without the kind that `kubectl get -o name` prints before it.
func bareName(command *cobra.Command, name string) string {
	kind, rest, both := strings.Cut(name, "/")
	kind, _, _ = strings.Cut(kind, ".")
	if both && (kind == command.Name() || command.HasAlias(kind)) {
		return rest
	}
	return name
}

// explanation holds the flags of the verb.
type explanation struct {
	live          offline.Cluster
	instanceTypes string
	// from are files that are read instead of the cluster, - for in.
	from       []string
	in         io.Reader
	output     string
	everywhere bool
	policy     offline.Policy
	watch      watch
	// progress is where the kinds are named that the user may not read; nil for nowhere.
	progress io.Writer
	// now is the time of the decision on files, RFC 3339; empty for the newest timestamp.
	now string
	// files is what was read of files last.
	files *offline.Manifests
	// logs are files with the controller's log, - for in. past is what they say, once they are read.
	logs []string
	past *history.View
}

// print prints the answer once, or with --watch whenever it changes.
func (e *explanation) print(command *cobra.Command, answer func(context.Context, io.Writer) error) error {
	e.progress, e.in = command.ErrOrStderr(), command.InOrStdin()
	return e.watch.run(command.Context(), command.OutOrStdout(), e.progress, func(ctx context.Context, out io.Writer) error {
		if err := answer(ctx, out); err != nil || e.files == nil {
			return err
		}
		return unreadable(e.files.Problems, e.progress)
	})
}

func newExplainPodCommand() *cobra.Command {
	var e explanation
	command := &cobra.Command{
		Use:     "pod [[NAMESPACE/]NAME]",
		Aliases: []string{"pods", "po"},
		Short:   "Explain where a pod, or each pending pod, of a live cluster would run, or why nowhere",
		Long: `Reads the cluster once, decides as the controller would, and prints where one pod would run: on an existing node, on one
that is being launched, or on a new one with its type, zone and price. For an unschedulable pod it prints the constraint
that excludes each pool, and what would help. A pod that is named without a namespace is in that of --namespace, else in
that of the kubeconfig's context. Nothing is changed.

Without a name, all pending pods of the namespace are explained, or with --all-namespaces those of all namespaces. Pods
with the same result share a paragraph.`,
		Example: "  kubectl karpenter explain pod default/web-0\n  kubectl karpenter explain pod web-0 -n shop -o json\n" +
			"  kubectl karpenter explain pod/web-0\n  kubectl karpenter explain pods -A\n  kubectl karpenter explain deploy/web",
		ValidArgsFunction: completePod,
		Args: func(command *cobra.Command, arguments []string) error {
			if len(arguments) == 0 {
				return nil
			}
			return oneName("the pod as NAMESPACE/NAME, or NAME and --namespace; or none, for all pending pods")(command, arguments)
		},
		RunE: func(command *cobra.Command, arguments []string) error {
			return e.print(command, func(ctx context.Context, out io.Writer) error {
				if len(arguments) == 0 {
					return e.runPods(ctx, "", "", out)
				}
				return e.run(ctx, bareName(command, arguments[0]), out)
			})
		},
	}
	e.addFlags(command.Flags())
	e.watch.addFlags(command.Flags())
	e.addLogFlag(command.Flags())
	addNamespaceFlag(command.Flags(), &e.live.Connection, "namespace of the pod (default: that of the kubeconfig's context)")
	command.Flags().BoolVarP(&e.everywhere, "all-namespaces", "A", false, "explain the pending pods of all namespaces")
	return command
}

// workloads are the kinds whose pods can be explained together.
var workloads = []struct {
	kind    string
	aliases []string
}{
	{"Deployment", []string{"deployments", "deploy"}},
	{"StatefulSet", []string{"statefulsets", "sts"}},
	{"ReplicaSet", []string{"replicasets", "rs"}},
	{"Job", []string{"jobs"}},
	{"CronJob", []string{"cronjobs", "cj"}},
}

// newExplainWorkloadCommand returns the command that explains the pending pods of a workload.
func newExplainWorkloadCommand(kind string, aliases []string) *cobra.Command {
	var e explanation
	name := strings.ToLower(kind)
	command := &cobra.Command{
		Use:     name + " NAME",
		Aliases: aliases,
		Short:   "Explain where the pending pods of a " + kind + " would run, or why nowhere",
		Long:    "Explains the pending pods of a " + kind + ", as `kubectl karpenter explain pod` explains one. Nothing is changed.",
		Example: "  kubectl karpenter explain " + aliases[len(aliases)-1] + "/web -n shop",
		Args:    oneName("the name of the " + kind),

		ValidArgsFunction: completeName(kind),
		RunE: func(command *cobra.Command, arguments []string) error {
			return e.print(command, func(ctx context.Context, out io.Writer) error {
				return e.runPods(ctx, kind, bareName(command, arguments[0]), out)
			})
		},
	}
	e.addFlags(command.Flags())
	e.watch.addFlags(command.Flags())
	addNamespaceFlag(command.Flags(), &e.live.Connection, "namespace of the "+kind+" (default: that of the kubeconfig's context)")
	return command
}

func (e *explanation) addFlags(flags *pflag.FlagSet) {
	addClusterFlags(flags, &e.live)
	addFilesFlag(flags, &e.from, "capture, or file or folder of manifests, to read instead of the cluster")
	flags.StringVar(&e.now, "now", "", "the time of the decision with -f, RFC 3339 (default: the newest timestamp of the files)")
	flags.StringVar(&e.instanceTypes, "instance-types", "", "file of instance types and prices (default: those of the cloud provider)")
	flags.StringVarP(&e.output, "output", "o", formatText, orList(formats))
	addPolicyFlags(flags, &e.policy)
}

func (e *explanation) run(ctx context.Context, name string, out io.Writer) error {
	within, _, full := strings.Cut(name, "/")
	switch {
	case e.everywhere:
		return cli.UsageErrorf("--all-namespaces and pod %s: give one of them", name)
	case !full:
		name = e.namespace() + "/" + name
	case e.live.Namespace != "" && within != e.live.Namespace:
		return cli.UsageErrorf("pod %s is not in --namespace %s: give one of them", name, e.live.Namespace)
	}
	w, err := e.read(ctx, time.Now())
	if err != nil {
		return err
	}
	outcome, err := w.ExplainPod(&e.policy, name)
	if err != nil {
		return e.withPast(err, "pod", name)
	}
	namespace, bare, _ := strings.Cut(name, "/")
	e.addRefusals(ctx, namespace, bare, outcome)
	if outcome.Past, err = e.pastOfPod(name); err != nil {
		return err
	}
	return printOutcome(outcome, e.output, out)
}

// runPods explains the pending pods of the namespace, or of all; of one workload if its kind is given.
func (e *explanation) runPods(ctx context.Context, kind, name string, out io.Writer) error {
	if err := e.checkLog(""); err != nil {
		return err
	}
	of := offline.Selection{Kind: kind, Name: name}
	switch {
	case e.everywhere && e.live.Namespace != "":
		return cli.UsageErrorf("--all-namespaces and --namespace %s: give one of them", e.live.Namespace)
	case e.live.Namespace == "" && len(e.from) > 0: // of all namespaces
	case !e.everywhere:
		of.Namespace = e.namespace()
	}
	e.live.Jobs = kind == "CronJob"
	w, err := e.read(ctx, time.Now())
	if err != nil {
		return err
	}
	outcome, err := w.ExplainPods(&e.policy, of)
	if err != nil {
		return err
	}
	var outcomes []*offline.PodOutcome
	for _, group := range outcome.Groups {
		outcomes = append(outcomes, group.PodOutcome)
	}
	e.addRefusals(ctx, of.Namespace, "", outcomes...)
	outcome.Wide = e.output == formatWide
	return printOutcome(outcome, e.output, out)
}

// addRefusals adds what the controller of a live cluster reports about pods that need new nodes.
func (e *explanation) addRefusals(ctx context.Context, namespace, pod string, outcomes ...*offline.PodOutcome) {
	launched := func(o *offline.PodOutcome) bool { return o.Outcome == "NewNode" }
	if len(e.from) > 0 || !slices.ContainsFunc(outcomes, launched) {
		return
	}
	refusals := e.live.Refusals(ctx, namespace, pod, time.Now())
	for _, o := range outcomes {
		if launched(o) {
			o.Refused = refusals[o.Pod]
		}
	}
}

// namespace returns the namespace of objects that are named without one.
func (e *explanation) namespace() string {
	if len(e.from) > 0 {
		return cmp.Or(e.live.Namespace, corev1.NamespaceDefault)
	}
	return e.live.Home()
}

// read reads the cluster as of a time, or the files with their own time.
func (e *explanation) read(ctx context.Context, now time.Time) (*offline.Manifests, error) {
	if err := checkOutput(e.output, formats); err != nil {
		return nil, err
	}
	if err := errors.Join(e.live.Check(), e.policy.Check()); err != nil {
		return nil, err
	}
	source := offline.Source{Live: len(e.from) == 0, Paths: e.from, Stdin: e.in, Cluster: &e.live, InstanceTypes: e.instanceTypes}
	switch {
	case source.Live && e.now != "":
		return nil, cli.UsageErrorf("--now is for -f: a cluster is as it is now")
	case source.Live:
		source.Now = now
	case e.now != "":
		at, err := time.Parse(time.RFC3339, e.now)
		if err != nil {
			return nil, cli.UsageErrorf("--now is %q, want a time such as 2026-01-31T12:00:00Z", e.now)
		}
		source.Now = at
	}
	w, err := source.Read(ctx, e.policy)
	if err == nil && !source.Live {
		err = e.noteFiles(w)
	}
	if err == nil && e.progress != nil && w.Denied() != "" {
		fmt.Fprintf(e.progress, "%s: %s\n", plugin, w.Denied())
	}
	return w, err
}

// noteFiles prints what the answer assumes of the files. It returns an error if they have nothing that can be read.
func (e *explanation) noteFiles(w *offline.Manifests) error {
	progress := cmp.Or(e.progress, io.Discard)
	if e.files = w; w.Empty() && len(w.Problems) > 0 {
		return unreadable(w.Problems, progress)
	}
	for _, note := range w.Notes() {
		fmt.Fprintf(progress, "%s: %s\n", plugin, note)
	}
	return nil
}

func newExplainNodeCommand() *cobra.Command {
	return newDisruptExplanation("the node", (*explanation).runNode, &cobra.Command{
		Use:     "node [NAME]",
		Aliases: []string{"nodes", "no", "nodeclaim", "nodeclaims", "nc"},

		ValidArgsFunction: completeName("Node", "NodeClaim"),

		Short: "Explain why a node of a live cluster is kept or removed",
		Long: `Reads the cluster once, decides as the controller would, and prints what happens to one node, given by its own name or
that of its NodeClaim: the command that removes it and why, or which pod, PodDisruptionBudget, budget, policy or price
keeps it, when that could change, and what removing only this node would save. For a node that is being deleted, it
names the pods that block its drain. With --log, what the controller's log says about the node is added. Nothing is
changed.

Without a name, it prints which nodes would be removed now, and why the others are kept, as "simulate --live --disrupt"
does.`,
		Example: "  kubectl karpenter explain node default-x7k2p\n  kubectl karpenter explain node default-x7k2p -o json\n" +
			"  kubectl logs -n karpenter deploy/karpenter | kubectl karpenter explain node default-x7k2p --log -",
	})
}

// newDisruptExplanation completes a command that explains a decision about nodes for one name.
func newDisruptExplanation(what string, run func(*explanation, context.Context, string, io.Writer) error,
	command *cobra.Command) *cobra.Command {
	var e explanation
	command.Args = func(command *cobra.Command, arguments []string) error {
		if len(arguments) == 0 {
			return nil
		}
		return oneName("the name of "+what+", or none, for all")(command, arguments)
	}
	command.RunE = func(command *cobra.Command, arguments []string) error {
		return e.print(command, func(ctx context.Context, out io.Writer) error {
			if len(arguments) == 0 {
				return run(&e, ctx, "", out)
			}
			return run(&e, ctx, bareName(command, arguments[0]), out)
		})
	}
	addNamespaceFlag(command.Flags(), &offline.Connection{}, "ignored, as by kubectl: nodes and NodePools have no namespace")
	e.addFlags(command.Flags())
	e.watch.addFlags(command.Flags())
	addDisruptFlags(command.Flags(), &e.policy)
	if command.Name() == "node" {
		e.addLogFlag(command.Flags())
	}
	return command
}

func (e *explanation) runNode(ctx context.Context, name string, out io.Writer) error {
	if err := e.checkLog(name); err != nil {
		return err
	}
	w, err := e.read(ctx, time.Now())
	if err != nil {
		return err
	}
	if name == "" {
		answer := w.Disrupt(&e.policy, 1).Answer()
		answer.Stats = nil
		return printOutcome(allNodes{answer, widthOf(e.output, out)}, e.output, out)
	}
	outcome, err := e.explainNode(ctx, w, name)
	if err != nil {
		return e.withPast(err, "node", name)
	}
	if outcome.Past, err = e.pastOfNode(cmp.Or(outcome.NodeClaim, outcome.Node)); err != nil {
		return err
	}
	return printOutcome(outcome, e.output, out)
}

// allNodes adapts an answer about all nodes to the printer.
type allNodes struct {
	*offline.DisruptAnswer
	columns int
}

func (a allNodes) Text() string { return a.DisruptAnswer.Text(a.columns) }

// explainNode returns the result for a node, with what only the live cluster says.
func (e *explanation) explainNode(ctx context.Context, w *offline.Manifests, name string) (*offline.NodeOutcome, error) {
	outcome, err := w.ExplainNode(&e.policy, name)
	if err == nil && outcome.NodeClaim != "" && len(e.from) == 0 {
		outcome.Disputed = e.live.Dispute(ctx, outcome.NodeClaim, time.Now())
	}
	return outcome, err
}

func newExplainOverlayCommand() *cobra.Command {
	explain := func(w *offline.Manifests, _ *offline.Policy, name string) (*offline.OverlayDetails, error) {
		return w.ExplainOverlay(name)
	}
	return newClusterExplanation("NodeOverlay", explain, &cobra.Command{
		Use:     "overlay NAME",
		Aliases: []string{"overlays", "nodeoverlay", "nodeoverlays"},
		Short:   "Explain which prices and resources a NodeOverlay changes",
		Long: `Reads the cluster once and prints, for each NodePool, which prices of offerings and which resources of instance types a
NodeOverlay changes, from which value to which, and which other NodeOverlay takes precedence. Nothing is changed.`,
		Example: "  kubectl karpenter explain overlay savings-plan\n  kubectl karpenter explain overlay savings-plan -o json",
	})
}

func newExplainQuotaCommand() *cobra.Command {
	return newClusterExplanation("CapacityQuota", (*offline.Manifests).ExplainQuota, &cobra.Command{
		Use:     "quota NAME",
		Aliases: []string{"quotas", "capacityquota", "capacityquotas", "cq"},
		Short:   "Explain which nodes a CapacityQuota counts, what is left of it, and what it excludes",
		Long: `Reads the cluster once, decides as the controller would, and prints what the nodes of a CapacityQuota use of its limits,
which nodes and NodePools count, whether a further node of each NodePool fits, and for which pods the quota excludes a
NodePool. With -f, a capture or manifests are read instead of the cluster. Nothing is changed.`,
		Example: "  kubectl karpenter explain quota gpus\n  kubectl karpenter explain quota gpus -o json\n" +
			"  kubectl karpenter explain quota gpus -f capture.json",
	})
}

// newClusterExplanation completes a command that explains one object of a kind without namespaces.
func newClusterExplanation[T outcome](kind string, explain func(*offline.Manifests, *offline.Policy, string) (T, error),
	command *cobra.Command) *cobra.Command {
	var e explanation
	command.Args, command.ValidArgsFunction = oneName("the name of the "+kind), completeName(kind)
	command.RunE = func(command *cobra.Command, arguments []string) error {
		return e.print(command, func(ctx context.Context, out io.Writer) error {
			w, err := e.read(ctx, time.Now())
			if err != nil {
				return err
			}
			answer, err := explain(w, &e.policy, bareName(command, arguments[0]))
			if err != nil {
				return err
			}
			return printOutcome(answer, e.output, out)
		})
	}
	addNamespaceFlag(command.Flags(), &offline.Connection{}, "ignored, as by kubectl: "+kind+"s have no namespace")
	e.addFlags(command.Flags())
	e.watch.addFlags(command.Flags())
	return command
}

func newExplainPoolCommand() *cobra.Command {
	return newDisruptExplanation("the pool", (*explanation).runPool, &cobra.Command{
		Use:     "pool [NAME]",
		Aliases: []string{"pools", "nodepool", "nodepools", "np"},

		ValidArgsFunction: completeName("NodePool"),

		Short: "Explain what a pool costs, what its budgets allow, and why its nodes are kept",
		Long: `Reads the cluster once, decides as the controller would, and prints for one NodePool what its nodes cost and the lower
bound of that cost, what its budgets allow now and when that changes, which nodes have drifted or are due for renewal,
which commands are in progress, and why the other nodes are kept. Nothing is changed. Without a name, it does so for all
NodePools.`,
		Example: "  kubectl karpenter explain pool default\n  kubectl karpenter explain pool default -o json",
	})
}

func (e *explanation) runPool(ctx context.Context, name string, out io.Writer) error {
	w, err := e.read(ctx, time.Now())
	if err != nil {
		return err
	}
	if name == "" {
		return printOutcome(w.ExplainPools(&e.policy), e.output, out)
	}
	outcome, err := w.ExplainPool(&e.policy, name)
	if err != nil {
		return err
	}
	return printOutcome(outcome, e.output, out)
}
