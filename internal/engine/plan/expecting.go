package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Expected arrivals.
//
// Pods on a node that is being removed are evicted, and their controllers recreate them, on a busy cluster many seconds
// later. Meanwhile no object shows that pods are expected on the nodes launched for them, or with capacity reserved for
// them. Once the last removed node is gone, together with the command on it, these nodes look unused. So their claims
// record when pods were sent to them.

// Arrival is how long an empty node is kept for pods that were sent to it, unless the snapshot sets another value.
const Arrival = time.Minute

// arrival returns the snapshot's value, or Arrival by default.
func arrival(snap *model.Snapshot) time.Duration {
	if snap.Arrival > 0 {
		return snap.Arrival
	}
	return Arrival
}

// arrivalNoted returns the age at which the record on a claim is renewed while pods are still being evicted.
func arrivalNoted(snap *model.Snapshot) time.Duration { return arrival(snap) / 2 }

// aheadAtMost is the largest accepted clock difference of the process that recorded when pods were sent.
const aheadAtMost = time.Minute

// ExpectingUntil returns until when the node, if it is empty, is kept for pods that were sent to it, by a command or
// because their own node is being deleted. It is the zero time where no pods were sent, or where a pod was bound or
// removed since.
func ExpectingUntil(snap *model.Snapshot, n *model.Node) time.Time {
	since := sentAt(snap, n)
	if since.IsZero() || n.LastPodEvent.After(since) {
		return time.Time{}
	}
	return since.Add(arrival(snap))
}

// sentAt returns when pods were last sent to the node, zero for never. Clocks differ by seconds. A time further ahead
// is a mistake and is ignored, because it would protect the node until then.
func sentAt(snap *model.Snapshot, n *model.Node) time.Time {
	if n.ExpectingSince.After(snap.Now.Add(aheadAtMost)) {
		return time.Time{}
	}
	return n.ExpectingSince
}

// Expecting reports whether the node is empty and its capacity is reserved for pods that were sent to it.
func Expecting(snap *model.Snapshot, n *model.Node) bool {
	return ExpectingUntil(snap, n).After(snap.Now) && Inhabitants(n) == 0
}

// notices returns the writes that record on claims that pods are sent to their nodes: when the first candidate is
// deleted, and again when more pods have been evicted and the record is old, as in a slow drain. A drain without
// progress writes nothing.
func (g *Guard) notices(cmd Command) []Action {
	// Times on claims have a resolution of one second.
	began, late, left := cmd.PhaseSince.Truncate(time.Second), g.snap.Now.Add(-arrivalNoted(g.snap)), g.lastLeft(cmd)
	var actions []Action
	for _, n := range g.destinations(cmd) {
		since := sentAt(g.snap, n)
		if !n.Deleting && (since.Before(began) || since.Before(late) && left.After(since)) {
			actions = append(actions, MarkExpecting{Claim: n.Claim, UID: n.ClaimUID, At: g.snap.Now})
		}
	}
	return actions
}

// noted reports whether a command whose candidates are gone has nothing left to record. A write that fails is retried
// only for as long as its record would be valid; nothing else would end the command.
func (g *Guard) noted(cmd *Command, notices []Action) bool {
	if cmd.Vacated.IsZero() {
		cmd.Vacated = g.snap.Now
	}
	return len(notices) == 0 || g.snap.Now.After(cmd.Vacated.Add(arrival(g.snap)))
}

// lastLeft returns when a pod was last observed to leave a candidate. It is now when all candidates are gone and the
// time is unknown.
func (g *Guard) lastLeft(cmd Command) time.Time {
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

// Notices returns the writes for claims that were launched for pods of nodes that are removed without a command, by a
// user or by the cloud. They record that these pods are still expected: once at first, and again while the pods may be
// evicted at any moment.
func Notices(snap *model.Snapshot) []Action {
	guard := &Guard{snap: snap}
	soon := map[string]bool{} // by UID of pods in transit: whether the pod may be evicted now
	for _, n := range snap.Nodes {
		if !n.Deleting || n.Command != "" {
			continue
		}
		for _, p := range n.Pods {
			if moves(snap, n, p) {
				soon[p.UID] = guard.Evictable(p).OK()
			}
		}
	}
	if len(soon) == 0 {
		return nil
	}
	var actions []Action
	late := snap.Now.Add(-arrivalNoted(snap))
	for _, n := range snap.Nodes {
		since := sentAt(snap, n)
		due := func(uid string) bool {
			now, moving := soon[uid]
			return moving && (now && since.Before(late) || since.IsZero())
		}
		if n.Ours() && !n.Deleting && slices.ContainsFunc(n.BoughtFor, due) {
			actions = append(actions, MarkExpecting{Claim: n.Claim, UID: n.ClaimUID, At: snap.Now})
		}
	}
	return actions
}

// destinations returns the existing managed nodes that pods of the command's candidates are sent to.
func (g *Guard) destinations(cmd Command) []*model.Node {
	var nodes []*model.Node
	for i := range cmd.Landing {
		if n := cmd.Landing[i].On(g.snap); n != nil && n.Ours() && len(cmd.Landing[i].Pods) > 0 {
			nodes = append(nodes, n)
		}
	}
	for i := range cmd.Replacements {
		r := &cmd.Replacements[i]
		if n := g.snap.Claim(r.Name); n != nil && len(r.Promises()) > 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}
