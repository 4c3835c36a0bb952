package reserve

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Expected arrivals.
//
// Pods on a node that is being removed are evicted, and their controllers recreate them, on a busy cluster many seconds
// later. Meanwhile no object shows that pods are expected on the nodes launched for them, or with capacity reserved for
// them. Once the last removed node is gone, together with the command on it, these nodes look unused. So their claims
// record when pods were sent to them.

// Arrival is how long an empty node is kept for pods that were sent to it, unless the snapshot sets another value.
const Arrival = time.Minute

// ArrivalOf returns the snapshot's value, or Arrival by default.
func ArrivalOf(snap *model.Snapshot) time.Duration {
	if snap.Arrival > 0 {
		return snap.Arrival
	}
	return Arrival
}

// RenewAfter returns the age at which the record on a claim is renewed while pods are still being evicted.
func RenewAfter(snap *model.Snapshot) time.Duration { return ArrivalOf(snap) / 2 }

// aheadAtMost is the largest accepted clock difference of the process that recorded when pods were sent.
const aheadAtMost = time.Minute

// ExpectingUntil returns until when the node, if it is empty, is kept for pods that were sent to it, by a command or
// because their own node is being deleted. It is the zero time where no pods were sent, or where a pod was bound or
// removed since.
func ExpectingUntil(snap *model.Snapshot, n *model.Node) time.Time {
	since := SentAt(snap, n)
	if since.IsZero() || n.LastPodEvent.After(since) {
		return time.Time{}
	}
	return since.Add(ArrivalOf(snap))
}

// SentAt returns when pods were last sent to the node, zero for never. Clocks differ by seconds. A time further ahead
// is a mistake and is ignored, because it would protect the node until then.
func SentAt(snap *model.Snapshot, n *model.Node) time.Time {
	if n.PodsSentAt.After(snap.Now.Add(aheadAtMost)) {
		return time.Time{}
	}
	return n.PodsSentAt
}

// Expecting reports whether the node is empty and its capacity is reserved for pods that were sent to it.
func Expecting(snap *model.Snapshot, n *model.Node) bool {
	return ExpectingUntil(snap, n).After(snap.Now) && n.Reschedulable() == 0
}

// Arriving returns the writes for claims that were launched for pods of nodes that are removed without a command, by a
// user or by the cloud. They record that these pods are still expected: once at first, and again while the pods may be
// evicted at any moment.
func Arriving(snap *model.Snapshot) []plan.Action {
	soon := map[string]bool{} // by UID of pods in transit: whether the pod may be evicted now
	for _, n := range snap.Nodes {
		if !n.Deleting || n.Command != "" {
			continue
		}
		for _, p := range n.Pods {
			if eviction.Moves(snap, n, p) {
				soon[p.UID] = eviction.Allowed(snap, p).OK()
			}
		}
	}
	if len(soon) == 0 {
		return nil
	}
	var actions []plan.Action
	late := snap.Now.Add(-RenewAfter(snap))
	for _, n := range snap.Nodes {
		since := SentAt(snap, n)
		due := func(ref model.PodRef) bool {
			now, moving := soon[ref.UID]
			return moving && (now && since.Before(late) || since.IsZero())
		}
		if n.Ours() && !n.Deleting && slices.ContainsFunc(n.LaunchedFor, due) {
			actions = append(actions, plan.MarkPodsSent{Claim: n.Claim, UID: n.ClaimUID, At: snap.Now})
		}
	}
	return actions
}
