package sim

import "time"

// deadline is when a world that is left alone has to be at rest.
//
// A changed template is a disturbance that lasts until its last node is replaced. Budgets, their windows, and grace periods say
// how long that is: thirty nodes, one at a time, each with a pod that a PodDisruptionBudget keeps until the
// terminationGracePeriod of the node is over, take two hours. So the patience begins anew each time fewer nodes of older
// templates are left than ever before. That ends, and nothing else moves the deadline: a world in which nodes come and go
// without end fails, also when the nodes that come are of an older template.
type deadline struct {
	until time.Time
	// outdated is the least number of claims of older templates so far, version the API's at which they were counted.
	outdated, version int
}

func newDeadline(w *world, until time.Time) *deadline {
	return &deadline{until: until, outdated: w.outdated(), version: w.api.version}
}

// look moves the deadline if a rollout has gone on, and returns it.
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

// outdated is how many claims are of an older template than their pool has. Those that are being deleted count until they
// are gone.
func (w *world) outdated() int {
	n := 0
	for _, c := range w.api.claims() {
		if c.generation != w.setting.templates[c.pool].generation {
			n++
		}
	}
	return n
}
