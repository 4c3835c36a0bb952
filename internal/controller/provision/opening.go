package provision

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// openings tracks which nodes wait until they may accept pods (open), and which one opened last. A new process has no
// such state, and its nodes wait a little longer.
type openings struct {
	mu      sync.Mutex
	waiting map[types.UID]waiter
	last    turn
	// order is the latest order of the nodes of the plan with the targets, computed at the time read. It is nil if
	// there is none. All waiting nodes share it, because its computation examines every pending pod.
	order   *nominate.Order
	targets *nominate.Targets
	read    time.Time
	// writing is held by the one goroutine that writes nominations to nodes with an order.
	writing sync.Mutex
}

// waiter records since when a claim's node asks to open, and since when it is ready for pods. A node that was allowed
// to open and asks again after a write conflict does not wait again.
type waiter struct {
	asked, ready time.Time
	granted      bool
}

// turn records the claim whose node was allowed to open last, whether it has unlimited pods (see nominate.Order), and
// when. seen is when the node was found open.
type turn struct {
	claim     string
	unlimited bool
	at, seen  time.Time
}

// These are the messages on a claim while its node waits. Each claim shows each of them at most once, so no message
// names another node.
var (
	notReady    = &controller.NotYetError{Reason: "the node has a taint because it is not ready for pods"}
	othersFirst = &controller.NotYetError{Reason: "other nodes of the same plan accept pods before"}
)

// orderShared is the divisor of Timers.HookRetry that gives the time for which nodes share an order.
const orderShared = 4

// opens nominates pods to the node of the claim and returns nil if the node may open, or an error with the reason of
// the wait.
func (p *Loop) opens(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error {
	targets := p.planned()
	order, opening := p.opening(claim, node)
	if opening == nil {
		p.openings.forget(claim.UID)
		return p.nominateTo(ctx, node, targets.Nominate(p.Snapshot(), claim.Name, node.Name))
	}
	if wait := p.turn(claim, node, order, opening); wait != nil {
		p.promiseMeanwhile(ctx, claim, node, order)
		return wait
	}
	p.openings.writing.Lock()
	defer p.openings.writing.Unlock()
	p.openings.outdate(order)
	if order, opening = p.opening(claim, node); opening == nil {
		return p.nominateTo(ctx, node, targets.Nominate(p.Snapshot(), claim.Name, node.Name))
	}
	defer p.openings.outdate(order)
	return p.nominateTo(ctx, node, p.openings.actions(func() []plan.Action { return order.MissingBefore(claim.Name, node.Name) }))
}

// opening returns the order of the nodes of the plan and the state of the claim's node in it. It returns nil if the
// node may open at once.
func (p *Loop) opening(claim *karpv1.NodeClaim, node *corev1.Node) (*nominate.Order, *nominate.Opening) {
	o := &p.openings
	o.mu.Lock()
	defer o.mu.Unlock()
	targets, now := p.targets.Load(), p.Clock.Now()
	if o.targets != targets || now.Sub(o.read) >= p.Timers.HookRetry/orderShared {
		o.order, o.targets, o.read = targets.Order(p.Snapshot()), targets, now
	}
	return o.order, o.order.Opening(claim.Name, node.Name)
}

// outdate makes the next caller compute the order again.
func (o *openings) outdate(order *nominate.Order) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.order == order {
		o.order, o.targets = nil, nil
	}
}

// actions returns the result of the order's method ask. The lock prevents concurrent calls.
func (o *openings) actions(ask func() []plan.Action) []plan.Action {
	o.mu.Lock()
	defer o.mu.Unlock()
	return ask()
}

// promiseMeanwhile nominates pods while the node of the claim waits: to the open nodes of the plan, or to the node
// itself if it may be the first. Only one of the waiting nodes does so at a time. The others do not wait for it.
func (p *Loop) promiseMeanwhile(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node, order *nominate.Order) {
	o := &p.openings
	if !o.writing.TryLock() {
		return
	}
	defer o.writing.Unlock()
	missing := o.actions(func() []plan.Action {
		opening := order.Opening(claim.Name, node.Name)
		switch {
		case o.order != order: // written meanwhile
			return nil
		case !opening.First:
			return order.MissingOnOpen()
		case opening.Unlimited && ready(node):
			return order.Missing(claim.Name, node.Name)
		}
		return nil
	})
	if len(missing) == 0 {
		return
	}
	defer o.outdate(order)
	p.Report.notNominated(execute.Failures(p.Writer.Do(ctx, missing)))
}

// turn returns nil when the node of the claim may open, and otherwise the reason of the wait (see nominate.Order). The
// wait is bounded by Timers.Opening when the node is ready and no other opens meanwhile, by Timers.OpeningUnready
// when it is not ready, and by Timers.OpeningMax in total.
func (p *Loop) turn(claim *karpv1.NodeClaim, node *corev1.Node, order *nominate.Order, opening *nominate.Opening) error {
	o := &p.openings
	o.mu.Lock()
	defer o.mu.Unlock()
	now := p.Clock.Now()
	maps.DeleteFunc(o.waiting, func(_ types.UID, w waiter) bool { return now.Sub(w.asked) > 2*p.Timers.OpeningMax })
	self := o.ask(claim.UID, ready(node), now)
	if !self.granted && !self.overdue(o.last, now, p.Timers) {
		switch {
		case self.ready.IsZero():
			return notReady
		case len(opening.Before) > 0,
			(opening.Alone || o.last.unlimited && !opening.Unlimited) && !o.settled(order, opening, now, p.Timers),
			opening.Unnominated && !opening.Unlimited:
			return othersFirst
		}
	}
	self.granted = true
	o.waiting[claim.UID] = self
	if o.last.claim != claim.Name {
		o.last = turn{claim: claim.Name, unlimited: opening.Unlimited, at: now}
	}
	return nil
}

// ask records that the claim's node asks to open, and returns its record. The caller holds the lock.
func (o *openings) ask(claim types.UID, ready bool, now time.Time) waiter {
	if o.waiting == nil {
		o.waiting = map[types.UID]waiter{}
	}
	self, known := o.waiting[claim]
	if !known {
		self.asked = now
	}
	switch {
	case !ready:
		self.ready = time.Time{}
	case self.ready.IsZero():
		self.ready = now
	}
	o.waiting[claim] = self
	return self
}

// overdue reports whether the node has reached the limit of its wait.
func (w waiter) overdue(last turn, now time.Time, timers controller.Timers) bool {
	waited := now.Sub(w.asked)
	switch {
	case waited >= timers.OpeningMax:
		return true
	case w.ready.IsZero():
		return waited >= timers.OpeningUnready
	}
	return now.Sub(w.ready) >= timers.Opening && now.Sub(last.at) >= timers.Opening
}

// settled reports whether kube-scheduler has tried the pods that it tries because the last node opened, or whether
// Timers.OpeningPause is over. The caller holds the lock.
func (o *openings) settled(order *nominate.Order, next *nominate.Opening, now time.Time, timers controller.Timers) bool {
	if o.last.claim == "" || now.Sub(o.last.at) >= timers.Opening {
		return true
	}
	if o.last.seen.IsZero() && order.IsOpen(o.last.claim) {
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

// ready reports whether a node is ready for pods, regardless of its registration.
func ready(node *corev1.Node) bool {
	return !slices.ContainsFunc(node.Spec.Taints, karpv1.NotReadyTaint)
}
