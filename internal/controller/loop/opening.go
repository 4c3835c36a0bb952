package loop

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// openings remembers which nodes wait for their turn to open for pods, and which one opened last. A process that starts
// anew knows none, and the nodes wait a little longer.
type openings struct {
	mu      sync.Mutex
	waiting map[types.UID]wish
	last    letting
}

// wish is since when a claim's node asks to open, and since when it is ready for pods. One that was let open asks again after a
// write conflict, and is not to wait again.
type wish struct {
	asked, ready time.Time
	let          bool
}

// letting is the claim whose node was let open last, whether pods that stay come to it, and when; seen is when it was found open.
type letting struct {
	claim    string
	stays    bool
	at, seen time.Time
}

// unready are the taints of nodes that are not ready for pods, whatever their registration.
var unready = []string{corev1.TaintNodeNotReady, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeUnreachable, "node.cloudprovider.kubernetes.io/uninitialized"}

// promises are the nominations to write before the node of the claim opens, or now if it has to wait.
func (p *Provision) promises(claim *karpv1.NodeClaim, node *corev1.Node) ([]plan.Action, *controller.NotYetError) {
	targets, snap := p.planned(), p.Snapshot()
	order := targets.Opening(snap, claim.Name, node.Name)
	if order == nil {
		p.openings.forget(claim.UID)
		return targets.Promises(snap, claim.Name, node.Name), nil
	}
	if wait := p.turn(claim, node, order, snap); wait != nil {
		switch {
		case !order.First:
			return targets.Standing(snap), wait
		case order.Stays && ready(node):
			return targets.Promises(snap, claim.Name, node.Name), wait
		}
		return nil, wait
	}
	if !order.First { // pods may be bound elsewhere than planned
		snap, _, _ = p.decide()
		targets = p.planned()
	}
	return targets.Coming(snap, claim.Name, node.Name), nil
}

// turn is nil when the node of the claim may open, and says otherwise what it waits for (see plan.Opening): for
// Timers.Opening at most when the node is ready and no other opens meanwhile, for Timers.OpeningUnready when it is not ready,
// and for Timers.OpeningMax at most altogether.
func (p *Provision) turn(claim *karpv1.NodeClaim, node *corev1.Node, order *plan.Opening, snap *model.Snapshot) *controller.NotYetError {
	o := &p.openings
	o.mu.Lock()
	defer o.mu.Unlock()
	now := p.Clock.Now()
	maps.DeleteFunc(o.waiting, func(_ types.UID, w wish) bool { return now.Sub(w.asked) > 2*p.Timers.OpeningMax })
	if why := p.waits(claim, node, order, snap, now); why != "" {
		return &controller.NotYetError{Reason: why}
	}
	since := o.waiting[claim.UID]
	since.let = true
	o.waiting[claim.UID] = since
	if o.last.claim != claim.Name {
		o.last = letting{claim: claim.Name, stays: order.Stays, at: now}
	}
	return nil
}

// waits says what the node waits for, empty if its turn has come.
func (p *Provision) waits(claim *karpv1.NodeClaim, node *corev1.Node, order *plan.Opening, snap *model.Snapshot, now time.Time) string {
	o := &p.openings
	since, known := o.waiting[claim.UID]
	if !known {
		since.asked = now
	}
	ready := ready(node)
	if ready && since.ready.IsZero() {
		since.ready = now
	}
	if o.waiting == nil {
		o.waiting = map[types.UID]wish{}
	}
	o.waiting[claim.UID] = since
	overdue := now.Sub(since.asked) >= p.Timers.OpeningMax
	switch {
	case !ready:
		overdue = overdue || now.Sub(since.asked) >= p.Timers.OpeningUnready
	case now.Sub(since.ready) >= p.Timers.Opening:
		overdue = overdue || now.Sub(o.last.at) >= p.Timers.Opening
	}
	switch {
	case overdue || since.let:
		return ""
	case !ready:
		return "the node is not ready for pods"
	case len(order.Before) > 0:
		return fmt.Sprintf("node %s of the plan opens before", order.Before[0])
	case (order.Alone || o.last.stays && !order.Stays) && !o.settled(order, snap, now, p.Timers):
		return fmt.Sprintf("the node of claim %s is opening", o.last.claim)
	case order.Adrift && !order.Stays:
		return "pods of open nodes of the plan are to be nominated again"
	}
	return ""
}

// settled reports whether kube-scheduler has tried the pods that the node woke which was let open last, or Timers.OpeningPause
// is over.
func (o *openings) settled(next *plan.Opening, snap *model.Snapshot, now time.Time, timers controller.Timers) bool {
	if o.last.claim == "" || now.Sub(o.last.at) >= timers.Opening {
		return true
	}
	if node := snap.Claim(o.last.claim); o.last.seen.IsZero() && (node == nil || node.Stage >= model.Registered) {
		o.last.seen = now
	}
	return !o.last.seen.IsZero() && (!next.Untried || now.Sub(o.last.seen) >= timers.OpeningPause)
}

// forget ends the wait of a claim's node.
func (o *openings) forget(claim types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, claim)
}

// ready reports whether a node is ready for pods, whatever its registration.
func ready(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return slices.Contains(unready, t.Key) })
}
