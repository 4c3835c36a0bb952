package futile

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// toleratedNodes is how many nodes in a row that no pod could run on begin no pause in their pool.
const toleratedNodes = 2

// machine is a claim that was launched, until a pod runs on its node, or the node has counted for its pool. Its pods and
// their owners may be gone: a CronJob replaces its Job each minute.
type machine struct {
	claim, uid, pool string
	generation       int64
	at               time.Time
	// seen is its node as it last was, joined and empty.
	seen *model.Node
}

// observeMachines updates the machines from their claims, and forgets those that have run a pod.
func (l *Launches) observeMachines(snap *model.Snapshot) {
	l.machines = slices.DeleteFunc(l.machines, func(m *machine) bool {
		n, pool := snap.Claim(m.claim), snap.Pool(m.pool)
		switch {
		case snap.Now.Sub(m.at) > launchMemory || pool == nil:
			return true
		case m.generation != 0 && pool.Generation != 0 && m.generation != pool.Generation:
			return true // it was launched from what the pool was before
		case n == nil || m.uid != "" && n.ClaimUID != m.uid:
			return m.seen == nil && m.uid != ""
		}
		m.uid = n.ClaimUID
		if runsPods(n) || n.Disrupted || n.Command != "" {
			return true
		}
		if n.Stage >= model.Registered && !n.Deleting {
			m.seen = n
		}
		return false
	})
}

// judgeMachines counts the nodes on which pods could not run that are planned onto a new node of the same pool.
func (l *Launches) judgeMachines(snap *model.Snapshot, claims []plan.NewClaim) []plan.Action {
	planned := map[string][]*model.Pod{}
	for i := range claims {
		c := &claims[i]
		for _, p := range absent(c.Pods) {
			last := planned[c.Pool]
			if len(last) == 0 || last[len(last)-1].Shape != p.Shape || !slices.Equal(last[len(last)-1].Tolerations, p.Tolerations) {
				planned[c.Pool] = append(last, p)
			}
		}
	}
	var changed []*owner
	l.machines = slices.DeleteFunc(l.machines, func(m *machine) bool {
		if m.seen == nil {
			return false
		}
		for _, p := range planned[m.pool] {
			if s := cause(m.seen, p); s != nil {
				if o := l.of(s.scope(), s.name()); o.failed(snap, s, m, unfit(m.seen, p)) && !slices.Contains(changed, o) {
					changed = append(changed, o)
				}
				return true
			}
		}
		return false
	})
	var actions []plan.Action
	for _, o := range changed {
		actions = append(actions, plan.SetPause{Pool: o.pool, UID: snap.Pool(o.pool).UID, Pause: o.pause})
	}
	return actions
}

// failed counts a node that has shown what the pause is about, and reports whether that changes the pause. Each node
// counts that was launched after the last pause.
func (o *owner) failed(snap *model.Snapshot, s *shown, m *machine, why string) bool {
	if m.at.Before(o.pause.Until) {
		return false
	}
	if o.pause.Failures == 0 {
		o.first = m.at
	}
	o.shows, o.pool, o.over = s, s.pool, false
	o.pause = o.pause.Fail(snap.Now, snap.Now, toleratedNodes, "claim "+m.claim+": "+why)
	return true
}

// refutes reports whether the node has not shown what the pause is about: it is newer than the first that has, and a pod
// runs there that could not.
func (o *owner) refutes(n *model.Node, p *model.Pod) bool {
	first := o.first
	if first.IsZero() {
		first = o.pause.At
	}
	return n.Pool == o.shows.pool && n.Stage >= model.Registered && !p.Daemon && !n.Created.Before(first.Truncate(time.Second)) && o.shows.stops(p)
}

// recordMachine remembers a claim that was launched. It is the trial of pauses that are over.
func (l *Launches) recordMachine(at time.Time, c *plan.NewClaim) {
	l.machines = append(l.machines, &machine{claim: c.Name, pool: c.Pool, generation: c.PoolGeneration, at: at})
	for _, o := range l.owners {
		if o.shows != nil && o.shows.stopsAll(c) {
			o.launches = append(o.launches, launch{claim: c.Name, pool: c.Pool, at: at})
		}
	}
}
