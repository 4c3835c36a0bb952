package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/billing"
	"github.com/karpenter-go/karpenter/plugin/panel"
	"github.com/karpenter-go/karpenter/plugin/podusage"
	"github.com/karpenter-go/karpenter/plugin/top"
	"github.com/karpenter-go/karpenter/plugin/web/view"
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
	for _, c := range commitmentsOf(d.snap, nil) {
		fleet.Commitments = append(fleet.Commitments, c.String())
	}
	if by != nil {
		fleet.Bill = o.bill(d.snap, *by)
	}
	return fleet
}

// bill returns what the cost of the nodes is for, with the usage of pods if that is asked for.
func (o *Manifests) bill(snap *model.Snapshot, g bill.Grouping) *bill.Bill {
	why := o.noUsage
	switch {
	case !o.wantsUsage:
		return billing.Of(snap, g, nil)
	case len(o.usage) > 0:
		return billing.Of(snap, g, o.usage.Of)
	case why == "" && o.whole:
		why = "no " + podusage.GroupVersion.Group + ": it has no usage of any pod yet"
	case why == "":
		why = "no " + podusage.GroupVersion.Group + ": no PodMetrics are among the files"
	}
	b := billing.Of(snap, g, nil)
	b.Usage = &bill.Usage{Unknown: why}
	return b
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

// PoolViews returns the pools with what they have and may launch, in the order in which they are tried for a pod. Those that
// cannot be used are among them.
func (o *Overview) PoolViews() []view.Pool {
	d, list := o.disruptNow(), []view.Pool{}
	for _, pool := range d.first.Pools {
		list = append(list, poolView(pool, d.poolOutcome(pool.Name), o.w.conditionOf(pool.Name)))
	}
	for _, r := range o.w.refused {
		if !slices.ContainsFunc(list, func(p view.Pool) bool { return p.Name == r.name }) {
			list = append(list, view.Pool{Name: r.name, State: "refused", Reason: strings.TrimPrefix(r.why.Field+": "+r.why.Reason, ": ")})
		}
	}
	view.SortPools(list)
	return list
}

func poolView(pool *model.Pool, o *PoolOutcome, condition string) view.Pool {
	v := view.Pool{Name: pool.Name, Weight: pool.Weight, State: "ready", Nodes: o.Nodes, NotReady: o.NotReady, Unpriced: o.UnknownPrices,
		Gauges: []view.Gauge{}, Launches: panel.Launches(pool), Static: pool.Static, Replicas: pool.Replicas}
	if !o.PricePerHour.IsZero() {
		v.Price = float64(o.PricePerHour)
	}
	if o.Static != nil {
		v.State, v.Missing, v.Reason = "static", o.Static.Missing, o.Static.Why
	}
	switch {
	case pool.Refused != nil:
		v.State, v.Reason = "refused", strings.TrimPrefix(pool.Refused.Field+": "+pool.Refused.Reason, ": ")
	case condition != "":
		v.State, v.Reason = "not ready", condition
	case o.Blocked != "":
		v.State, v.Reason = "launches nothing", o.Blocked
	case o.Static != nil:
	default:
		for _, limits := range append([][]LimitOutcome{o.Limits}, quotaLimits(o.Quotas)...) {
			if why := atLimit(limits); why != "" {
				v.State, v.Reason = "at its limit", why
			}
		}
	}
	gauges := func(quota string, limits []LimitOutcome) {
		for _, l := range limits {
			v.Gauges = append(v.Gauges, view.Gauge{Quota: quota, Resource: l.Resource, Used: l.Used, Limit: l.Limit, Share: l.share,
				Reached: l.Reached})
		}
	}
	gauges("", o.Limits)
	for i := range o.Quotas {
		gauges(o.Quotas[i].Name, o.Quotas[i].Limits)
	}
	for _, b := range o.Budgets {
		v.Budgets = append(v.Budgets, view.Allowance{Reason: b.Reason, Remaining: b.Remaining, Allowed: b.Allowed})
	}
	if o.Changes != nil {
		v.Window = o.Changes.UTC().Format(time.RFC3339)
	}
	return v
}

func quotaLimits(quotas []QuotaOutcome) [][]LimitOutcome {
	lists := make([][]LimitOutcome, len(quotas))
	for i := range quotas {
		lists[i] = quotas[i].Limits
	}
	return lists
}

// conditionOf returns the message of the condition for which a pool is not ready, "" if it is, or if that is not known. Ready
// follows from the two others, which say more.
func (o *objects) conditionOf(name string) string {
	at := slices.IndexFunc(o.pools, func(p sourced[*karpv1.NodePool]) bool { return p.object.Name == name })
	if at < 0 {
		return ""
	}
	for _, kind := range []string{karpv1.ConditionValidationSucceeded, karpv1.ConditionNodeClassReady, "Ready"} {
		for _, c := range o.pools[at].object.Status.Conditions {
			if c.Type == kind && c.Status == metav1.ConditionFalse {
				return c.Type + ": " + cmp.Or(c.Message, c.Reason, "is False")
			}
		}
	}
	return ""
}

// PoolText returns what `explain pool` prints about a pool, "" if there is none. With rest it has the state at rest, which
// takes long.
func (o *Overview) PoolText(name string, rest bool) string {
	d := o.disruptNow()
	outcome := d.poolOutcome(name)
	if outcome == nil {
		return ""
	}
	if rest {
		outcome.AtRest = d.atRest(name)
	}
	return outcome.Text()
}
