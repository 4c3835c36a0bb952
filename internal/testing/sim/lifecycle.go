package sim

import (
	"maps"
	"slices"
	"time"
)

// Times that differ from production's.
const (
	// podEvent is the shortest time between two notes of a pod event on a claim.
	podEvent = 5 * time.Second
	// podGrace is when pods are deleted by force before the end of a drain.
	podGrace = 5 * time.Second
)

// reconcile examines every claim and node in the watched state, and queues the necessary writes.
func (p *process) reconcile() {
	nodes := map[string]*node{}
	for _, n := range list[*node](p.view.watched(nodeKind)) {
		nodes[n.provider] = n
		if !n.deleting.IsZero() && p.due(n) {
			p.drain(n)
		}
	}
	for _, c := range list[*claim](p.view.watched(claimKind)) {
		switch {
		case !p.due(c):
		case c.deleting.IsZero() && c.expireAfter > 0 && p.clock().Sub(c.created) >= c.expireAfter:
			p.chore("delete claim "+c.name+", expired", func() { p.w.api.markDeleted(c.key(), c.uid) })
		case !c.deleting.IsZero():
			p.finalize(c, nodes[p.machineOf(c)])
		case c.launched.IsZero():
			p.launch(c)
		default:
			p.age(c)
			p.join(c, nodes[c.provider])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.view.podEvents)) {
		delete(p.view.podEvents, name)
		p.notePodEvent(name)
	}
	if !p.w.now.Before(p.collect) {
		p.collect = p.w.now.Add(timers.Collection)
		p.collectGarbage()
	}
}

// age maintains the condition Drifted.
func (p *process) age(c *claim) {
	if drifted := c.generation != p.w.setting.templates[c.pool].generation; drifted == c.drifted.IsZero() {
		if !drifted {
			p.chore("claim "+c.name+" matches its template again", func() { p.edit(c, func(o object) { o.(*claim).drifted = time.Time{} }) })
			return
		}
		p.chore("claim "+c.name+" has drifted", func() { p.edit(c, func(o object) { o.(*claim).drifted = p.clock() }) })
	}
}

// due returns false while an object is paused.
func (p *process) due(o object) bool { return !p.again[o.header().uid].After(p.w.now) }

func (p *process) pause(o object, d time.Duration) { p.again[o.header().uid] = p.w.now.Add(d) }

// chore queues a write to a watched object; after a conflict the next pass tries again.
func (p *process) chore(text string, do func()) {
	p.chores = append(p.chores, write{text, func() bool { do(); return true }})
}

func (p *process) edit(o object, edit func(object)) {
	if p.w.throttles() {
		return
	}
	p.w.api.update(o.key(), o.header().uid, o.header().version, edit)
}

// machineOf returns the claim's machine as far as the process knows it.
func (p *process) machineOf(c *claim) string {
	if c.provider != "" {
		return c.provider
	}
	if said := p.calls[c.uid]; said != nil && said.machine != nil {
		return said.machine.id
	}
	return ""
}

func (p *process) launch(c *claim) {
	said := p.calls[c.uid]
	switch {
	case said != nil && said.lost && p.clock().Sub(c.created) > timers.Launch:
		p.chore("delete claim "+c.name+", never launched", func() { p.w.api.markDeleted(c.key(), c.uid) })
	case said == nil || said.lost:
		p.chore("ask the cloud for claim "+c.name, func() { p.ask(c) })
	case !said.answered:
	case said.machine == nil:
		p.chore("delete claim "+c.name+", no capacity", func() { p.w.api.markDeleted(c.key(), c.uid) })
	default:
		m := said.machine
		p.chore("note "+m.id+" on claim "+c.name, func() {
			p.edit(c, func(o object) {
				c := o.(*claim)
				c.provider, c.launched, c.capacity, c.allocatable = m.id, p.clock(), m.kind.Capacity, m.kind.Allocatable
				c.labels = maps.Clone(c.labels)
				maps.Copy(c.labels, m.labels)
			})
		})
	}
}

// ask sends a launch. The cloud may be slow, and its reply may be lost, or arrive after the process has died.
func (p *process) ask(c *claim) {
	if before := p.calls[c.uid]; before != nil && !before.lost {
		return
	}
	said := &call{}
	p.calls[c.uid] = said
	slow := p.w.between(50*time.Millisecond, 3*time.Second)
	if p.w.spring(atLaunch) || !p.w.calm && p.w.rng.IntN(8) == 0 {
		slow = p.w.between(5*time.Second, 90*time.Second)
	}
	p.w.after(slow, func() {
		m := p.w.cloud.launch(c)
		lost := !p.w.calm && p.w.rng.IntN(8) == 0
		p.w.after(p.w.between(0, time.Second), func() {
			switch {
			case p.dead:
			case lost:
				said.lost = true
				p.pause(c, p.w.between(time.Second, 5*time.Second))
			default:
				said.answered, said.machine = true, m
			}
		})
	})
}

// join registers and initializes the node of a launched claim.
func (p *process) join(c *claim, n *node) {
	switch {
	case c.registered.IsZero() && n == nil && p.clock().Sub(c.launched) > timers.Registration:
		p.chore("delete claim "+c.name+", never registered", func() { p.w.api.markDeleted(c.key(), c.uid) })
	case n == nil || !c.initialized.IsZero():
	case c.registered.IsZero() && !n.registered:
		p.register(c, n)
	case c.registered.IsZero():
		p.chore("claim "+c.name+" is registered", func() {
			p.edit(c, func(o object) { o.(*claim).registered, o.(*claim).node = p.clock(), n.name })
		})
	case n.ready && !n.initialized:
		p.chore("node "+n.name+" is initialized", func() { p.edit(n, func(o object) { o.(*node).initialized = true }) })
	case n.ready:
		p.chore("claim "+c.name+" is initialized", func() { p.edit(c, func(o object) { o.(*claim).initialized = p.clock() }) })
	}
}

// register nominates the pods to the node and then removes the unregistered taint.
func (p *process) register(c *claim, n *node) {
	for _, a := range p.nominations(c, n) {
		p.chores = append(p.chores, write{a.String(), func() bool { return p.perform(a) }})
	}
	p.chore("register node "+n.name, func() {
		p.edit(n, func(o object) {
			n := o.(*node)
			n.labels = maps.Clone(n.labels)
			maps.Copy(n.labels, c.labels)
			n.untaint(unregisteredTaint)
			n.taints = append(n.taints, c.taints...)
			n.registered = true
		})
	})
}

// finalize removes a deleted claim: first the node, then the machine, then the finalizer.
func (p *process) finalize(c *claim, n *node) {
	if said := p.calls[c.uid]; said != nil && !said.answered && !said.lost {
		return // one reconciler per claim: the launch is still in progress
	}
	// A live read decides: the watch may not show a registration yet.
	if n != nil && c.registered.IsZero() && !n.registered {
		n = p.w.api.node(n.name)
	}
	if n != nil && (!c.registered.IsZero() || n.registered) {
		if n.deleting.IsZero() {
			p.chore("delete node "+n.name, func() { p.w.api.markDeleted(n.key(), n.uid) })
		}
		return
	}
	p.pause(c, time.Second)
	p.chore("take down the machine of claim "+c.name, func() {
		waiting := false
		for _, id := range p.machinesOf(c) {
			waiting = p.w.cloud.terminate(id) || waiting
		}
		switch {
		case !waiting:
			if live := p.w.api.claim(c.name); live != nil && live.version == c.version {
				p.w.api.remove(c.key(), c.uid)
			}
		case c.terminating.IsZero():
			p.edit(c, func(o object) { o.(*claim).terminating = p.clock() })
		}
	})
}

// machinesOf searches the cloud's list for a claim without a known machine, unless the cloud has replied that there
// is none.
func (p *process) machinesOf(c *claim) (ids []string) {
	if id := p.machineOf(c); id != "" {
		return []string{id}
	}
	if said := p.calls[c.uid]; said != nil && !said.lost {
		return nil
	}
	for _, m := range p.w.cloud.alive() {
		if m.claim == c.name {
			ids = append(ids, m.id)
		}
	}
	return ids
}

// drain evicts the pods of a node that is being deleted, terminates its machine and removes its finalizer.
func (p *process) drain(n *node) {
	if !n.tainted(disruptedTaint) {
		p.chore("taint leaving node "+n.name, func() { p.edit(n, func(o object) { o.(*node).taint(disruptedTaint) }) })
		return
	}
	left, deadline := false, p.deadlineOf(n)
	for _, q := range list[*pod](p.view.watched(podKind)) {
		if q.node != n.name || q.daemon {
			continue
		}
		left = true
		switch {
		case !q.deleting.IsZero():
		case !deadline.IsZero() && p.clock().After(deadline.Add(-podGrace)):
			p.chore("delete "+q.name+" by force", func() {
				if live := p.w.api.pod(q.name); live != nil && live.uid == q.uid {
					p.w.deletePod(live)
				}
			})
		case !q.protected.After(p.clock()):
			p.chore("evict "+q.name, func() { p.w.evict(q.name, q.uid) })
		}
	}
	p.pause(n, timers.Drain)
	if left || p.clock().Sub(n.deleting) < timers.DrainMin {
		return
	}
	p.chore("take down node "+n.name, func() {
		if !p.w.cloud.terminate(n.provider) {
			p.w.api.remove(n.key(), n.uid)
		}
	})
}

// deadlineOf returns when the termination grace period of the node's claim ends, zero for never.
func (p *process) deadlineOf(n *node) time.Time {
	for _, c := range list[*claim](p.view.watched(claimKind)) {
		switch {
		case c.provider != n.provider || c.deleting.IsZero():
		case c.grace > 0:
			return c.deleting.Add(c.grace)
		}
	}
	return time.Time{}
}

// notePodEvent records on the claim when a pod was bound to its node or removed from it.
func (p *process) notePodEvent(name string) {
	n, _ := p.view.seen[nodeKind][name].(*node)
	if n == nil {
		return
	}
	c, _ := p.view.seen[claimKind][p.claimName(n)].(*claim)
	if c == nil || c.initialized.IsZero() || p.clock().Sub(c.lastPodEvent) < podEvent {
		return
	}
	p.chore("note a pod event on claim "+c.name, func() { p.edit(c, func(o object) { o.(*claim).lastPodEvent = p.clock().Truncate(time.Second) }) })
}

func (p *process) claimName(n *node) string {
	for _, c := range list[*claim](p.view.watched(claimKind)) {
		if c.provider == n.provider {
			return c.name
		}
	}
	return ""
}

// collectGarbage terminates machines without a claim and deletes claims without a machine.
func (p *process) collectGarbage() {
	machines, shown, unlaunched := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, m := range p.w.cloud.alive() {
		machines[m.id] = m.ending.IsZero()
	}
	for _, c := range p.w.api.claims() {
		if c.provider == "" {
			unlaunched[c.name] = true
			continue
		}
		shown[c.provider] = true
		if !machines[c.provider] && c.deleting.IsZero() && !c.registered.IsZero() {
			p.chore("delete claim "+c.name+", its machine is gone", func() { p.w.api.markDeleted(c.key(), c.uid) })
		}
	}
	for _, m := range p.w.cloud.alive() {
		if m.ending.IsZero() && !shown[m.id] && !unlaunched[m.claim] && p.w.now.Sub(m.bought) > timers.LeakUnnoted {
			p.chore("end leaked "+m.id, func() { p.w.cloud.terminate(m.id) })
		}
	}
}
