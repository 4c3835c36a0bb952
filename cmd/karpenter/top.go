package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/internal/cli"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/top"
)

// leastInterval prevents a view of a large cluster from reading it continuously.
const leastInterval = time.Second

// view holds the flags of the verb.
type view struct {
	explanation
	once     bool
	interval time.Duration
	sort     string
	reverse  bool
	filter   string
	// everywhere is the default; the flag exists because users are used to -A.
	everywhere bool
	// now is the clock.
	now func() time.Time
}

// newTopCommand returns the verb that shows a live cluster.
func newTopCommand() *cobra.Command { return topCommandAt(time.Now) }

// topCommandAt returns the verb with a clock.
func topCommandAt(now func() time.Time) *cobra.Command {
	v := view{now: now}
	command := &cobra.Command{
		Use:   "top",
		Short: "Show the nodes of a live cluster, how full they are and what they cost, and the pods that wait",
		Long: `Reads the cluster again and again, and shows its nodes with what pods ask of them, type, zone, capacity type, price,
pods and state; the pods that wait and why; and what it all costs against the least that any plan could cost. Nothing
is changed.

Keys: up, down, page up, page down, home, end (or j, k, space, g, G) move; tab goes from nodes to waiting pods and back;
s sorts by the next column, r reverses; / filters, escape drops the filter; q leaves.

With --once, or where standard output is no terminal, the whole is printed once, as plain text.`,
		Example: "  karpenter top\n  karpenter top --once --sort price\n  karpenter top -o json",
		Args:    cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return v.run(command.Context(), command.InOrStdin(), command.OutOrStdout())
		},
	}
	v.addFlags(command.Flags())
	return command
}

func (v *view) addFlags(flags *pflag.FlagSet) {
	v.explanation.addFlags(flags)
	v.live.addNamespace(flags, "show only waiting pods of this namespace (default: those of all namespaces)")
	flags.BoolVarP(&v.everywhere, "all-namespaces", "A", false, "show waiting pods of all namespaces, as without --namespace")
	flags.BoolVar(&v.once, "once", false, "print once, as plain text")
	flags.DurationVar(&v.interval, "interval", 5*time.Second, "pause between two readings of the cluster, 1s or more")
	flags.StringVar(&v.sort, "sort", "name", "column to sort nodes by: "+strings.Join(top.Orders(), ", "))
	flags.BoolVar(&v.reverse, "reverse", false, "sort the other way round")
	flags.StringVar(&v.filter, "filter", "", "only nodes and pods in which this text occurs")
}

func (v *view) run(ctx context.Context, in io.Reader, out io.Writer) error {
	switch {
	case v.everywhere && v.live.namespace != "":
		return cli.UsageErrorf("--all-namespaces and --namespace %s: give one of them", v.live.namespace)
	case v.interval < leastInterval:
		return cli.UsageErrorf("--interval is %s, want 1s or more", v.interval)
	case !slices.Contains(top.Orders(), v.sort):
		return cli.UsageErrorf("--sort is %q, want %s", v.sort, strings.Join(top.Orders(), ", "))
	}
	if v.output == "text" && !v.once && isTerminal(out) {
		program := top.Program{Read: v.read, Interval: v.interval, In: in, Out: out, Sort: v.sort, Reverse: v.reverse, Filter: v.filter}
		return program.Run(ctx)
	}
	fleet, err := v.read(ctx)
	if err != nil {
		return err
	}
	fleet = fleet.Filter(v.filter)
	top.Sort(fleet.Nodes, v.sort, v.reverse)
	return v.print(pageOf{fleet}, out)
}

// pageOf adapts a fleet to the printer.
type pageOf struct{ *top.Fleet }

func (p pageOf) text() string { return top.Text(p.Fleet) }

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}

// read reads the cluster and decides as the controller would.
func (v *view) read(ctx context.Context) (*top.Fleet, error) {
	w, err := v.worldAt(ctx, v.now())
	if err != nil {
		return nil, err
	}
	d := w.decide(v.policy.options(), 1)
	fleet := &top.Fleet{At: d.snap.Now, PriceSource: d.source, Nodes: []top.Node{}, Waiting: d.waitingPods(v.live.namespace)}
	var used, usable quantity.Vector
	var price int64
	for _, n := range d.snap.Nodes {
		fleet.Nodes = append(fleet.Nodes, nodeLineOf(d.snap, n))
		fleet.Pods += len(n.Pods)
		if n.Stage >= model.Registered {
			used, usable = used.Add(n.Used), usable.Add(n.Usable)
		}
		if n.Ours() {
			price += n.LeastPrice()
		}
	}
	fleet.CPU, fleet.Memory = share(used, usable, quantity.CPU), share(used, usable, quantity.Memory)
	least, _ := disruption.LeastCost(d.snap, v.policy.disruptOptions(), func(*model.Node) bool { return true })
	fleet.PricePerHour, fleet.LowerBoundPerHour = usd(price), usd(least)
	return fleet, nil
}

func share(used, usable quantity.Vector, r quantity.Resource) float64 {
	if usable.At(r) <= 0 {
		return 0
	}
	return float64(used.At(r)) / float64(usable.At(r))
}

func nodeLineOf(snap *model.Snapshot, n *model.Node) top.Node {
	line := top.Node{
		Name: n.Name, NodePool: n.Pool, InstanceType: cmp.Or(n.Labels[model.LabelType], n.LeastType()), Zone: n.Labels[model.LabelZone],
		CapacityType: n.Labels[model.LabelCapacityType], State: stateOf(n), CPU: share(n.Used, n.Usable, quantity.CPU),
		Memory: share(n.Used, n.Usable, quantity.Memory), Pods: len(n.Pods), Places: int(n.Usable.At(quantity.Pods)),
	}
	if n.Stage >= model.Registered {
		line.Amounts = top.Amounts{UsedCPU: n.Used.At(quantity.CPU), UsableCPU: n.Usable.At(quantity.CPU), UsedMemory: n.Used.At(quantity.Memory), UsableMemory: n.Usable.At(quantity.Memory)}
	}
	if n.Ours() {
		line.PricePerHour = usd(n.LeastPrice())
	}
	if !n.Created.IsZero() {
		line.Age = snap.Now.Sub(n.Created).Seconds()
	}
	return line
}

func stateOf(n *model.Node) string {
	switch {
	case n.Deleting:
		return top.StateLeaving
	case n.Command != "" || n.Disrupted:
		return top.StateDisrupted
	case n.Stage < model.Initialized && n.Ours():
		return n.Stage.String()
	case !n.Ready:
		return top.StateNotReady
	case n.Cordoned():
		return top.StateCordoned
	}
	return top.StateReady
}

// waitingPods returns the pods without a node, grouped by their reasons; unschedulable ones come first. An empty
// namespace means all namespaces.
func (d *decision) waitingPods(namespace string) []top.Waiting {
	list := []top.Waiting{}
	add := func(pods []*model.Pod, outcome, why string) {
		if namespace != "" {
			pods = slices.DeleteFunc(slices.Clone(pods), func(p *model.Pod) bool { return p.Namespace != namespace })
		}
		if pods = plan.Waiting(pods); len(pods) > 0 {
			list = append(list, top.Waiting{Pod: pods[0].Key(), Count: len(pods), Outcome: outcome, Why: why})
		}
	}
	for _, r := range d.plan.Refused {
		var reasons []string
		for _, why := range reasonsOf(d.snap, r) {
			if !slices.Contains(reasons, why.Message) {
				reasons = append(reasons, why.Message)
			}
		}
		add(r.Pods, "NoPlace", strings.Join(reasons, "; "))
	}
	for i := range d.plan.Claims {
		c := &d.plan.Claims[i]
		why := "a new node of pool " + c.Pool
		if len(c.Options) > 0 {
			o := c.Options[0]
			why = fmt.Sprintf("a new %s of pool %s in %s as %s for %.4f USD per hour", o.Type, c.Pool, o.Zone, o.CapacityType, usd(o.Price))
		}
		add(c.Pods, "NewNode", why)
	}
	for _, n := range d.plan.Placed {
		if d.inFlight(n.Node) {
			add(n.Pods, "NodeInFlight", n.Node+", which is on its way")
		} else {
			add(n.Pods, "ExistingNode", n.Node)
		}
	}
	return append(list, d.told.ignored(namespace)...)
}

// ignored returns the pods that need no node from Karpenter, grouped by their reasons.
func (t *told) ignored(namespace string) []top.Waiting {
	var list []top.Waiting
	at := map[string]int{}
	for _, p := range t.idle {
		if namespace != "" && !strings.HasPrefix(p.pod, namespace+"/") {
			continue
		}
		why := p.why.Rejection.Reason
		if i, known := at[why]; known {
			list[i].Count++
			continue
		}
		at[why] = len(list)
		list = append(list, top.Waiting{Pod: p.pod, Count: 1, Outcome: "Ignored", Why: why})
	}
	return list
}
