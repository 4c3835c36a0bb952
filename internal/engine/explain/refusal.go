package explain

import (
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Refusal says why pods have no place, for the event on each of them: what is wrong with the pod itself, or each pool's
// answer. Pools that answer alike share a clause; clauses are in the order of the pools.
func Refusal(snap *model.Snapshot, r plan.Refusal) string {
	return strings.Join(Reasons(snap, r), "; ")
}

// Reasons are the clauses of Refusal.
func Reasons(snap *model.Snapshot, r plan.Refusal) []string {
	if !r.Verdict.OK() || len(r.Pools) == 0 {
		return []string{Verdict(snap, r.Verdict)}
	}
	var clauses []string
	pools := map[string][]string{}
	for _, p := range r.Pools {
		text := Verdict(snap, p.Verdict) + sides(snap, r, p)
		if pools[text] == nil {
			clauses = append(clauses, text)
		}
		pools[text] = append(pools[text], p.Pool)
	}
	for i, text := range clauses {
		noun := "pool "
		if len(pools[text]) > 1 {
			noun = "pools "
		}
		clauses[i] = noun + strings.Join(pools[text], ", ") + ": " + text
	}
	return clauses
}

// sides adds to a verdict about a label what pod and pool require of it.
func sides(snap *model.Snapshot, r plan.Refusal, p plan.PoolVerdict) string {
	switch p.Verdict.Code {
	case plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
	default:
		return ""
	}
	if len(r.Pods) == 0 || int(p.Verdict.Key) >= snap.Space.Len() {
		return ""
	}
	key := snap.Space.Name(p.Verdict.Key)
	var parts []string
	if pod := ask(key, r.Pods[0].Alternatives...); pod != "" {
		parts = append(parts, "pod: "+pod)
	}
	if pool := snap.Pool(p.Pool); pool != nil {
		if text := ask(key, pool.PoolSpec.Requirements); text != "" {
			parts = append(parts, "pool: "+text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// ask is what lists of requirements say of a key: all of a list hold, one list suffices.
func ask(key string, alternatives ...[]label.Requirement) string {
	var all []string
	for _, reqs := range alternatives {
		var parts []string
		for _, q := range reqs {
			if label.Canonical(q.Key) == key {
				parts = append(parts, requirement(q))
			}
		}
		if text := strings.Join(parts, " and "); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " or ")
}
