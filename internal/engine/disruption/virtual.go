package disruption

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Virtual pods in what-ifs. A change may be made if afterwards each virtual pod that has room now has room on an existing
// node, or on one that the change launches. Virtual pods without room now are stuck, for example by a limit: they prevent
// no change. Each what-if places the virtual pods anew, after all other pods, because moved pods may take their room.

// placeAtFirst determines which virtual pods have room on existing nodes, and where. Only these are left in the state.
func (w *projection) placeAtFirst() {
	if len(w.snap.Virtual) == 0 {
		return
	}
	p := placement.ScheduleVirtual(w.snap, w.opts.Placement, &plan.Provision{})
	w.work += p.Work
	w.roomOn = map[*model.Pod]string{}
	for _, placed := range p.Placed {
		for _, pod := range placed.Pods {
			w.roomOn[pod] = placed.Node
		}
	}
	w.snap = w.snap.WithVirtual(func(p *model.Pod) bool { return w.roomOn[p] != "" })
}

// placeVirtual places the virtual pods on what the plan of a what-if leaves. It adds to the outcome the claims for them,
// and those that have no room as pods of the node that they have room on.
func (w *projection) placeVirtual(what *model.Snapshot, p *plan.Provision, opts placement.Options, o *outcome) {
	v := placement.ScheduleVirtual(what, opts, p)
	if v == nil {
		return
	}
	w.work += v.Work
	o.room = v.Claims
	for _, r := range v.Refused {
		for _, pod := range r.Pods {
			o.unplaced = append(o.unplaced, unplacedPod{pod: pod, node: w.originOf(pod, o.nodes)})
		}
	}
}

// originOf returns which of the nodes a virtual pod has room on. A pod that loses its room to moved pods has none of them:
// then it is the first.
func (w *projection) originOf(pod *model.Pod, nodes []*model.Node) *model.Node {
	at := slices.IndexFunc(nodes, func(n *model.Node) bool { return n.Name == w.roomOn[pod] })
	return nodes[max(0, at)]
}

// heldFor returns a virtual pod for whose room the empty node is needed: without the node, it would have no room on
// existing nodes. It returns nil if the node is not needed, and then takes it out of the state.
func (w *projection) heldFor(n *model.Node) *model.Pod {
	without := w.snap.Without(n.Name)
	needed := slices.ContainsFunc(w.snap.Virtual, func(g *model.Group) bool {
		return slices.ContainsFunc(g.Pods, func(p *model.Pod) bool { return w.roomOn[p] == n.Name })
	})
	if needed {
		v := placement.ScheduleVirtual(without, w.opts.Placement, &plan.Provision{})
		w.work += v.Work
		switch {
		case len(v.Claims) > 0:
			return v.Claims[0].Pods[0]
		case len(v.Refused) > 0:
			return v.Refused[0].Pods[0]
		}
	}
	w.snap = without
	w.placeAtFirst()
	return nil
}
