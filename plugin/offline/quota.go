package offline

import (
	"fmt"
	"slices"
	"strings"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// QuotaOutcome is what the nodes of a CapacityQuota use of it.
type QuotaOutcome struct {
	Name string `json:"name"`
	// Invalid is why the quota has no effect.
	Invalid string `json:"invalid,omitempty"`
	// Nodes counts the nodes that the quota selects, with those in flight, without those being deleted.
	Nodes int `json:"nodes"`
	// Limits are those of the quota, the one of which most is used first. A limit is reached if no node of any pool fits.
	Limits []LimitOutcome `json:"limits,omitempty"`
	// Unschedulable counts the pods without a node of which the quota excludes a pool.
	Unschedulable int `json:"unschedulable,omitempty"`
}

// invalidQuota is a quota without effect, and why.
type invalidQuota struct{ name, why string }

// quotaOutcomes returns the usage of all quotas, by name.
func (d *Decision) quotaOutcomes() []QuotaOutcome {
	var list []QuotaOutcome
	for _, q := range d.snap.Quotas {
		o := quotaOutcome(d.snap, q, d.snap.Pools...)
		for _, r := range d.excludedBy(q.Name) {
			o.Unschedulable += len(r.Pods)
		}
		list = append(list, o)
	}
	for _, q := range d.from.invalidQuotas {
		list = append(list, QuotaOutcome{Name: q.name, Invalid: q.why})
	}
	slices.SortFunc(list, func(a, b QuotaOutcome) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// excludedBy returns the refusals in which the quota excludes a pool.
func (d *Decision) excludedBy(quota string) []plan.Refusal {
	return slices.DeleteFunc(slices.Clone(d.plan.Refused), func(r plan.Refusal) bool {
		return !slices.ContainsFunc(r.Pools, func(p plan.PoolVerdict) bool {
			return p.Verdict.Code == plan.QuotaReached && p.Verdict.Quota == quota
		})
	})
}

// quotaOutcome returns the usage of the quota, of which a further node of the pools may be too large.
func quotaOutcome(snap *model.Snapshot, q *model.Quota, pools ...*model.Pool) QuotaOutcome {
	account := snap.Ledger.AccountOf(q)
	limits := limitList(snap.Ledger.Lines(account), func(r quantity.Resource) (least int64, known bool) {
		row := make(label.Row, snap.Space.Words())
		for _, pool := range pools {
			if !mayCount(snap, q, pool) {
				continue
			}
			snap.Space.And(row, q.Row, pool.Start)
			if of, some := leastOf(snap, pool, row, r); some && (!known || of < least) {
				least, known = of, true
			}
		}
		return least, known
	})
	return QuotaOutcome{Name: q.Name, Nodes: int(snap.Ledger.Nodes(account).Used), Limits: limits}
}

// mayCount reports whether a new node of the pool may count in the quota.
func mayCount(snap *model.Snapshot, q *model.Quota, pool *model.Pool) bool {
	return pool.Types != nil && q.Counts(snap.Space, pool.Start)
}

// quotasOf returns the quotas in which new nodes of the pool may count, with the limits that no node of the pool fits.
func quotasOf(snap *model.Snapshot, pool *model.Pool) []QuotaOutcome {
	var list []QuotaOutcome
	for _, q := range snap.Quotas {
		if mayCount(snap, q, pool) {
			list = append(list, quotaOutcome(snap, q, pool))
		}
	}
	return list
}

// line returns the usage in one line.
func (o *QuotaOutcome) line() string {
	if o.Invalid != "" {
		return fmt.Sprintf("quota %s: is invalid and has no effect (a running controller keeps its last valid version): %s\n", o.Name, o.Invalid)
	}
	text := fmt.Sprintf("quota %s: %s", o.Name, limitParts(o.Limits))
	if why := atLimit(o.Limits); why != "" {
		text += "; " + why + "; no further node is launched in it"
	}
	if o.Unschedulable > 0 {
		text += fmt.Sprintf("; it excludes %s", plural(o.Unschedulable, "unschedulable pod"))
	}
	return text + "\n"
}

// writeQuotas prints the usage of the quotas, and the plan without them if it differs.
func (a *LaunchAnswer) writeQuotas(b *strings.Builder) {
	for i := range a.Quotas {
		b.WriteString(a.Quotas[i].line())
	}
	if o := a.WithoutQuotas; o != nil {
		fmt.Fprintf(b, "without CapacityQuotas: %s, %d unschedulable, price %.4f USD per hour; with them %+.4f\n",
			plural(o.Nodes, "new node"), o.Unschedulable, o.PricePerHour, a.PricePerHour-o.PricePerHour)
	}
}

// QuotaDetails is what one CapacityQuota counts and excludes.
type QuotaDetails struct {
	QuotaOutcome
	// NodeNames are the nodes that the quota selects: the claim's name while there is no node.
	NodeNames []string `json:"nodeNames"`
	// Pools are those whose new nodes may count.
	Pools []QuotaPool `json:"pools"`
	// Refusals are the pods of which the quota excludes a pool.
	Refusals []explain.Refused `json:"refusals,omitempty"`
	Gaps

	trees []string
}

// QuotaPool is a pool whose new nodes may count in a quota.
type QuotaPool struct {
	NodePool string `json:"nodePool"`
	// Nodes counts those of the pool that the quota selects.
	Nodes int `json:"nodes"`
	// Reached is the limit that no node of the pool fits; empty if some may be launched.
	Reached string `json:"reached,omitempty"`
}

// ExplainQuota decides, and returns what a CapacityQuota counts and excludes.
func (o *Manifests) ExplainQuota(p *Policy, name string) (*QuotaDetails, error) {
	d := o.Decide(p, 1)
	outcomes := d.quotaOutcomes()
	at := slices.IndexFunc(outcomes, func(details QuotaOutcome) bool { return details.Name == name })
	if at < 0 {
		var names []string
		for _, details := range outcomes {
			names = append(names, details.Name)
		}
		return nil, fmt.Errorf("there is no CapacityQuota %s%s", name, didYouMean(name, names))
	}
	details := &QuotaDetails{QuotaOutcome: outcomes[at], NodeNames: []string{}, Pools: []QuotaPool{}, Gaps: o.gaps()}
	for _, q := range d.snap.Quotas {
		if q.Name == name {
			details.addNodes(d.snap, q)
		}
	}
	for _, r := range d.excludedBy(name) {
		details.Refusals = append(details.Refusals, explain.RefusedOf(d.snap, r))
		details.trees = append(details.trees, explain.Tree(d.snap, r))
	}
	return details, nil
}

// addNodes sets the nodes and the pools of the quota.
func (o *QuotaDetails) addNodes(snap *model.Snapshot, q *model.Quota) {
	of := map[string]int{}
	for _, n := range snap.Nodes {
		if !n.Deleting && q.Counts(snap.Space, n.Row) {
			o.NodeNames = append(o.NodeNames, n.Name)
			of[n.Pool]++
		}
	}
	for _, pool := range snap.Pools {
		if mayCount(snap, q, pool) {
			o.Pools = append(o.Pools, QuotaPool{pool.Name, of[pool.Name], atLimit(quotaOutcome(snap, q, pool).Limits)})
		}
	}
	slices.SortFunc(o.Pools, func(a, b QuotaPool) int { return strings.Compare(a.NodePool, b.NodePool) })
}

// Names returns the quota as `kubectl get -o name` does.
func (o *QuotaDetails) Names() []string {
	return []string{"capacityquota." + autoscalingv1beta1.Group + "/" + o.Name}
}

// Text returns the usage, the nodes and the pools, and what the quota excludes.
func (o *QuotaDetails) Text() string {
	var b strings.Builder
	b.WriteString(o.line())
	if o.Invalid == "" {
		fmt.Fprintf(&b, "  counts %s", plural(len(o.NodeNames), "node"))
		if len(o.NodeNames) > 0 {
			fmt.Fprintf(&b, ": %s", fewNames(o.NodeNames))
		}
		b.WriteByte('\n')
		if len(o.Pools) == 0 {
			b.WriteString("  new nodes of no pool may count\n")
		}
	}
	for _, pool := range o.Pools {
		fmt.Fprintf(&b, "  new nodes of pool %s, which has %d of the nodes, may count", pool.NodePool, pool.Nodes)
		if pool.Reached != "" {
			b.WriteString("; none is launched now: " + pool.Reached)
		}
		b.WriteByte('\n')
	}
	for i, r := range o.Refusals {
		fmt.Fprintf(&b, "\n%s without a node: %s\n  %s\n", plural(len(r.Pods), "pod"), fewNames(r.Pods),
			strings.ReplaceAll(strings.TrimSpace(o.trees[i]), "\n", "\n  "))
	}
	return b.String() + incomplete(o.Incomplete)
}
