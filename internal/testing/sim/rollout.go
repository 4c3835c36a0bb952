package sim

import (
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Rollouts of apps, like those of a Deployment: a new ReplicaSet takes over, with one additional pod at a time, and a
// pod of the old one is deleted when all pods of the new one are ready. The controller of the pods then has another
// UID.

// replicaSet returns the controller of a pod of an app: each revision has its own. Bare pods have none.
func (p *pod) replicaSet() model.Owner {
	if p.bare {
		return model.Owner{}
	}
	owner := model.Owner{Kind: "ReplicaSet", Name: p.app, UID: p.app}
	if p.revision > 0 {
		owner.UID = fmt.Sprintf("%s-%d", p.app, p.revision)
	}
	return owner
}

// rollOut begins a new revision. Apps with disks are StatefulSets, whose UID does not change.
func (w *world) rollOut(a *app) {
	if a.disks {
		return
	}
	a.pod.revision++
	w.say("%s is rolled out as revision %d", a.name, a.pod.revision)
	w.owned = -1
}

// roll takes a step of a rollout, and reports whether there is one.
func (w *world) roll(a *app, there []*pod, used map[string]bool) bool {
	old := slices.DeleteFunc(slices.Clone(there), func(p *pod) bool { return p.revision == a.pod.revision })
	tooMany := len(there) - a.replicas
	switch {
	case len(old) == 0 || tooMany > len(old):
		return false
	case tooMany <= 0:
		w.makePod(a, used)
	case tooMany > 1 || !slices.ContainsFunc(there, func(p *pod) bool { return p.revision == a.pod.revision && !p.ready }):
		for _, p := range old[:tooMany] {
			w.deletePod(p)
		}
	}
	return true
}

// recreate deletes all pods of an app at once. They are replaced by pods with other names.
func (w *world) recreate(a *app) {
	for _, p := range w.api.pods() {
		if p.app == a.name && !p.daemon && p.deleting.IsZero() {
			w.deletePod(p)
		}
	}
	w.fill()
}
