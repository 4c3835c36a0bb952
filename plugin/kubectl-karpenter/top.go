package main

import (
	"context"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/cli"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// leastInterval prevents a view of a large cluster from reading it continuously.
const leastInterval = time.Second

// view holds the flags of the verb.
type view struct {
	explanation
	// reading is held while the cluster is read: the screen reads it periodically, and for each explanation.
	reading  sync.Mutex
	once     bool
	interval time.Duration
	sort     string
	reverse  bool
	filter   string
	cost     billFlags
	// by is what the cost is shared by, nil for not at all.
	by *bill.Grouping
	// printing means that the fleet is read once, to be printed.
	printing bool
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
		Short: "Show the nodes of a live cluster with utilization and cost, pending pods, and what the cost is for",
		Long: `Reads the cluster repeatedly, and shows its nodes with the requests of their pods, type, zone, capacity type, price,
pods and state; the pending pods and why they are pending; and the total cost beside its lower bound. Nothing is
changed.

With --by or --cost-label, the price of each node is shared among its pods by what they request: the larger share of its
CPU and memory, or of its accelerators. What no pod requests, and what DaemonSets request, are rows of their own.

Keys: up, down, page up, page down, home, end (or j, k, space, g, G) move; enter explains the row, as "explain" does; tab
goes from nodes to waiting pods, to the totals of pools, to the cost by namespace and back; s sorts by the next visible
column, r reverses; / filters, escape drops the filter; ? shows the keys; q quits.

With --once, or where standard output is no terminal, the whole is printed once, as plain text.`,
		Example: "  kubectl karpenter top\n  kubectl karpenter top --once --sort price\n  kubectl karpenter top -o json\n" +
			"  kubectl karpenter top --once --by workload\n  kubectl karpenter top --once --cost-label team",
		Args: cli.NoArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return v.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	v.addFlags(command.Flags())
	return command
}

func (v *view) addFlags(flags *pflag.FlagSet) {
	v.explanation.addFlags(flags)
	addNamespaceFlag(flags, &v.live.Connection, "show only waiting pods of this namespace (default: those of all namespaces)")
	flags.BoolVarP(&v.everywhere, "all-namespaces", "A", false, "show waiting pods of all namespaces, as without --namespace")
	flags.BoolVar(&v.once, "once", false, "print once, as plain text")
	flags.DurationVar(&v.interval, "interval", 5*time.Second, "pause between two readings of the cluster, 1s or more")
	flags.StringVar(&v.sort, "sort", "", "column to sort nodes by: "+strings.Join(top.Orders(), ", ")+
		" (default: name); or rows of --by: "+strings.Join(bill.Orders(), ", ")+" (default: price)")
	flags.BoolVar(&v.reverse, "reverse", false, "sort the other way round")
	flags.StringVar(&v.filter, "filter", "", "only nodes, pods, pools and rows of the cost in which this text occurs")
	v.cost.addBy(flags)
}

func (v *view) check() (err error) {
	if v.by, err = v.cost.grouping(); err != nil {
		return err
	}
	orders := top.Orders()
	if v.by != nil {
		orders = bill.Orders()
	}
	switch {
	case v.everywhere && v.live.Namespace != "":
		return cli.UsageErrorf("--all-namespaces and --namespace %s: give one of them", v.live.Namespace)
	case v.interval < leastInterval:
		return cli.UsageErrorf("--interval is %s, want 1s or more", v.interval)
	case v.sort != "" && !slices.Contains(orders, v.sort):
		return cli.UsageErrorf("--sort is %q, want %s", v.sort, strings.Join(orders, ", "))
	}
	return nil
}

func (v *view) run(ctx context.Context, in io.Reader, out, progress io.Writer) error {
	if err := v.check(); err != nil {
		return err
	}
	if v.output == formatText && !v.once && isTerminal(out) {
		if v.by == nil {
			v.by = &bill.Grouping{By: bill.ByNamespace}
		}
		program := top.Program{Read: v.fleet, Explain: v.explain, Interval: v.interval, In: in, Out: out,
			Sort: v.sort, Reverse: v.reverse, Filter: v.filter}
		return program.Run(ctx)
	}
	v.progress, v.in, v.printing = progress, in, true
	fleet, err := v.fleet(ctx)
	if err != nil {
		return err
	}
	fleet = fleet.Filter(v.filter)
	if fleet.Bill != nil {
		fleet.Bill.Sort(v.sort, v.reverse)
	}
	top.Sort(fleet.Nodes, v.sort, v.reverse)
	page := pageOf{fleet, columnsOf(out)}
	if v.output == formatWide {
		page.columns = 0
	}
	if err := printOutcome(page, v.output, out); err != nil || v.files == nil {
		return err
	}
	return unreadable(v.files.Problems, progress)
}

// pageOf adapts a fleet to the printer.
type pageOf struct {
	*top.Fleet
	columns int
}

func (p pageOf) Text() string { return top.Text(p.Fleet, p.columns) }

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(file.Fd())
}

// fleet reads the cluster and decides as the controller would.
func (v *view) fleet(ctx context.Context) (*top.Fleet, error) {
	v.reading.Lock()
	defer v.reading.Unlock()
	v.live.Usage = v.cost.usage
	w, err := v.read(ctx, v.now())
	if err != nil {
		return nil, err
	}
	fleet := w.Fleet(&v.policy, v.live.Namespace, v.by)
	if v.cost.usage && v.printing {
		err = rightSize(ctx, fleet.Bill, w.Overview(&v.policy))
	}
	return fleet, err
}

// explain reads the cluster, and returns what the verb explain prints about a row.
func (v *view) explain(ctx context.Context, of top.Subject) (string, error) {
	v.reading.Lock()
	defer v.reading.Unlock()
	w, err := v.read(ctx, v.now())
	if err != nil {
		return "", err
	}
	var answer outcome
	switch of.Kind {
	case "pod":
		answer, err = w.ExplainPod(&v.policy, of.Name)
	case "pool":
		answer, err = w.ExplainPool(&v.policy, of.Name)
	default:
		answer, err = v.explainNode(ctx, w, of.Name)
	}
	if err != nil {
		return "", err
	}
	return answer.Text(), nil
}
