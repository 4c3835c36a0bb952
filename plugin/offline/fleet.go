package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/billing"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// Fleet decides, and returns the nodes with their contents and costs, and the pods without a node. Of these it returns
// those of a namespace; an empty namespace means all namespaces. The price is shared by the grouping, nil for not at all.
func (o *Manifests) Fleet(p *Policy, namespace string, by *bill.Grouping) *top.Fleet {
	removed := o.removals() // before the model changes
	d := o.Decide(p, 1)
	fleet := &top.Fleet{At: d.snap.Now, PriceSource: d.source, Nodes: []top.Node{}, Pools: poolLines(d.snap),
		Waiting: d.waitingPods(namespace)}
	var used, usable quantity.Vector
	for _, denied := range o.denied {
		fleet.Incomplete = append(fleet.Incomplete, top.Denied(denied))
	}
	for _, n := range d.snap.Nodes {
		fleet.Nodes = append(fleet.Nodes, nodeLineOf(d.snap, n, removed))
		fleet.Pods += len(n.Pods)
		if n.Stage >= model.Registered {
			used, usable = used.Add(n.Used), usable.Add(n.Usable)
		}
	}
	fleet.CPU, fleet.Memory = share(used, usable, quantity.CPU), share(used, usable, quantity.Memory)
	all := func(*model.Node) bool { return true }
	least, _ := disruption.LeastCost(d.snap, p.disruptOptions(), all)
	figures := figuresOf(d.snap, p.disruptOptions(), all)
	fleet.PricePerHour, fleet.Unpriced, fleet.LowerBoundPerHour = figures.PricePerHour, figures.UnknownPrices, usd(least)
	if by != nil {
		fleet.Bill = billing.Of(d.snap, *by)
	}
	return fleet
}

func share(used, usable quantity.Vector, r quantity.Resource) float64 {
	if usable.At(r) <= 0 {
		return 0
	}
	return float64(used.At(r)) / float64(usable.At(r))
}

func nodeLineOf(snap *model.Snapshot, n *model.Node, removed removals) top.Node {
	line := top.Node{
		Name: n.Name, NodePool: n.Pool, InstanceType: cmp.Or(n.Labels[model.LabelType], n.LeastType()), Zone: n.Labels[model.LabelZone],
		CapacityType: n.Labels[model.LabelCapacityType], State: stateOf(n), CPU: share(n.Used, n.Usable, quantity.CPU),
		Memory: share(n.Used, n.Usable, quantity.Memory), Pods: len(n.Pods), Places: int(n.Usable.At(quantity.Pods)),
	}
	if n.Stage >= model.Registered {
		line.Amounts = top.Amounts{UsedCPU: n.Used.At(quantity.CPU), UsableCPU: n.Usable.At(quantity.CPU),
			UsedMemory: n.Used.At(quantity.Memory), UsableMemory: n.Usable.At(quantity.Memory)}
	}
	if n.Ours() {
		line.PricePerHour, line.Unpriced = usd(n.LeastPrice()), n.LeastPrice() == 0
	}
	if n.Deleting && n.Ours() {
		drain := removed.drainOf(snap, n)
		if line.Drain = drain.obstacle(); line.Drain != "" {
			line.State = top.StateBlocked
		}
		if drain.Since != nil {
			line.Leaving = snap.Now.Sub(*drain.Since).Seconds()
		}
	}
	if !n.Created.IsZero() {
		line.Age = snap.Now.Sub(n.Created).Seconds()
	}
	return line
}

// poolLines returns the pools by name.
func poolLines(snap *model.Snapshot) []top.Pool {
	list := []top.Pool{}
	for _, pool := range snap.Pools {
		limits := limitsOf(snap, pool)
		line := top.Pool{Name: pool.Name, NotReady: blockedBy(snap, pool), AtLimit: atLimit(limits)}
		line.Ready = line.NotReady == ""
		if len(limits) > 0 {
			line.Limit = fmt.Sprintf("%s %s/%s", limits[0].Resource, limits[0].Used, limits[0].Limit)
		}
		list = append(list, line)
	}
	slices.SortFunc(list, func(a, b top.Pool) int { return strings.Compare(a.Name, b.Name) })
	return list
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

// waitingPods returns the pods without a node, grouped by what happens to them and why; unschedulable ones come first.
// An empty namespace means all namespaces.
func (d *Decision) waitingPods(namespace string) []top.Waiting {
	list := []top.Waiting{}
	at := map[string]int{}
	add := func(pods []string, outcome, why string) {
		if namespace != "" {
			pods = slices.DeleteFunc(pods, func(p string) bool { return !strings.HasPrefix(p, namespace+"/") })
		}
		if len(pods) == 0 {
			return
		}
		i, known := at[outcome+why]
		if !known {
			i = len(list)
			at[outcome+why], list = i, append(list, top.Waiting{Pod: pods[0], Outcome: outcome, Why: why})
		}
		list[i].Count += len(pods)
	}
	for _, r := range d.plan.Refused {
		var reasons []string
		for _, why := range reasonsOf(d.snap, r) {
			if !slices.Contains(reasons, why.Message) {
				reasons = append(reasons, why.Message)
			}
		}
		add(podKeys(plan.Waiting(r.Pods)), "NoPlace", strings.Join(reasons, "; "))
	}
	for i := range d.plan.Claims {
		c := &d.plan.Claims[i]
		why := "a new node of pool " + c.Pool
		if len(c.Options) > 0 {
			o := c.Options[0]
			why = fmt.Sprintf("a new %s of pool %s in %s as %s for %.4f USD per hour", o.Type, c.Pool, o.Zone, o.CapacityType, usd(o.Price))
		}
		add(podKeys(plan.Waiting(c.Pods)), "NewNode", why)
	}
	for _, n := range d.plan.Placed {
		pods := podKeys(plan.Waiting(n.Pods))
		if d.inFlight(n.Node) {
			add(pods, "NodeInFlight", n.Node+", which is being launched")
		} else {
			add(pods, "ExistingNode", n.Node)
		}
	}
	for _, p := range d.ignored() {
		add([]string{p.pod}, "Ignored", p.why.Rejection.Reason)
	}
	return list
}

// ignored returns the pods that need no node from Karpenter: those that wait for something else, and those that opted
// out. Pods that are rejected for other reasons are among the refused ones.
func (d *Decision) ignored() []idlePod {
	list := slices.Clone(d.from.idle)
	for _, p := range d.snap.Rejected {
		if p.Rejected.Silent {
			list = append(list, idlePod{p.Key(), plan.Verdict{Code: plan.PodInvalid, Rejection: p.Rejected}})
		}
	}
	return list
}
