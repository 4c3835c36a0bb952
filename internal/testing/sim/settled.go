package sim

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The properties of a world at rest: nothing has happened for a while, and there are no more disturbances.
const (
	// ComesToRest: the controller stops when there is nothing to do; launching and removing nodes in turns costs more
	// than either.
	ComesToRest = "comes to rest"
	// NothingLeaked: every machine that costs money is known to the cluster, and every machine that the cluster knows
	// exists.
	NothingLeaked = "nothing leaked"
	// CommandsEnd: every command is carried out or reverted, and leaves no taint, condition or annotation.
	CommandsEnd = "commands end"
	// NoPodStuck: a pod that some pool could hold runs.
	NoPodStuck = "no pod stuck"
	// Overlooked: a decision from scratch finds no node that could be removed.
	Overlooked = "overlooked"
	// StaticStands: a static pool has as many nodes as its spec requires, if they are available.
	StaticStands = "static stands"
	// Settles: an undisturbed world needs a few more commands, and then none.
	Settles = "settles"
)

// quiet is how long nothing must have happened: longer than every timer except the liveness of claims.
const quiet = 8 * time.Minute

// patience is how long a world may take to come to rest, from the calm or the last progress of a rollout
// (deadline.go): two rounds of claims that never register.
const patience = 100 * time.Minute

// atRest reports whether nothing has happened for long, and nothing is in progress.
func (w *world) atRest() bool {
	if w.now.Sub(w.api.changed) < quiet {
		return false
	}
	if past := w.setting.past; len(past) > 0 && w.now.Sub(past[len(past)-1].until) < recently {
		return false
	}
	return !slices.ContainsFunc(w.api.claims(), func(c *claim) bool {
		if !c.deleting.IsZero() {
			return !w.held(c)
		}
		return c.registered.IsZero() || c.command != ""
	})
}

// held reports whether the eviction of all pods that a drain waits for is forbidden. A claim that was deleted while
// its node was registered does not contain the name of the node.
func (w *world) held(c *claim) bool {
	held, name := false, c.node
	for _, n := range w.api.nodes() {
		if n.provider == c.provider && n.registered {
			name = n.name
		}
	}
	for _, p := range w.api.pods() {
		if p.node != name || name == "" || p.daemon {
			continue
		}
		held = true
		kept := slices.ContainsFunc(w.api.pdbs(), func(b *pdb) bool { return b.app == p.app && !b.lets(p) })
		if c.grace > 0 || !kept && !p.protected.After(w.now) {
			return false
		}
	}
	return held
}

// settled checks a world at rest.
func (c *checks) settled() {
	c.machines()
	c.traces()
	c.stuck()
	c.static()
	c.overlooked()
}

// machines checks NothingLeaked.
func (c *checks) machines() {
	byProvider := map[string]*claim{}
	for _, of := range c.w.api.claims() {
		byProvider[of.provider] = of
	}
	joined := map[string]bool{}
	for _, n := range c.w.api.nodes() {
		joined[n.provider] = true
		if byProvider[n.provider] == nil {
			c.fail(NothingLeaked, "node %s has no claim", n.name)
		}
	}
	running := map[string]bool{}
	for _, m := range c.w.cloud.alive() {
		running[m.id] = true
		if byProvider[m.id] == nil {
			c.fail(NothingLeaked, "%s runs for claim %s, which is not there", m.id, m.claim)
		}
		if !joined[m.id] {
			c.fail(NothingLeaked, "%s runs and has no node", m.id)
		}
	}
	for _, of := range c.w.api.claims() {
		if !running[of.provider] {
			c.fail(NothingLeaked, "claim %s has no machine", of.name)
		}
	}
}

// traces checks CommandsEnd.
func (c *checks) traces() {
	for _, of := range c.w.api.claims() {
		if of.deleting.IsZero() && (of.command != "" || of.reason != "") {
			c.fail(CommandsEnd, "claim %s still carries command %q, reason %q", of.name, of.command, of.reason)
		}
	}
	for _, n := range c.w.api.nodes() {
		if n.deleting.IsZero() && n.tainted(disruptedTaint) {
			c.fail(CommandsEnd, "node %s is still tainted", n.name)
		}
	}
}

// stuck checks NoPodStuck.
func (c *checks) stuck() {
	for _, p := range c.w.api.pods() {
		if p.node != "" || c.w.heldBack(p) {
			continue
		}
		if p.nominated != "" && c.w.api.node(p.nominated) == nil {
			c.fail(NoPodStuck, "%s is nominated to node %s, which is gone", p.name, p.nominated)
		}
		for _, pool := range c.w.setting.pools {
			if pool.Static {
				continue
			}
			if kind := c.holds(pool, p); kind != "" {
				c.fail(NoPodStuck, "%s waits, and %s could have bought a %s", p.name, pool.Name, kind)
			}
		}
	}
}

// holds returns a type that the pool may launch now and on which the pod runs, "" if there is none. It is a simple
// reference implementation of placement: one pod, one pool, one type after the other.
func (c *checks) holds(pool *model.PoolSpec, p *pod) string {
	if !tolerates(p, pool.Taints) {
		return ""
	}
	for i := range pool.Catalog.Types {
		t := &pool.Catalog.Types[i]
		if t.Special != asks(p) || !c.room(pool, t) || !c.carries(t, p) {
			continue
		}
		for _, o := range t.Offerings {
			for _, partition := range append([]string{""}, c.w.setting.partitions...) {
				labels := labelsAt(t, o, partition)
				if o.Available && (partition != "") == (c.w.setting.partitions != nil) && c.suits(pool, labels, p) && c.w.welcome(p, labels) {
					return t.Name
				}
			}
		}
	}
	return ""
}

// suits tries every value of the label that pools leave open.
func (c *checks) suits(pool *model.PoolSpec, labels map[string]string, p *pod) bool {
	labels[model.LabelPool] = pool.Name
	choices := []string{""}
	for _, r := range pool.Requirements {
		if r.Key == labelTeam && r.Operator == label.In {
			choices = r.Values
		}
	}
	for _, team := range choices {
		delete(labels, labelTeam)
		if team != "" {
			labels[labelTeam] = team
		}
		if satisfies(pool.Requirements, labels) && p.wants(labels) {
			return true
		}
	}
	return false
}

// asks reports whether the pod requests a resource that only special types have.
func asks(p *pod) bool {
	return amountOf(p.requests, gpu)+amountOf(p.requests, nic) > 0
}

func (c *checks) carries(t *model.InstanceType, p *pod) bool {
	need := map[string]int64{}
	add(need, p.requests)
	for _, d := range c.w.setting.daemonsOn(c.w.api.pods()) {
		add(need, d.Requests)
	}
	for name, amount := range need {
		if amount > amountOf(t.Allocatable, name) {
			return false
		}
	}
	return true
}

// room reports whether the pool's limits allow a node of the type.
func (c *checks) room(pool *model.PoolSpec, t *model.InstanceType) bool {
	used := map[string]int64{}
	for _, of := range c.w.api.claims() {
		if of.pool == pool.Name {
			add(used, of.capacity)
			used[model.ResourceNodes]++
		}
	}
	return !slices.ContainsFunc(pool.Limits, func(limit quantity.Amount) bool {
		more := amountOf(t.Capacity, limit.Name)
		if limit.Name == model.ResourceNodes {
			more = 1
		}
		return used[limit.Name]+more > limit.Value
	})
}
