package plan

import (
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Replanned takes the plan of the snapshot, before Look: a node that has joined and that the plan does not use for the pods it
// was launched for, though it is there and empty, was a launch that led to nothing. It has a taint that the pods do not tolerate,
// lacks a label, or is smaller than its type promised. Nothing else shows that: the node may stay for as long as its
// pool's consolidateAfter says, and one more is launched as soon as it has joined.
//
// It does not count where pods for which nodes were launched are on the node or planned onto it: they took the room, and the
// launch led to something. Nor does it count while the node is being disrupted.
func (b *Brake) Replanned(snap *model.Snapshot, p *Provision) {
	if len(b.owners) == 0 || len(p.Claims) == 0 {
		return
	}
	w, taken := &brakeView{snap: snap}, map[string]bool{}
	for _, placed := range p.Placed {
		taken[placed.Node] = len(placed.Pods) > 0
	}
	for i := range p.Claims {
		for _, pods := range byOwner(Waiting(p.Claims[i].Pods)) {
			o := b.owners[ownerOf(pods[0])]
			if o == nil {
				continue
			}
			for _, l := range o.list {
				n := snap.Claim(l.claim)
				if l.futile || n == nil || taken[n.Name] || taken[n.Claim] || !l.useless(w, n, pods) || b.used(n) {
					continue
				}
				l.fail(snap.Now)
				l.uid, l.node = n.ClaimUID, n.Name
				l.fate = unfit(n, pods[0])
			}
		}
	}
}

// useless reports whether the launch's node has joined, and is of no use to the pods that it was for: they, or others in
// their place, are planned onto another.
func (l *launch) useless(w *brakeView, n *model.Node, planned []*model.Pod) bool {
	switch {
	case l.uid != "" && l.uid != n.ClaimUID, n.Stage < model.Registered:
		return false
	case n.Deleting, n.Disrupted, n.Command != "":
		return false
	case !l.arrived.IsZero() && w.snap.Now.Sub(l.arrived) >= ranEnough:
		return false
	}
	if slices.ContainsFunc(planned, func(p *model.Pod) bool { return slices.Contains(l.pods, p.UID) }) {
		return true
	}
	return !slices.ContainsFunc(l.pods, func(uid string) bool { return w.waits(uid) || w.onNodes()[uid] })
}

// used reports whether pods for which nodes were launched are on the node.
func (b *Brake) used(n *model.Node) bool {
	return slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return !p.Daemon && b.owners[ownerOf(p)] != nil })
}

// unfit says why a node that has joined cannot run the pod, as far as that is plain.
func unfit(n *model.Node, p *model.Pod) string {
	if taint, refused := model.Untolerated(n.Taints, p.Tolerations); refused {
		return fmt.Sprintf("its node has the taint %s, which the pods do not tolerate: "+
			"add it to startupTaints of the NodePool if it goes away by itself, or a toleration to the pods", written(taint))
	}
	if len(p.Alternatives) == 1 {
		for _, r := range p.Alternatives[0] {
			if _, has := n.Labels[r.Key]; !has && r.Operator == label.In {
				return fmt.Sprintf("its node lacks the label %s, which the pods require", r.Key)
			}
		}
	}
	if !p.Requests.Fits(n.Free()) {
		return "its node has joined with less room than the pods need"
	}
	return "its node has joined and stays empty, and the pods are planned onto another"
}

// written is the taint as kubectl writes it.
func written(t model.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect.String()
	}
	return t.Key + "=" + t.Value + ":" + t.Effect.String()
}
