package brake

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// brakeView holds facts of one snapshot that several controllers need. Each is computed on first use.
type brakeView struct {
	snap *model.Snapshot
	// pending and bound are UIDs of pods. waiting and placed are the controllers of such pods.
	pending, bound, waiting, placed map[string]bool
}

// waits reports whether the pod is pending.
func (w *brakeView) waits(uid string) bool {
	if w.pending == nil {
		w.pending = map[string]bool{}
		for _, g := range w.snap.Groups {
			for _, p := range g.Pods {
				w.pending[p.UID] = true
			}
		}
	}
	return w.pending[uid]
}

// onNodes returns the UIDs of the pods that are on nodes.
func (w *brakeView) onNodes() map[string]bool {
	if w.bound == nil {
		w.bound = map[string]bool{}
		for _, n := range w.snap.Nodes {
			for _, p := range n.Pods {
				if !p.Terminating {
					w.bound[p.UID] = true
				}
			}
		}
	}
	return w.bound
}

// settled reports whether none of the controller's pods is pending and one is on a node.
func (w *brakeView) settled(owner string) bool {
	if w.waiting == nil {
		w.waiting, w.placed = map[string]bool{}, map[string]bool{}
		for _, g := range w.snap.Groups {
			for _, p := range g.Pods {
				w.waiting[ownerOf(p)] = true
			}
		}
		for _, n := range w.snap.Nodes {
			for _, p := range n.Pods {
				if !p.Terminating {
					w.placed[ownerOf(p)] = true
				}
			}
		}
	}
	return w.placed[owner] && !w.waiting[owner]
}

// notes reports whether a pause of the owner is stored on the pool.
func notes(pool *model.Pool, owner string) bool {
	return slices.ContainsFunc(pool.Holds, func(h model.LaunchHold) bool { return h.Owner == owner })
}

// releaseElsewhere returns the writes that remove the owner's pauses from all pools except one.
func releaseElsewhere(snap *model.Snapshot, owner, but string) []plan.Action {
	var actions []plan.Action
	for _, pool := range snap.Pools {
		if pool.Name != but && notes(pool, owner) {
			actions = append(actions, plan.ReleaseLaunches{Pool: pool.Name, UID: pool.UID, Owner: owner})
		}
	}
	return actions
}

// expired returns the writes that remove pauses which ended more than launchMemory ago.
func expired(snap *model.Snapshot) []plan.Action {
	var actions []plan.Action
	for _, pool := range snap.Pools {
		for _, h := range pool.Holds {
			if snap.Now.Sub(h.Until) > launchMemory {
				actions = append(actions, plan.ReleaseLaunches{Pool: pool.Name, UID: pool.UID, Owner: h.Owner})
			}
		}
	}
	return actions
}
