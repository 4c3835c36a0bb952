package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// target is a node of the snapshot that pods may go onto.
type target struct {
	node *model.Node
	free quantity.Vector
	pods []*model.Pod
}

// openNodes lists the nodes that stay. A node that is leaving takes nobody.
func (r *run) openNodes() {
	for _, n := range r.snap.Nodes {
		if n.Deleting || n.Disrupted {
			continue
		}
		r.nodes = append(r.nodes, &target{node: n, free: n.Free()})
	}
}

// A Fit is the full answer to "can this group go there?": how many of its pods, or why none. Committing consumes it.
type Fit struct {
	Count   int
	Verdict plan.Verdict
}

func refused(v plan.Verdict) Fit { return Fit{Verdict: v} }

// fit asks a node. A node in flight may turn into anything its claim allows, so the pod must accept all of it: the
// node's row has to lie within one of the pod's alternatives.
func (r *run) fit(g *model.Group, t *target) Fit {
	short, lacks := g.Requests.FirstShort(t.free)
	if lacks {
		return refused(plan.Verdict{Code: plan.NodeFull, Resource: short, Need: g.Requests.At(short), Have: t.free.At(short)})
	}
	if taint, no := model.Untolerated(t.node.Taints, g.Tolerations); no {
		return refused(plan.Verdict{Code: plan.TaintNotTolerated, Taint: taint})
	}
	for _, row := range g.Rows {
		if r.snap.Space.Contains(row, t.node.Row) {
			return Fit{Count: r.capped(g.Requests.Times(t.free))}
		}
	}
	return refused(plan.Verdict{Code: plan.LabelExcluded})
}

// capped turns a count of copies into a count of pods.
func (r *run) capped(n int64) int {
	if r.opts.PodCap > 0 {
		n = min(n, int64(r.opts.PodCap))
	}
	return int(min(n, math.MaxInt32))
}

// keepPromises puts pods where they were promised a place, while they still fit there: on the node that we nominated,
// or on the claim that was bought for them. Everything else is planned around them, so that a plan made again says the
// same.
func (r *run) keepPromises() {
	promised := r.promises()
	if promised == nil {
		return
	}
	for _, w := range r.work {
		rest := make([]*model.Pod, 0, len(w.left))
		for _, p := range w.left {
			if t := r.firstFit(w.group, promised(p)); t != nil {
				t.add(w.group, []*model.Pod{p})
			} else {
				rest = append(rest, p)
			}
		}
		w.left = rest
	}
}

// firstFit is the first of the nodes that holds one more pod of the group, nil if none does.
func (r *run) firstFit(g *model.Group, nodes []*target) *target {
	for _, t := range nodes {
		if r.fit(g, t).Count > 0 {
			return t
		}
	}
	return nil
}

// promises answers which nodes a pod was promised; nil when no pod was promised any. The nomination comes first. A pod
// may have been promised more than one: where it no longer fits, a claim was bought for it since.
func (r *run) promises() func(*model.Pod) []*target {
	byName, byPod := map[string]*target{}, map[string][]*target{}
	for _, t := range r.nodes {
		byName[t.node.Name] = t
		for _, uid := range t.node.Promised {
			byPod[uid] = append(byPod[uid], t)
		}
	}
	nominated := func(p *model.Pod) bool { return p.Nominated != "" }
	if len(byPod) == 0 && !slices.ContainsFunc(r.work, func(w *work) bool { return slices.ContainsFunc(w.left, nominated) }) {
		return nil
	}
	return func(p *model.Pod) []*target {
		if t := byName[p.Nominated]; t != nil {
			return append([]*target{t}, byPod[p.UID]...)
		}
		return byPod[p.UID]
	}
}

// fillNodes puts groups onto the nodes in order.
func (r *run) fillNodes() {
	for _, w := range r.work {
		for _, t := range r.nodes {
			if len(w.left) == 0 {
				break
			}
			if fit := r.fit(w.group, t); fit.Count > 0 {
				t.add(w.group, w.take(min(fit.Count, len(w.left))))
			}
		}
	}
}

func (t *target) add(g *model.Group, pods []*model.Pod) {
	t.free = t.free.Sub(g.Requests.Scaled(int64(len(pods))))
	t.pods = append(t.pods, pods...)
}
