package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// awaiting is who is on the way to which nodes.
type awaiting struct {
	// claims are the names of the replacements of commands under way, moving the UIDs of pods that will leave their nodes.
	claims, moving map[string]bool
	// landing are the UIDs of the claims of nodes of ours that commands under way send pods to.
	landing map[string]bool
}

// Awaited reports whether somebody is on the way to the node: those that it was bought for (see Bought) or pods that a
// command under way sends there. To take it for useless would leave them without a place.
func (g *Guard) Awaited(n *model.Node) bool { return g.Bought(n) || g.awaited().landing[n.ClaimUID] }

func (g *Guard) awaited() *awaiting {
	if g.awaiting == nil {
		g.awaiting = newAwaiting(g.snap)
	}
	return g.awaiting
}

// Bought reports whether those that the node was bought for have not all come yet: they still run on a node that is
// leaving. To send others there would leave them without a place.
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

// AwaitsPendingUntil is until when a node is kept, if it is empty, for pods that its claim was launched for and that are still
// pending. kube-scheduler may try a pod again as late as ten seconds after the node opens (podMaxBackoffSeconds), and where
// pods are not nominated nothing else says that they are about to come. It is the zero time where none of them is pending.
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
					if l.Claim != "" { // nodes that are not ours have none, and nobody takes them for useless
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

// moves reports whether the pod will leave its leaving node for another as things are.
func moves(snap *model.Snapshot, n *model.Node, p *model.Pod) bool {
	return p.Reschedulable && (doomed(snap, n) || !p.ProtectedUntil.After(snap.Now) && !held(snap, p))
}
