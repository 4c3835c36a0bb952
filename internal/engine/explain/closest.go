package explain

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// closest returns the verdicts of pools, the closest to a placement first: pools where waiting may suffice, then
// pools where one change would suffice, then by the number of passed rules, then by the number of remaining types.
// Equal verdicts keep the order of the pools, which is by weight.
func closest(snap *model.Snapshot, pools []plan.PoolVerdict) []*plan.PoolVerdict {
	list := make([]*plan.PoolVerdict, len(pools))
	for i := range pools {
		list[i] = &pools[i]
	}
	slices.SortStableFunc(list, func(a, b *plan.PoolVerdict) int {
		return cmp.Or(cmp.Compare(verdictDistance(snap, a), verdictDistance(snap, b)), cmp.Compare(len(a.Also), len(b.Also)),
			cmp.Compare(b.Verdict.Types, a.Verdict.Types))
	})
	return list
}

// verdictDistance ranks verdicts: 0 is closest. A pool that the pods exclude by name is the farthest.
func verdictDistance(snap *model.Snapshot, p *plan.PoolVerdict) int {
	switch p.Verdict.Code {
	case plan.LabelExcluded:
		if len(p.Also) == 0 && int(p.Verdict.Key) < snap.Space.Len() && snap.Space.Name(p.Verdict.Key) == model.LabelPool {
			return 10
		}
	case plan.PoolBlocked, plan.PoolContradiction, plan.NoCompatibleInstanceTypes:
		return 9 // no rule was evaluated
	case plan.NoPlaceFound, plan.TooManyDomains, plan.LimitReached, plan.NodeLimitReached, plan.QuotaReached, plan.ReservationTaken,
		plan.SpotShareReached,
		plan.SpreadExceeded, plan.AffinityUnmet, plan.AntiAffinityBlocked:
		return 0
	}
	far := 4
	if len(p.Nearest) > 0 {
		far = 1
	}
	switch p.Verdict.Code {
	case plan.NoOffering, plan.MinValuesUnmet, plan.TypesSpared, plan.ResourceTooLarge, plan.CombinationTooLarge:
		return far
	case plan.TypesExcluded:
		return far + 1
	}
	return far + 2
}

// nodeClauses returns the reasons for which existing nodes refuse the pods.
func nodeClauses(snap *model.Snapshot, r plan.Refusal) []Clause {
	var clauses []Clause
	for _, n := range r.Nodes {
		clauses = append(clauses, Clause{Code: n.Rule.Code, Text: nodeCount(snap, r, n)})
	}
	return clauses
}

// nodeCount returns how many nodes refuse for a reason: "3 of 5 nodes: needs 4 of cpu, at most 1500m is free".
func nodeCount(snap *model.Snapshot, r plan.Refusal, n plan.NodeCount) string {
	total := 0
	for _, other := range r.Nodes {
		total += other.Nodes
	}
	among := strconv.Itoa(n.Nodes) + " of " + count(total, "node")
	switch {
	case total == 1:
		among = "the only node"
	case n.Nodes == 2 && total == 2:
		among = "both nodes"
	case n.Nodes == total:
		among = "all " + count(total, "node")
	}
	return among + ": " + ofNode(snap, n.Rule) + sides(snap, r, "", n.Rule)
}

// ofNode returns the text for a verdict of existing nodes.
func ofNode(snap *model.Snapshot, v plan.Verdict) string {
	o := operands{snap, v}
	switch v.Code {
	case plan.NodeFull:
		need, have := o.needHave()
		if v.Have <= 0 {
			return "needs " + need + " of " + o.resource() + ", none is free"
		}
		return "needs " + need + " of " + o.resource() + ", at most " + have + " is free"
	case plan.NodeLeaving:
		return "being removed"
	case plan.LabelExcluded:
		return o.key() + " is not as required"
	case plan.HostPortTaken:
		return "a pod there uses the host port"
	case plan.SpreadExceeded:
		return "one more pod would exceed the maxSkew of the topology spread constraint on " + o.key()
	case plan.AffinityUnmet:
		return "no pod there matches the pod affinity on " + o.key()
	case plan.AntiAffinityBlocked:
		return "excluded by pod anti-affinity on " + o.key()
	case plan.NoPlaceFound:
		return "capacity is reserved for other pending pods"
	}
	return Verdict(snap, v)
}
