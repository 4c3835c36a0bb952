package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// A removal frees a part of its pool's limits, and provisioning may launch a node within that part for the pods that
// the removal moves. While the candidates exist, they count against the limits: a replacement must fit beside them. A
// what-if with these limits may place pods on existing nodes only because the pool cannot launch a node. For example,
// pods are spread over zones, the pool of one zone is limited to one node, and that node is the candidate: the what-if
// places its pods in other zones, but as soon as the node is being deleted, provisioning launches another one in its
// zone. Such a command saves nothing, and the next pass proposes it again for the new node. Commands that are in
// progress are not checked again: only a change of the limits within seconds could make them such commands. Drifted and
// expired nodes are removed whatever is launched for their pods.

// withoutRelaunch is without, where pods for which provisioning would launch a node within the freed limits, or in the
// domain of pods that they must be near (follow.go), cannot run elsewhere.
func (w *projection) withoutRelaunch(nodes []*model.Node, closed func(*model.Node) bool) *outcome {
	return w.unplace(w.without(nodes, closed), closed)
}

// ontoNodes is withoutRelaunch for pods that must get no new node: if one of them needs one, all are unplaced.
func (w *projection) ontoNodes(nodes []*model.Node, closed func(*model.Node) bool) *outcome {
	opts := w.opts.Placement
	opts.NoLaunch = true
	return w.unplace(w.withoutBy(nodes, closed, opts), closed)
}

// unplace adds to the outcome the pods that cannot run elsewhere although it has places for them.
func (w *projection) unplace(o *outcome, closed func(*model.Node) bool) *outcome {
	if len(o.unplaced) == 0 {
		o.unplaced = w.relaunched(o, closed)
	}
	if len(o.unplaced) == 0 {
		o.unplaced = w.following(o)
	}
	return o
}

// relaunched returns the pods that the outcome places on existing nodes, and for which provisioning would launch a node
// within the limits that its nodes, and those of other changes of this run, free. It runs a what-if if the limits are
// tight. Equal pods may change places between the two what-ifs: only more launches in a pool count.
func (w *projection) relaunched(o *outcome, closed func(*model.Node) bool) []unplacedPod {
	gone := slices.Concat(w.leaving, o.nodes)
	if !w.frees(gone, o.claims) {
		return nil
	}
	names := make([]string, len(o.nodes))
	for i, n := range o.nodes {
		names[i] = n.Name
	}
	what := w.snap.Without(names...)
	what.Ledger = w.snap.Ledger.Without(gone...)
	p := w.schedule(what, closed, w.opts.Placement)
	more := map[string]int{} // launches by pool
	for i := range p.Claims {
		more[p.Claims[i].Pool]++
	}
	for i := range o.claims {
		more[o.claims[i].Pool]--
	}
	assigned := map[*model.Pod]bool{}
	for _, s := range o.assignments {
		for _, pod := range s.Pods {
			assigned[pod] = true
		}
	}
	origin := w.origins(o.nodes)
	var again []unplacedPod
	for i := range p.Claims {
		pool := p.Claims[i].Pool
		if more[pool] <= 0 {
			continue
		}
		for _, pod := range p.Claims[i].Pods {
			if n := origin[pod]; n != nil && assigned[pod] {
				again = append(again, unplacedPod{pod: pod, node: n, pool: pool})
			}
		}
	}
	return again
}

// frees reports whether the limits of the pool of some of the nodes are tight.
func (w *projection) frees(gone []*model.Node, claims []plan.NewClaim) bool {
	seen := map[string]bool{}
	for _, n := range gone {
		if seen[n.Pool] {
			continue
		}
		if seen[n.Pool] = true; w.tight(n.Pool, claims) {
			return true
		}
	}
	return false
}

// tight reports whether the limits of a pool, with the usage of the claims, do not suffice for another node of each
// of its types.
func (w *projection) tight(name string, claims []plan.NewClaim) bool {
	pool := w.snap.Pool(name)
	if pool == nil || pool.Types == nil {
		return false
	}
	ledger := charged(w.snap, claims)
	return !ledger.Admit(ledger.Largest(pool, pool.Start, pool.Eligible))
}
