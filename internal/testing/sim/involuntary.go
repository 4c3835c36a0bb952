package sim

import (
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/sim/removals"
)

// The properties of involuntary removals. They are based on the ledger of the cloud and on the nodes, and share no
// rule with the controllers.
const (
	// SecondLook: no claim is deleted because of its machine, and no machine without a claim is terminated, unless
	// the cloud was queried for that single machine in the same round. No claim is deleted because the cloud does not
	// find its machine while its node reports.
	SecondLook = "second look"
	// OnlyTheIll: no claim is repaired unless its node, according to the API server, has been unhealthy for the
	// tolerated time.
	OnlyTheIll = "only the ill"
	// FewAtATime: of machines that are alive according to the cloud or to their node, at most three and at most a
	// fifth of the NodePool or of the fleet are removed involuntarily within ten minutes.
	FewAtATime = "few at a time"
	// ReplacedSoon: a claim whose machine is gone, according to the cloud and to its node, is deleted within minutes,
	// whatever else is paused.
	ReplacedSoon = "replaced soon"
	// ProvisionsOn: while the cloud gives wrong replies, nodes are still launched for pending pods.
	ProvisionsOn = "provisions on"
	// ResumesByItself: when the cloud and the nodes agree, machines that have to be ended are ended, without the operator.
	ResumesByItself = "resumes by itself"
)

const (
	// soon is how long a claim may exist after its machine is gone: some rounds of collection, also after crashes.
	soon = 7 * time.Minute
	// waits is how long a pod may be pending although it could have a node and no node is being launched: two passes
	// of the loop, and a crash.
	waits = time.Minute
)

// removed is an involuntary removal of a machine that was alive.
type removed struct {
	at       time.Time
	id, pool string
}

// givenUp checks the deletion of a claim by a controller.
func (c *checks) givenUp(p *process, of *claim) {
	m := c.w.cloud.machine(of.provider)
	var n *node
	for _, other := range c.w.api.nodes() {
		if other.provider == of.provider {
			n = other
		}
	}
	if p.doing.repair {
		if n == nil || !c.illForLong(n) {
			c.fail(OnlyTheIll, "claim %s is repaired, its node is well, ill for a short time, or not there", of.name)
		}
		c.involuntary(of.provider, of.pool)
		return
	}
	if n == nil {
		return // its node was removed from the cluster
	}
	there, asked := p.doing.asked[of.provider]
	if !asked || there {
		c.fail(SecondLook, "claim %s is given up, the cloud was asked about %s: %t, and finds it: %t", of.name, of.provider, asked, there)
	}
	if m.speaks() && c.w.now.Sub(m.heard) > c.w.setting.lag+recently {
		c.fail(SecondLook, "claim %s is given up, its node %s reports", of.name, n.name)
	}
}

// illForLong reports whether a condition of the node requires repair and has lasted for the tolerated time.
func (c *checks) illForLong(n *node) bool {
	return !n.ill.IsZero() && c.w.now.Sub(n.ill) >= removals.IllTolerated || n.silent && c.w.now.Sub(n.turned) >= removals.SilentTolerated
}

// ended checks the termination of a machine that the collector considers to have no claim.
func (c *checks) ended(p *process, id string) {
	if !p.doing.asked[id] {
		c.fail(SecondLook, "%s is ended, and a direct look did not find it", id)
	}
	for _, of := range c.w.api.claims() {
		m := c.w.cloud.machine(id)
		if of.provider == id || m != nil && m.claimUID == of.uid && of.provider == "" {
			c.fail(SecondLook, "%s is ended as one of no claim, it is that of claim %s", id, of.name)
		}
	}
	pool := ""
	for _, n := range c.w.api.nodes() {
		if n.provider == id && n.registered {
			pool = n.labels[model.LabelPool]
		}
	}
	c.involuntary(id, pool)
}

// involuntary counts the removal of a machine that is alive: FewAtATime. A machine that the controllers terminate
// again, because a reply was lost or is old, counts once, and one that is gone does not count. The size of the fleet
// is the largest within the window.
func (c *checks) involuntary(id, pool string) {
	m := c.w.cloud.machine(id)
	again := slices.ContainsFunc(c.gone, func(r removed) bool { return r.id == id })
	if again || m != nil && (!m.gone.IsZero() || !m.ending.IsZero()) || c.w.now.Before(c.allowed) {
		return
	}
	c.gone = append(c.gone, removed{c.w.now, id, pool})
	c.measure()
	most, mostOfPool := 3, 3
	for _, s := range c.sizes {
		if c.w.now.Sub(s.at) < timers.RemovalWindow+c.w.setting.lag+recently {
			most, mostOfPool = max(most, s.fleet/5), max(mostOfPool, s.pools[pool]/5)
		}
	}
	total, ofPool := 0, 0
	for _, r := range c.gone {
		if c.w.now.Sub(r.at) < timers.RemovalWindow {
			total++
			if r.pool == pool {
				ofPool++
			}
		}
	}
	if total > most || pool != "" && ofPool > mostOfPool {
		c.fail(FewAtATime, "%d machines of the fleet and %d of pool %q were removed involuntarily within %v, %d and %d may", total, ofPool,
			pool, timers.RemovalWindow, most, mostOfPool)
	}
}

// size is the number of machines at a time.
type size struct {
	at    time.Time
	fleet int
	pools map[string]int
}

// measure records the number of machines.
func (c *checks) measure() {
	s := size{at: c.w.now, pools: map[string]int{}}
	for _, of := range c.w.api.claims() {
		if of.provider != "" {
			s.fleet++
			s.pools[of.pool]++
		}
	}
	c.sizes = append(c.sizes, s)
}

// replacedSoon checks ReplacedSoon.
func (c *checks) replacedSoon() {
	for _, of := range c.w.api.claims() {
		m := c.w.cloud.machine(of.provider)
		if m == nil || m.gone.IsZero() || !of.deleting.IsZero() || of.registered.IsZero() {
			continue
		}
		if c.w.now.Sub(m.gone) > soon && c.w.now.Sub(of.registered) > soon && c.w.cloud.honest(soon) && !c.wrongClock() {
			c.fail(ReplacedSoon, "%s is gone since %.0f, claim %s is still there", m.id, m.gone.Sub(epoch).Seconds(), of.name)
		}
	}
}

// provisions checks ProvisionsOn, while the cloud gives wrong replies. It requires that, during the whole time, the
// pod could have had a node of its own and no node was being launched.
func (c *checks) provisions() {
	idle := map[string]time.Time{}
	if c.lying() && !c.underWay() {
		for _, p := range c.w.api.pods() {
			if p.node != "" || !p.deleting.IsZero() || !p.unschedulable || c.w.heldBack(p) {
				continue
			}
			kind := c.couldHave(p)
			if kind == "" {
				continue
			}
			since, known := c.idle[p.uid]
			if !known {
				since = c.w.now
			}
			idle[p.uid] = since
			if c.w.now.Sub(since) > waits {
				c.fail(ProvisionsOn, "%s waits, nothing is under way since %.0f, and it could have a %s", p.name, since.Sub(epoch).Seconds(), kind)
			}
		}
	}
	c.idle = idle
}

// lying reports whether the cloud gives wrong replies now, and nothing else prevents launches.
func (c *checks) lying() bool {
	w := c.w
	lies := slices.ContainsFunc(w.cloud.lies, func(l lie) bool { return !w.calm && l.until.After(w.now) })
	return lies && len(w.cloud.empty) == 0 && w.quota.Before(w.now) && w.throttled.Before(w.now) && w.flaky.Before(w.now)
}

// underWay reports whether a node is being launched, or has joined and is not ready yet: pods wait for it.
func (c *checks) underWay() bool {
	return slices.ContainsFunc(c.w.api.claims(), func(of *claim) bool { return of.initialized.IsZero() && of.deleting.IsZero() })
}

// couldHave returns a type that one of the pools could launch for the pod, "" for none.
func (c *checks) couldHave(p *pod) string {
	for _, pool := range c.w.setting.pools {
		if pool.Static {
			continue
		}
		if kind := c.holds(pool, p); kind != "" {
			return kind
		}
	}
	return ""
}

// resumed checks ResumesByItself, after a time that is longer than a pause.
func (c *checks) resumed() {
	c.allowed = c.w.now.Add(permission)
	now := c.w.overdue()
	ended := slices.ContainsFunc(slices.Collect(maps.Keys(c.overdue)), func(id string) bool { return !now[id] })
	if len(c.overdue) > 0 && !ended {
		c.fail(ResumesByItself, "%d machines have to be ended, and none has been %v after the cloud answers truly", len(c.overdue), patienceOfOperator)
	}
}
