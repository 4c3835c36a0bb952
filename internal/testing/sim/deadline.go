package sim

import "time"

// deadline is the time at which an undisturbed world must be at rest.
//
// A changed template is a disturbance that lasts until its last node is replaced. Budgets, their windows, and grace
// periods determine how long that takes: thirty nodes, one at a time, each with a pod that a PodDisruptionBudget
// protects until the terminationGracePeriod of the node has passed, take two hours. So the deadline is extended
// whenever fewer nodes of older templates remain than ever before. This is finite, and nothing else extends the
// deadline: a world in which nodes are launched and removed endlessly fails, even if the new nodes are of an older
// template.
type deadline struct {
	until time.Time
	// outdated is the lowest number of claims of older templates so far, version the API version at which they were
	// counted.
	outdated, version int
}

func newDeadline(w *world, until time.Time) *deadline {
	return &deadline{until: until, outdated: w.outdated(), version: w.api.version}
}

// look extends the deadline if a rollout has progressed, and returns it.
func (d *deadline) look(w *world) time.Time {
	if d.version == w.api.version {
		return d.until
	}
	d.version = w.api.version
	if left := w.outdated(); left < d.outdated {
		d.outdated, d.until = left, w.now.Add(patience)
	}
	return d.until
}

// outdated returns the number of claims of an older template than that of their pool. Claims that are being deleted
// count until they are gone.
func (w *world) outdated() int {
	n := 0
	for _, c := range w.api.claims() {
		if c.generation != w.setting.templates[c.pool].generation {
			n++
		}
	}
	return n
}
