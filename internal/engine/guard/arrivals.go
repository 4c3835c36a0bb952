package guard

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// AwaitsArrivals reports whether some pods that the node was launched for have not been bound to it yet: they still run
// on a node that is being removed. Placing other pods there would make them unschedulable.
func (g *Guard) AwaitsArrivals(n *model.Node) bool { return g.arrivals.AwaitsLaunchedFor(n) }

// AwaitsPendingUntil returns until when an empty node is protected for pods that its claim was launched for and that
// are still pending, see reserve.Arrivals.
func (g *Guard) AwaitsPendingUntil(n *model.Node) time.Time { return g.arrivals.AwaitsPendingUntil(n) }

// arrivalNotes returns the writes that record on claims that pods are sent to their nodes: when the first candidate is
// deleted, and again when more pods have been evicted and the record is old, as in a slow drain. A drain without
// progress writes nothing.
func (g *Guard) arrivalNotes(cmd plan.Command) []plan.Action {
	// Times on claims have a resolution of one second.
	began, late, left := cmd.PhaseSince.Truncate(time.Second), g.snap.Now.Add(-reserve.RenewAfter(g.snap)), g.lastLeft(cmd)
	var actions []plan.Action
	for _, n := range g.destinations(cmd) {
		since := reserve.SentAt(g.snap, n)
		if !n.Deleting && (since.Before(began) || since.Before(late) && left.After(since)) {
			actions = append(actions, plan.MarkPodsSent{Claim: n.Claim, UID: n.ClaimUID, At: g.snap.Now})
		}
	}
	return actions
}

// arrivalsRecorded reports whether a command whose candidates are gone has nothing left to record. A write that fails
// is retried only for as long as its record would be valid; nothing else would end the command.
func (g *Guard) arrivalsRecorded(cmd *plan.Command, arrivalNotes []plan.Action) bool {
	if cmd.Vacated.IsZero() {
		cmd.Vacated = g.snap.Now
	}
	return len(arrivalNotes) == 0 || g.snap.Now.After(cmd.Vacated.Add(reserve.ArrivalOf(g.snap)))
}

// lastLeft returns when a pod was last observed to leave a candidate. It is now when all candidates are gone and the
// time is unknown.
func (g *Guard) lastLeft(cmd plan.Command) time.Time {
	last, there := time.Time{}, false
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if there = there || n != nil; n != nil && n.LastPodEvent.After(last) {
			last = n.LastPodEvent
		}
	}
	if !there {
		return g.snap.Now
	}
	return last
}

// destinations returns the existing managed nodes that pods of the command's candidates are sent to.
func (g *Guard) destinations(cmd plan.Command) []*model.Node {
	var nodes []*model.Node
	for i := range cmd.Destinations {
		if n := cmd.Destinations[i].On(g.snap); n != nil && n.Ours() && len(cmd.Destinations[i].Pods) > 0 {
			nodes = append(nodes, n)
		}
	}
	for i := range cmd.Replacements {
		r := &cmd.Replacements[i]
		if n := g.snap.Claim(r.Name); n != nil && len(r.PodRefs()) > 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
