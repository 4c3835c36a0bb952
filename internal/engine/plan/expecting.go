package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Pods that a command moves are evicted, leave with their nodes, and are made again by their controllers, on a busy cluster
// many seconds later. Meanwhile nobody is to be seen who is on the way to the nodes that were bought for them, or that have
// room for them: once the last candidate is gone with the command on it, these look useless. So their claims remember when
// pods were sent to them.

// Arrival is for how long an empty node is kept for pods that were sent to it, unless the snapshot says otherwise.
const Arrival = time.Minute

// arrival is Arrival, or what the snapshot says instead.
func arrival(snap *model.Snapshot) time.Duration {
	if snap.Arrival > 0 {
		return snap.Arrival
	}
	return Arrival
}

// arrivalNoted is how old the note on a claim may become while nodes stand that all pods have left.
func arrivalNoted(snap *model.Snapshot) time.Duration { return arrival(snap) / 2 }

// ExpectingUntil is until when the node, if it is empty, is kept for pods that a command sent to it. It is the zero time where
// no pods were sent, or where some have come or gone since.
func ExpectingUntil(snap *model.Snapshot, n *model.Node) time.Time {
	if n.ExpectingSince.IsZero() || n.LastPodEvent.After(n.ExpectingSince) {
		return time.Time{}
	}
	return n.ExpectingSince.Add(arrival(snap))
}

// Expecting reports whether the node is empty and kept for pods that were sent to it: its room is theirs.
func Expecting(snap *model.Snapshot, n *model.Node) bool {
	return ExpectingUntil(snap, n).After(snap.Now) && Inhabitants(n) == 0
}

// notices note on claims that pods are sent to their nodes: when the first candidate is deleted, and again, if that is long
// ago because the drain took its time, when all pods have left.
func (g *Guard) notices(cmd Command) []Action {
	since := cmd.PhaseSince
	if late := g.snap.Now.Add(-arrivalNoted(g.snap)); late.After(since) && g.vacated(cmd) {
		since = late
	}
	since = since.Truncate(time.Second) // as claims have it
	var actions []Action
	for _, n := range g.destinations(cmd) {
		if !n.Deleting && n.ExpectingSince.Before(since) {
			actions = append(actions, MarkExpecting{Claim: n.Claim, UID: n.ClaimUID, At: g.snap.Now})
		}
	}
	return actions
}

// Notices note on claims that were bought for pods of nodes which leave without a command, deleted by somebody or taken back by
// the cloud, that these are still to come: again and again until the last is evicted, because nobody knows when that will be.
func Notices(snap *model.Snapshot) []Action {
	moving := map[string]bool{}
	for _, n := range snap.Nodes {
		if !n.Deleting || n.Command != "" {
			continue
		}
		for _, p := range n.Pods {
			if moves(snap, n, p) {
				moving[p.UID] = true
			}
		}
	}
	if len(moving) == 0 {
		return nil
	}
	var actions []Action
	late := snap.Now.Add(-arrivalNoted(snap))
	for _, n := range snap.Nodes {
		if n.Ours() && !n.Deleting && n.ExpectingSince.Before(late) && slices.ContainsFunc(n.BoughtFor, func(uid string) bool { return moving[uid] }) {
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

// vacated reports whether no pods are left on the candidates but those that stay as long as their node.
func (g *Guard) vacated(cmd Command) bool {
	for _, c := range cmd.Candidates {
		if n := g.candidate(c); n != nil && slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return !p.Daemon }) {
			return false
		}
	}
	return true
}
