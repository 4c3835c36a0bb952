package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// awaiting records which nodes pods in transit are expected on.
type awaiting struct {
	// claims are the names of the replacements of commands in progress. moving are the UIDs of pods that will be
	// evicted.
	claims, moving map[string]bool
	// landing are the UIDs of the claims of managed nodes that commands in progress move pods to.
	landing map[string]bool
}

// Awaited reports whether pods are expected on the node: pods that it was launched for (see Bought), or pods that a
// command in progress moves to it. Removing it as unused would make those pods unschedulable.
func (g *Guard) Awaited(n *model.Node) bool { return g.Bought(n) || g.awaited().landing[n.ClaimUID] }

func (g *Guard) awaited() *awaiting {
	if g.awaiting == nil {
		g.awaiting = newAwaiting(g.snap)
	}
	return g.awaiting
}

// Bought reports whether some pods that the node was launched for have not been bound to it yet: they still run on a
// node that is being removed. Placing other pods there would make them unschedulable.
func (g *Guard) Bought(n *model.Node) bool {
	g.awaited()
	if g.awaiting.claims[n.Claim] {
		return true
	}
	for _, uid := range n.BoughtFor {
		if g.awaiting.moving[uid] {
			return true
		}
	}
	return false
}

// AwaitsPendingUntil returns until when an empty node is protected for pods that its claim was launched for and that
// are still pending. kube-scheduler may retry a pod as late as ten seconds after the node becomes schedulable
// (podMaxBackoffSeconds). Where pods are not nominated, no other record shows that they are about to be bound. The
// result is the zero time where none of the pods is pending.
func (g *Guard) AwaitsPendingUntil(n *model.Node) time.Time {
	until := n.InitializedAt.Add(arrival(g.snap))
	if n.InitializedAt.IsZero() || !until.After(g.snap.Now) || len(n.BoughtFor) == 0 {
		return time.Time{}
	}
	if g.pending == nil {
		g.pending = map[string]bool{}
		for _, group := range g.snap.Groups {
			for _, p := range group.Pods {
				g.pending[p.UID] = true
			}
		}
	}
	if !slices.ContainsFunc(n.BoughtFor, func(uid string) bool { return g.pending[uid] }) {
		return time.Time{}
	}
	return until
}

func newAwaiting(snap *model.Snapshot) *awaiting {
	a := &awaiting{claims: map[string]bool{}, moving: map[string]bool{}, landing: map[string]bool{}}
	read := reader{}
	for _, n := range snap.Nodes {
		if n.Command != "" {
			if cmd := read.command(n); cmd != nil {
				for i := range cmd.Replacements {
					a.claims[cmd.Replacements[i].Name] = true
				}
				for _, l := range cmd.Landing {
					// Other nodes have no claim, and are never removed as unused.
					if l.Claim != "" {
						a.landing[l.ClaimUID] = a.landing[l.ClaimUID] || !cmd.Phase.Over()
					}
				}
			}
		}
		if !read.leaving(n) {
			continue
		}
		for _, p := range n.Pods {
			if moves(snap, n, p) {
				a.moving[p.UID] = true
			}
		}
	}
	return a
}

// moves reports whether, in the current state, the pod will be evicted from its node and rescheduled.
func moves(snap *model.Snapshot, n *model.Node, p *model.Pod) bool {
	return p.Reschedulable && (doomed(snap, n) || !p.ProtectedUntil.After(snap.Now) && !held(snap, p))
}
