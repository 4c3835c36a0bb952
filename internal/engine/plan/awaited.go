package plan

import "github.com/karpenter-go/karpenter/internal/engine/model"

// awaiting is who is on the way to nodes that were bought in the place of others.
type awaiting struct {
	// claims are the names of the replacements of commands under way, moving the UIDs of pods that will leave their nodes.
	claims, moving map[string]bool
}

// Awaited reports whether those that the node was bought for have not all come yet: they still run on a node that is
// leaving. To take it for useless, or to send others there, would leave them without a place.
func (g *Guard) Awaited(n *model.Node) bool {
	if g.awaiting == nil {
		g.awaiting = newAwaiting(g.snap)
	}
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

func newAwaiting(snap *model.Snapshot) *awaiting {
	a := &awaiting{claims: map[string]bool{}, moving: map[string]bool{}}
	for _, n := range snap.Nodes {
		if n.Command != "" {
			if cmd, err := DecodeCommand(n.Command); err == nil && cmd.names(n) {
				for i := range cmd.Replacements {
					a.claims[cmd.Replacements[i].Name] = true
				}
			}
		}
		if !Leaving(n.NodeSpec) {
			continue
		}
		for _, p := range n.Pods {
			if p.Reschedulable && !p.ProtectedUntil.After(snap.Now) && !held(snap, p) {
				a.moving[p.UID] = true
			}
		}
	}
	return a
}
