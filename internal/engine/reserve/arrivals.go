package reserve

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/eviction"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Arrivals knows, for one snapshot, on which nodes pods are expected that are not bound to them yet. Each part is
// computed on first use, so it is not safe for concurrent use.
type Arrivals struct {
	snap    *model.Snapshot
	transit *transit
	// pending are the UIDs of pending pods, nil until first used.
	pending map[string]bool
}

// ArrivalsOf returns the Arrivals of the snapshot.
func ArrivalsOf(snap *model.Snapshot) *Arrivals { return &Arrivals{snap: snap} }

// transit records which nodes pods in transit are expected on.
type transit struct {
	// claims are the names of the replacements of commands in progress. moving are the UIDs of pods that will be
	// evicted.
	claims, moving map[string]bool
	// destinations are the UIDs of the claims of managed nodes that commands in progress move pods to.
	destinations map[string]bool
}

// Awaits reports whether pods are expected on the node: pods that it was launched for (see AwaitsLaunchedFor), or pods
// that a command in progress moves to it. Removing it as unused would make those pods unschedulable.
func (a *Arrivals) Awaits(n *model.Node) bool {
	return a.AwaitsLaunchedFor(n) || a.inTransit().destinations[n.ClaimUID]
}

// Replaces reports whether the node is a replacement of a command in progress, which is lost without it.
func (a *Arrivals) Replaces(n *model.Node) bool { return a.inTransit().claims[n.Claim] }

func (a *Arrivals) inTransit() *transit {
	if a.transit == nil {
		a.transit = newTransit(a.snap)
	}
	return a.transit
}

// AwaitsLaunchedFor reports whether some pods that the node was launched for have not been bound to it yet: they still
// run on a node that is being removed. Placing other pods there would make them unschedulable.
func (a *Arrivals) AwaitsLaunchedFor(n *model.Node) bool {
	t := a.inTransit()
	return t.claims[n.Claim] || slices.ContainsFunc(n.LaunchedFor, func(ref model.PodRef) bool { return t.moving[ref.UID] })
}

// AwaitsPendingUntil returns until when an empty node is protected for pods that its claim was launched for and that
// are still pending. kube-scheduler may retry a pod as late as ten seconds after the node becomes schedulable
// (podMaxBackoffSeconds). Where pods are not nominated, no other record shows that they are about to be bound. The
// result is the zero time where none of the pods is pending.
func (a *Arrivals) AwaitsPendingUntil(n *model.Node) time.Time {
	until := n.InitializedAt.Add(ArrivalOf(a.snap))
	if n.InitializedAt.IsZero() || !until.After(a.snap.Now) || len(n.LaunchedFor) == 0 {
		return time.Time{}
	}
	if a.pending == nil {
		a.pending = map[string]bool{}
		for uid := range a.snap.PendingPods() {
			a.pending[uid] = true
		}
	}
	if !slices.ContainsFunc(n.LaunchedFor, func(ref model.PodRef) bool { return a.pending[ref.UID] }) {
		return time.Time{}
	}
	return until
}

func newTransit(snap *model.Snapshot) *transit {
	t := &transit{claims: map[string]bool{}, moving: map[string]bool{}, destinations: map[string]bool{}}
	read := plan.CommandReader{}
	for _, n := range snap.Nodes {
		if n.Command != "" {
			if cmd := read.Command(n); cmd != nil {
				for i := range cmd.Replacements {
					t.claims[cmd.Replacements[i].Name] = true
				}
				for _, l := range cmd.Destinations {
					// Other nodes have no claim, and are never removed as unused.
					if l.Claim != "" {
						t.destinations[l.ClaimUID] = t.destinations[l.ClaimUID] || !cmd.Phase.Over()
					}
				}
			}
		}
		if !read.Leaving(n) {
			continue
		}
		for _, p := range n.Pods {
			if eviction.Moves(snap, n, p) {
				t.moving[p.UID] = true
			}
		}
	}
	return t
}
