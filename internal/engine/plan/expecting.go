package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Pods whose nodes leave are evicted, go with them, and are made again by their controllers, on a busy cluster many seconds
// later. Meanwhile nobody is to be seen who is on the way to the nodes that were bought for them, or that have room for them:
// once the last node that leaves is gone, with the command on it if there was one, these look useless. So their claims remember
// when pods were sent to them.

// Arrival is for how long an empty node is kept for pods that were sent to it, unless the snapshot says otherwise.
const Arrival = time.Minute

// arrival is Arrival, or what the snapshot says instead.
func arrival(snap *model.Snapshot) time.Duration {
	if snap.Arrival > 0 {
		return snap.Arrival
	}
	return Arrival
}

// arrivalNoted is for how long a note on a claim does, while pods go on leaving.
func arrivalNoted(snap *model.Snapshot) time.Duration { return arrival(snap) / 2 }

// aheadAtMost is how far ahead of ours the clock may be that told when pods were sent.
const aheadAtMost = time.Minute

// ExpectingUntil is until when the node, if it is empty, is kept for pods that were sent to it, by a command or because their own
// node is being deleted. It is the zero time where no pods were sent, or where some have come or gone since.
func ExpectingUntil(snap *model.Snapshot, n *model.Node) time.Time {
	since := sentAt(snap, n)
	if since.IsZero() || n.LastPodEvent.After(since) {
		return time.Time{}
	}
	return since.Add(arrival(snap))
}

// sentAt is when pods were last sent to the node, zero for never. Clocks differ by seconds; a time that is further ahead is a
// mistake, and none, or it would keep the node until then.
func sentAt(snap *model.Snapshot, n *model.Node) time.Time {
	if n.ExpectingSince.After(snap.Now.Add(aheadAtMost)) {
		return time.Time{}
	}
	return n.ExpectingSince
}

// Expecting reports whether the node is empty and kept for pods that were sent to it: its room is theirs.
func Expecting(snap *model.Snapshot, n *model.Node) bool {
	return ExpectingUntil(snap, n).After(snap.Now) && Inhabitants(n) == 0
}

// notices note on claims that pods are sent to their nodes: when the first candidate is deleted, and again, if that is long
// ago because the drain takes its time, when more pods have left. A drain that stands still writes nothing.
func (g *Guard) notices(cmd Command) []Action {
	// Claims have whole seconds.
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

// noted reports whether nothing is left to note of a command whose candidates are gone. What cannot be written is tried for as
// long as it would tell anything, and no longer: nothing else would end the command.
func (g *Guard) noted(cmd *Command, notices []Action) bool {
	if cmd.Vacated.IsZero() {
		cmd.Vacated = g.snap.Now
	}
	return len(notices) == 0 || g.snap.Now.After(cmd.Vacated.Add(arrival(g.snap)))
}

// lastLeft is when a pod was last seen to leave a candidate; now when all candidates are gone, and nobody knows.
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

// Notices note on claims that were bought for pods of nodes which leave without a command, deleted by somebody or taken back by
// the cloud, that these are still to come: at first, and again while they may be evicted any moment.
func Notices(snap *model.Snapshot) []Action {
	guard := &Guard{snap: snap}
	soon := map[string]bool{} // whether they may be evicted now, by UID of those who move
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

// destinations are the nodes of ours that pods of the command's candidates are sent to, as far as they are there.
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
