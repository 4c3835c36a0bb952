package sim

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Properties of how much consolidation moves, and what it is for.
const (
	// Churns: without a disturbance, consolidation moves the pods of an owner at most twice within an hour: evictions are
	// counted by owner, and its pods too. After each change of pods, prices or rules another fleet may be the cheapest, so
	// that a world that changes every minute may move them more often. Preemption by kube-scheduler is such a change.
	Churns = "churn"
	// StaysCheap: the cost of a world at rest does not rise while pods and prices remain as they are. It is checked where
	// no pod is pending and no node has drifted or drains.
	StaysCheap = "stays cheap"
)

const (
	// mostMoves is how often the pods of an owner may be moved within churnTime.
	mostMoves = 2
	churnTime = time.Hour
	// aging is how long a world at rest is observed: a minimum stay ends in it.
	aging = 70 * time.Minute
)

// moved is an eviction by consolidation, and the number of pods that the owner had then.
type moved struct {
	at   time.Time
	pods int
}

// moves checks Churns at an eviction.
func (c *checks) moves(q *pod) {
	n := c.w.api.node(q.node)
	saves := func(of *claim) bool { return n != nil && of.provider == n.provider && c.saving[of.uid] }
	if !slices.ContainsFunc(c.w.api.claims(), saves) {
		return
	}
	now := moved{at: c.w.now}
	for _, other := range c.w.api.pods() {
		if other.app == q.app && !other.daemon {
			now.pods++
		}
	}
	recent := slices.DeleteFunc(append(c.moved[q.app], now), func(m moved) bool {
		return c.w.now.Sub(m.at) >= churnTime || m.at.Before(c.w.disturbed)
	})
	c.moved[q.app] = recent
	most := slices.MaxFunc(recent, func(a, b moved) int { return a.pods - b.pods }).pods
	if len(recent) > mostMoves*most {
		c.fail(Churns, "consolidation has moved pods of %s, which has %d, %d times within an hour without a disturbance",
			q.app, most, len(recent))
	}
}

// removedFor records why a node is removed.
func (c *checks) removedFor(of *claim, reason plan.Reason) {
	c.removed[of.uid] = true
	c.saving[of.uid] = reason == plan.Underutilized
}

// bill returns what all machines cost now, nano-USD per hour, with the price per node.
func (c *checks) bill() int64 {
	var sum int64
	for _, of := range c.w.api.claims() {
		sum += c.cost(of)
	}
	return sum
}

// age observes a world at rest for a while and checks StaysCheap. The trace has what happens then only if that fails.
func (w *world) age(end *deadline) {
	before, settled, rested := w.check.bill(), w.complete(), len(w.trace)
	for until := w.now.Add(aging); w.failure == nil && w.next(until); {
	}
	end.until = w.now.Add(patience)
	if !w.rest(end) && w.failure == nil {
		w.check.fail(ComesToRest, "things happen again after %v without a disturbance", aging)
	}
	if after := w.check.bill(); settled && w.failure == nil && after > before {
		w.check.fail(StaysCheap, "costs %d nano-USD per hour at rest, %d %v before", after, before, aging)
	}
	if w.failure == nil {
		w.trace = w.trace[:rested]
	}
}

// complete reports whether nothing may make a world at rest dearer: a pod that a limit excludes may have a place when
// consolidation has freed room, and a node that drifted or drains is replaced by another when rules allow it.
func (w *world) complete() bool {
	return w.outdated() == 0 &&
		!slices.ContainsFunc(w.api.pods(), func(p *pod) bool { return p.node == "" }) &&
		!slices.ContainsFunc(w.api.claims(), func(c *claim) bool { return !c.deleting.IsZero() || !c.drifted.IsZero() })
}
