package placement

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Why pods have no place. This runs only for groups that are refused and reads what the run has left behind, so that it
// may ask every rule again, one by one; inquire.go has the rules.

// verdicts is the refusal of what is left of a task: what is wrong with the pods themselves, or each pool's answer.
func (r *run) verdicts(t *task) plan.Refusal {
	refusal := plan.Refusal{Pods: t.left, Dropped: t.at}
	switch {
	case t.unreached:
		refusal.Verdict = plan.Verdict{Code: plan.NotReached}
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

// poolVerdict is a pool's answer: the rule of its own that is in the way, else the one between pods. Of several
// alternatives of the pod the one that got furthest says most.
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
	if best.Verdict.OK() {
		best = r.inDomains(m, t, best)
	}
	if best.Verdict.OK() {
		best.Verdict = plan.Verdict{Code: plan.NoPlaceFound}
	}
	return best
}

// closed says why a pool has nothing for any pod.
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

// furthest ranks how many rules were passed before the refusal.
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

// undefined reports whether nodes of the pool never have the label, whoever asks for it.
func (r *run) undefined(m *market, key label.Key) bool {
	row := r.snap.Space.All()
	r.snap.Space.SetOnly(row, key, r.snap.Space.Absent(key))
	return r.snap.Space.EqualKey(row, m.pool.Start, key)
}

// between is the rule between pods that keeps the task out of its domains, OK when none does; of several, the one that
// closes most domains. A domain that proved to have no room is no way out.
func (r *run) between(t *task) plan.Verdict {
	together := len(t.rules.hostAffinities) > 0
	if together && !r.firstOnAnyHost(t) {
		return plan.Verdict{Code: plan.AffinityUnmet, Key: t.rules.host}
	}
	tally := verdictTally{}
	for _, d := range t.domains {
		against := r.against(t, d)
		if len(against) == 0 && !t.shut[d.id] && (d.room > 0 || d.buys) {
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

// against are the rules that keep the task out of the domain: all of them, where admits stops at the first.
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

// inDomains asks the pool about the domains that the rules between pods leave: what is in the way there is the reason.
func (r *run) inDomains(m *market, t *task, otherwise plan.PoolVerdict) plan.PoolVerdict {
	found := false
	for _, d := range t.domains {
		v := r.furthestOf(m, t, d.rows)
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
