package brake

import (
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Replanned compares a plan with earlier launches. Call it before Look. A node that has joined, is empty, and is not
// used by the plan for the pods it was launched for, was a futile launch. It has a taint that the pods do not tolerate,
// lacks a label, or is smaller than its type declares. No other check detects that: the node may exist for the whole of
// its pool's consolidateAfter, and another one is launched as soon as it has joined.
//
// A launch does not count if pods that nodes were launched for are on the node or planned onto it: they took the
// capacity, and the launch was of use. It does not count while the node is being disrupted either.
func (b *Brake) Replanned(snap *model.Snapshot, p *plan.Provision) {
	if len(b.owners) == 0 || len(p.Claims) == 0 {
		return
	}
	w, taken := &brakeView{snap: snap}, map[string]bool{}
	for _, placed := range p.Placed {
		taken[placed.Node] = len(placed.Pods) > 0
	}
	for i := range p.Claims {
		for _, pods := range byOwner(plan.Waiting(p.Claims[i].Pods)) {
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

// useless reports whether the launch's node has joined and is of no use to the pods it was for: these, or successors of
// them, are planned onto another node.
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

// used reports whether pods that nodes were launched for are on the node.
func (b *Brake) used(n *model.Node) bool {
	return slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return !p.Daemon && b.owners[ownerOf(p)] != nil })
}

// unfit explains why a node that has joined cannot run the pod, as far as that is evident.
func unfit(n *model.Node, p *model.Pod) string {
	if taint, refused := model.Untolerated(n.Taints, p.Tolerations); refused {
		return fmt.Sprintf("its node has the taint %s, which the pods do not tolerate: "+
			"add it to startupTaints of the NodePool if it is removed automatically, or a toleration to the pods", written(taint))
	}
	if len(p.Alternatives) == 1 {
		for _, r := range p.Alternatives[0] {
			if _, has := n.Labels[r.Key]; !has && r.Operator == label.In {
				return fmt.Sprintf("its node lacks the label %s, which the pods require", r.Key)
			}
		}
	}
	if !p.Requests.Fits(n.Free()) {
		return "its node has joined with less capacity than the pods need"
	}
	return "its node has joined and remains empty, and the pods are planned onto another node"
}

// written formats the taint as kubectl does.
func written(t model.Taint) string {
	if t.Value == "" {
		return t.Key + ":" + t.Effect.String()
	}
	return t.Key + "=" + t.Value + ":" + t.Effect.String()
}
