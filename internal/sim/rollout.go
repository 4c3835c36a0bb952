package sim

import "slices"

// Applications that are rolled out anew, as a Deployment does it: another ReplicaSet takes over, a pod more at a time, and a pod of
// the old one goes when all pods of the new one are ready. The controller of the pods has another UID then.

// rollOut begins a new revision. Disks belong to a StatefulSet, which stays the same.
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

// recreate deletes all pods of an app at once. Others take their places under other names.
func (w *world) recreate(a *app) {
	for _, p := range w.api.pods() {
		if p.app == a.name && !p.daemon && p.deleting.IsZero() {
			w.deletePod(p)
		}
	}
	w.fill()
}
