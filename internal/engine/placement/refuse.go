package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Why pods are unschedulable. This runs only for refused groups and reads the final state of the run, so it can
// evaluate every rule again, one by one. The rules are in inquire.go.

// verdicts returns the refusal of the remaining pods of a task: a problem of the pods themselves, or each pool's
// verdict.
func (r *run) verdicts(t *task) plan.Refusal {
	refusal := plan.Refusal{Pods: t.left, Dropped: t.at}
	switch {
	case t.unreached:
		refusal.Verdict = plan.Verdict{Code: plan.NotReached}
	case t.crowded:
		refusal.Verdict = plan.Verdict{Code: plan.TooManyDomains, Have: mostCombinations}
	case len(t.group.Rows) == 0:
		refusal.Verdict = plan.Verdict{Code: plan.PodContradiction, Key: t.group.Contradiction}
	case len(r.snap.Pools) == 0:
		refusal.Verdict = plan.Verdict{Code: plan.NoPools}
	default:
		between := r.between(t)
		for _, m := range r.pools {
			refusal.Pools = append(refusal.Pools, r.poolVerdict(m, t, between))
		}
	}
	if r.opts.AskNodes && len(t.group.Rows) > 0 {
		refusal.Nodes = r.askNodes(t)
	}
	return refusal
}

// poolVerdict returns a pool's verdict: its own refusing rule, else the rule between pods. Of several alternatives of
// the pod, the one that passes the most rules is the most informative.
func (r *run) poolVerdict(m *market, t *task, between plan.Verdict) plan.PoolVerdict {
	if v := r.closed(m); !v.OK() {
		return plan.PoolVerdict{Pool: m.pool.Name, Verdict: v}
	}
	best := r.furthestOf(m, t, t.group.Rows)
	if shuns(t, m.crew) {
		if best.Verdict.OK() {
			best.Verdict = plan.Verdict{Code: plan.AntiAffinityBlocked, Key: t.rules.host}
		}
		best.Nearest = nil // a daemon would still be in the way
	}
	if best.Verdict.OK() {
		best.Verdict = between
		if !between.OK() && r.undefined(m, between.Key) {
			best.Verdict = plan.Verdict{Code: plan.LabelUndefined, Key: between.Key}
		}
	}
	if best.Verdict.OK() && t.cut {
		best.Verdict = plan.Verdict{Code: plan.TooManyDomains, Have: mostBeside}
	}
	if best.Verdict.OK() {
		best = r.inDomains(m, t, best)
	}
	if best.Verdict.OK() {
		best.Verdict = plan.Verdict{Code: plan.NoPlaceFound}
	}
	return best
}

// closed returns why a pool has no capacity for any pod.
func (r *run) closed(m *market) plan.Verdict {
	if v := plan.Barren(r.snap, m.pool); !v.OK() {
		return v
	}
	switch p := m.pool; {
	case p.Blocked != nil:
		return plan.Verdict{Code: plan.PoolBlocked, Rejection: p.Blocked}
	case !p.Valid:
		return plan.Verdict{Code: plan.PoolContradiction, Key: p.Contradiction}
	case p.Types == nil:
		return plan.Verdict{Code: plan.NoOffering}
	}
	return plan.Verdict{}
}

func (r *run) furthestOf(m *market, t *task, rows []label.Row) plan.PoolVerdict {
	best := plan.PoolVerdict{Pool: m.pool.Name}
	for i, row := range rows {
		v := r.inquire(m, t.group, row)
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
func (r *run) undefined(m *market, key label.Key) bool {
	row := r.snap.Space.All()
	r.snap.Space.SetOnly(row, key, r.snap.Space.Absent(key))
	return r.snap.Space.EqualKey(row, m.pool.Start, key)
}

// between returns the rule between pods that excludes the task from its domains, OK when none does. Of several rules,
// it is the one that excludes the most domains. A domain without capacity does not count as admissible.
func (r *run) between(t *task) plan.Verdict {
	if t.cut {
		return plan.Verdict{} // other domains may be admissible
	}
	together := len(t.rules.hostAffinities) > 0
	if together && !r.firstOnAnyHost(t) {
		return plan.Verdict{Code: plan.AffinityUnmet, Key: t.rules.host}
	}
	tally := verdictTally{}
	defer t.rules.holdFloors(r, t)()
	for _, d := range t.domains {
		against := r.against(t, d)
		if len(against) == 0 && !t.shut[d.id] && !d.closed() {
			return plan.Verdict{}
		}
		for _, v := range against {
			tally.add(v)
		}
	}
	if len(tally) == 0 {
		return plan.Verdict{}
	}
	return tally.sorted()[0].Rule
}

// against returns all rules that exclude the task from the domain, whereas admits stops at the first.
func (r *run) against(t *task, d *domain) []plan.Verdict {
	var all []plan.Verdict
	add := func(code plan.Code, key label.Key) {
		if v := (plan.Verdict{Code: code, Key: key}); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	for i := range t.rules.spreads {
		if s := &t.rules.spreads[i]; !r.spreadAdmits(t, s, t.rules.atom(d, s.key)) {
			add(plan.SpreadExceeded, s.key)
		}
	}
	for _, c := range t.rules.apart {
		if r.keptApart(t, d, c) {
			add(plan.AntiAffinityBlocked, c.key)
		}
	}
	if v := r.affinityAdmits(t, d); !v.OK() {
		add(v.Code, v.Key)
	}
	return all
}

// inDomains evaluates the pool for the first domains that the rules between pods leave: the refusing rule there is the
// reason.
func (r *run) inDomains(m *market, t *task, otherwise plan.PoolVerdict) plan.PoolVerdict {
	found := false
	for _, d := range t.domains[:min(len(t.domains), mostInquired)] {
		v := r.furthestOf(m, t, r.rowsIn(t, d))
		if v.Verdict.OK() {
			continue
		}
		if !found || furthest(v.Verdict) > furthest(otherwise.Verdict) ||
			furthest(v.Verdict) == furthest(otherwise.Verdict) && compareVerdicts(v.Verdict, otherwise.Verdict) < 0 {
			found, otherwise = true, v
		}
	}
	return otherwise
}
