package futile

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
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
	// missing is what the node has less than its type, whose name is kind, promises.
	kind    string
	missing []quantity.Amount
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
			m.kind, m.missing = missing(pool, snap, n)
		}
		return false
	})
}

// judgeMachines counts the nodes on which pods could not run that are planned onto a new node of the same pool. A single
// pod that is on a newer node, however briefly, ends the pause: kube-scheduler has bound it.
func (l *Launches) judgeMachines(snap *model.Snapshot, p *plan.Provision, claims []plan.NewClaim) []plan.Action {
	planned := plannedPods(claims)
	var changed []*owner
	l.machines = slices.DeleteFunc(l.machines, func(m *machine) bool {
		if m.seen == nil {
			return false
		}
		for _, at := range planned[m.pool] {
			s := m.cause(snap, at.claim, at.pod)
			if s == nil {
				continue
			}
			if o := l.of(s.scope(), s.name()); o.failed(snap, s, m, at) && !slices.Contains(changed, o) {
				changed = append(changed, o)
			}
			return true
		}
		return false
	})
	shown := l.shown()
	running(snap, p, func(n *model.Node, pod *model.Pod) {
		for _, o := range shown {
			if o.refutes(snap, n, pod) {
				o.anew()
			}
		}
	})
	var actions []plan.Action
	for _, o := range slices.DeleteFunc(changed, func(o *owner) bool { return o.pause.Failures == 0 }) {
		actions = append(actions, plan.SetPause{Pool: o.pool, UID: snap.Pool(o.pool).UID, Pause: o.pause})
	}
	return actions
}

// plannedPod is a pod of a claim of the plan.
type plannedPod struct {
	claim *plan.NewClaim
	pod   *model.Pod
}

// plannedPods returns the pods that are planned onto new nodes, by pool: of consecutive ones that are alike, the first.
func plannedPods(claims []plan.NewClaim) map[string][]plannedPod {
	planned := map[string][]plannedPod{}
	for i := range claims {
		c := &claims[i]
		var last *model.Pod
		for _, p := range c.Pods {
			if last == nil || last.Shape != p.Shape || !slices.Equal(last.Tolerations, p.Tolerations) {
				planned[c.Pool] = append(planned[c.Pool], plannedPod{c, p})
			}
			last = p
		}
	}
	return planned
}

// failed counts a node that has shown what the pause is about, and reports whether that changes the pause. Each node
// counts that was launched after the last pause. What nodes lack does not count further while larger types are left.
func (o *owner) failed(snap *model.Snapshot, s *shown, m *machine, at plannedPod) bool {
	if m.at.Before(o.pause.Until) {
		return false
	}
	before := o.pause
	if o.pause.Failures == 0 || !o.pause.Remembered(snap.Now) {
		o.first, o.shows = m.at, nil
	}
	if s.missing != nil && o.shows != nil {
		s.missing = raise(o.shows.missing, s.missing)
	}
	again := o.shows != nil && s.missing != nil && !s.stopsAll(snap, at.claim)
	o.shows, o.pool, o.over = s, s.pool, false
	if !again {
		o.pause = o.pause.Fail(snap.Now, snap.Now, toleratedNodes, "claim "+m.claim+": "+unfit(snap, m.seen, at.pod))
	}
	if text := textOf(s.missing); text != o.pause.Shown {
		o.pause.Shown, o.pause.At = text, snap.Now // newer than what is stored
	}
	return o.pause != before
}

// refutes reports whether the node has not shown what the pause is about: it is newer than the first that has, and a pod
// runs there that could not.
func (o *owner) refutes(snap *model.Snapshot, n *model.Node, p *model.Pod) bool {
	first := o.first
	if first.IsZero() {
		first = o.pause.At
	}
	if virtual := p.Virtual != ""; o.pause.Failures == 0 || virtual && n.Stage < model.Initialized {
		return false // a virtual pod is not bound: the node may lack what its NodePool has
	}
	return n.Pool == o.shows.pool && n.Stage >= model.Registered && !p.Daemon && !n.Created.Before(first.Truncate(time.Second)) &&
		o.shows.stops(snap, p, []string{n.Labels[model.LabelType]})
}

// recordMachine remembers a claim that was launched. It is the trial of pauses that are over.
func (l *Launches) recordMachine(snap *model.Snapshot, c *plan.NewClaim) {
	l.machines = append(l.machines, &machine{claim: c.Name, pool: c.Pool, generation: c.PoolGeneration, at: snap.Now})
	for _, o := range l.owners {
		if o.shows != nil && o.shows.stopsAll(snap, c) {
			o.launches = append(o.launches, launch{claim: c.Name, pool: c.Pool, at: snap.Now})
		}
	}
}
