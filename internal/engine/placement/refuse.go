package placement

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/refusal"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Why pods are unschedulable. This runs only for refused groups and reads the final state of the run, so it can
// evaluate every rule again, one by one. The rules are in inquire.go.

// refusals explains why pods are unschedulable.
type refusals struct {
	snap      *model.Snapshot
	opts      *Options
	admission *admission
	fit       *fitChecker
	nodes     *existingNodes
	fleet     *fleet
}

// of returns the refusal of the remaining pods of a group: a problem of the pods themselves, or each pool's
// verdict.
func (r *refusals) of(pg *pendingGroup) plan.Refusal {
	out := plan.Refusal{Pods: pg.left, Dropped: pg.at}
	switch {
	case pg.unreached:
		out.Verdict = plan.Verdict{Code: plan.NotReached}
	case pg.crowded:
		out.Verdict = plan.Verdict{Code: plan.TooManyDomains, Have: mostCombinations}
	case len(pg.group.Rows) == 0:
		out.Verdict = plan.Verdict{Code: plan.PodContradiction, Key: pg.group.Contradiction}
	case pg.left[0].NoNewNode != nil:
		out.Verdict = plan.Verdict{Code: plan.NoNewNode, Rejection: pg.left[0].NoNewNode}
	case len(r.snap.Pools) == 0:
		out.Verdict = plan.Verdict{Code: plan.NoPools}
	default:
		between := r.between(pg)
		for _, ps := range r.fleet.pools {
			out.Pools = append(out.Pools, r.poolVerdict(ps, pg, between))
		}
	}
	if r.opts.AskNodes && len(pg.group.Rows) > 0 {
		out.Nodes = r.askNodes(pg)
	}
	refusal.Name(r.snap, pg.group, &out)
	return out
}

// poolVerdict returns a pool's verdict: its own refusing rule, else the rule between pods. Of several alternatives of
// the pod, the one that passes the most rules is the most informative.
func (r *refusals) poolVerdict(ps *poolState, pg *pendingGroup, between plan.Verdict) plan.PoolVerdict {
	if v := r.closed(ps); !v.OK() {
		return plan.PoolVerdict{Pool: ps.spec.Name, Verdict: v}
	}
	best := r.furthestOf(ps, pg, pg.group.Rows)
	if daemonsExclude(pg, ps.daemons) {
		if best.Verdict.OK() {
			best.Verdict = plan.Verdict{Code: plan.AntiAffinityBlocked, Key: pg.rules.host}
		}
		best.Nearest = nil // a daemon would still be in the way
	}
	if best.Verdict.OK() {
		best.Verdict = between
		if !between.OK() && r.undefined(ps, between.Key) {
			best.Verdict = plan.Verdict{Code: plan.LabelUndefined, Key: between.Key}
		}
	}
	if best.Verdict.OK() && pg.cut {
		best.Verdict = plan.Verdict{Code: plan.TooManyDomains, Have: mostBeside}
	}
	if best.Verdict.OK() {
		best = r.inDomains(ps, pg, best)
	}
	if best.Verdict.OK() {
		best.Verdict = plan.Verdict{Code: plan.NoPlaceFound}
	}
	return best
}

// closed returns why a pool has no capacity for any pod.
func (r *refusals) closed(ps *poolState) plan.Verdict {
	if v := plan.NoTypes(r.snap, ps.spec); !v.OK() {
		return v
	}
	switch p := ps.spec; {
	case p.Blocked != nil:
		return plan.Verdict{Code: plan.PoolBlocked, Rejection: p.Blocked}
	case !p.Valid:
		return plan.Verdict{Code: plan.PoolContradiction, Key: p.Contradiction}
	case p.Types == nil:
		return plan.Verdict{Code: plan.NoOffering}
	}
	return plan.Verdict{}
}

func (r *refusals) furthestOf(ps *poolState, pg *pendingGroup, rows []label.Row) plan.PoolVerdict {
	best := plan.PoolVerdict{Pool: ps.spec.Name}
	for i, row := range rows {
		v := r.inquire(ps, pg.group, row)
		if i == 0 || furthest(v.Verdict) > furthest(best.Verdict) {
			best = v
		}
	}
	return best
}

// furthest ranks verdicts by how many rules were passed before the refusal.
func furthest(v plan.Verdict) int {
	switch v.Code {
	case plan.TaintNotTolerated:
		return -1
	case plan.LabelUndefined, plan.LabelExcluded:
		return 0
	case plan.TypesExcluded:
		return 1
	case plan.ResourceTooLarge, plan.CombinationTooLarge:
		return 2
	case plan.NoOffering, plan.ReservationTaken, plan.SpotShareReached:
		return 3
	}
	return 4
}

// undefined reports whether nodes of the pool never have the label.
func (r *refusals) undefined(ps *poolState, key label.Key) bool {
	row := r.snap.Space.All()
	r.snap.Space.SetOnly(row, key, r.snap.Space.Absent(key))
	return r.snap.Space.EqualKey(row, ps.spec.Start, key)
}

// between returns the rule between pods that excludes the group from its domains, OK when none does. Of several rules,
// it is the one that excludes the most domains. A domain without capacity does not count as admissible.
func (r *refusals) between(pg *pendingGroup) plan.Verdict {
	if pg.cut {
		return plan.Verdict{} // other domains may be admissible
	}
	together := len(pg.rules.hostAffinities) > 0
	if together && !r.admission.firstOnAnyHost(pg.rules) {
		return plan.Verdict{Code: plan.AffinityUnmet, Key: pg.rules.host}
	}
	counts := refusal.Counts{}
	defer r.admission.holdFloors(pg.rules, &pg.choices)()
	for _, d := range pg.choices.domains {
		against := r.admission.against(pg.rules, &pg.choices, d)
		if len(against) == 0 && !pg.choices.exhausted[d.id] && !d.closed() {
			return plan.Verdict{}
		}
		for _, v := range against {
			counts.Add(v)
		}
	}
	if len(counts) == 0 {
		return plan.Verdict{}
	}
	rule := counts.Sorted()[0].Rule
	if rule.Code == plan.SpreadExceeded {
		if few, wanted := r.admission.tooFew(pg.rules, &pg.choices, rule.Key); wanted > 0 {
			rule.Domain, rule.Have, rule.Need = strings.Join(few, ", "), int64(len(few)), int64(wanted)
		} else {
			rule.Domain = r.admission.leastOutOfReach(pg.rules, &pg.choices, rule.Key)
		}
	}
	return rule
}

// inDomains evaluates the pool for the first domains that the rules between pods leave: the refusing rule there is the
// reason.
func (r *refusals) inDomains(ps *poolState, pg *pendingGroup, otherwise plan.PoolVerdict) plan.PoolVerdict {
	found := false
	for _, d := range pg.choices.domains[:min(len(pg.choices.domains), mostInquired)] {
		v := r.furthestOf(ps, pg, pg.rowsIn(r.snap.Space, d))
		if v.Verdict.OK() {
			continue
		}
		if !found || furthest(v.Verdict) > furthest(otherwise.Verdict) ||
			furthest(v.Verdict) == furthest(otherwise.Verdict) && refusal.Compare(v.Verdict, otherwise.Verdict) < 0 {
			found, otherwise = true, v
		}
	}
	return otherwise
}

// askNodes counts, over every node of the snapshot, why it does not admit one more pod of the group. Cost: every rule is
// evaluated once more per node, for each refused group. So it is done only on request (Options.AskNodes).
func (r *refusals) askNodes(pg *pendingGroup) []plan.NodeCount {
	counts := refusal.Counts{}
	for range len(r.snap.Nodes) - len(r.nodes.list) {
		counts.Add(plan.Verdict{Code: plan.NodeLeaving})
	}
	for _, n := range r.nodes.list {
		counts.Add(r.whyNot(pg, n))
	}
	return counts.Sorted()
}

// whyNot returns the first refusing rule in kube-scheduler's order. If there is none, other pending pods use the
// capacity.
func (r *refusals) whyNot(pg *pendingGroup, n *target) plan.Verdict {
	if taint, no := pg.untolerated(n.node.Taints); no {
		return plan.Verdict{Code: plan.TaintNotTolerated, Taint: taint}
	}
	if key, no := r.otherLabel(pg.rows, n.node.Row); no {
		return plan.Verdict{Code: plan.LabelExcluded, Key: key}
	}
	if port, taken := pg.portTaken(&n.place); taken {
		return plan.Verdict{Code: plan.HostPortTaken, Have: int64(port.Port)}
	}
	if fit := r.fit.place(pg, &n.place, true); fit.Count == 0 && !fit.Verdict.OK() {
		return fit.Verdict
	}
	if against := r.admission.against(pg.rules, &pg.choices, domainOfRow(r.snap.Space, pg.rules, n.node.Row)); len(against) > 0 {
		return slices.MinFunc(against, refusal.Compare)
	}
	return plan.Verdict{Code: plan.NoPlaceFound}
}

// otherLabel returns the first label on which the node does not match the pod, for the alternative that matches
// furthest.
func (r *refusals) otherLabel(rows []label.Row, node label.Row) (label.Key, bool) {
	var furthest label.Key
	for _, row := range rows {
		at, no := r.outside(row, node)
		if !no {
			return 0, false
		}
		furthest = max(furthest, at)
	}
	return furthest, len(rows) > 0
}

// outside returns the first label on which b is not within a.
func (r *refusals) outside(a, b label.Row) (label.Key, bool) {
	for k := label.Key(0); int(k) < r.snap.Space.Len(); k++ {
		from, to := r.snap.Space.Span(k)
		for i := from; i < to; i++ {
			if b[i]&^a[i] != 0 {
				return k, true
			}
		}
	}
	return 0, false
}
