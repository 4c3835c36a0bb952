package removal

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Testimony is what a witness says about a machine.
type Testimony int

const (
	// Unknown means that the witness was not asked. It counts as Alive.
	Unknown Testimony = iota
	Alive
	Gone
)

// Cause says why a machine is to be removed. It is a word of logs and events.
type Cause string

const (
	// CauseMachineGone means that the cloud does not list the machine of a claim.
	CauseMachineGone Cause = "MachineGone"
	// CauseStray means that no claim shows the machine.
	CauseStray Cause = "Stray"
	// CauseUnhealthy means that a condition of the node calls for repair.
	CauseUnhealthy Cause = "NodeUnhealthy"
)

// Case is a machine that is to be removed.
type Case struct {
	// Machine is the provider id, which identifies the case.
	Machine string
	// Pool is the NodePool, empty for a machine of none.
	Pool  string
	Cause Cause
	// Announced means that the cloud said that it ends or stops the machine, and not only that it cannot find it.
	Announced bool
	// Cloud and Node are the testimonies of the two witnesses.
	Cloud, Node Testimony
}

// bothGone reports whether both witnesses call the machine gone.
func (c Case) bothGone() bool { return c.Cloud == Gone && c.Node == Gone }

// disputed reports whether the cloud cannot find a machine whose node reports.
func (c Case) disputed() bool { return c.Cloud == Gone && c.Node != Gone && !c.Announced }

// Verdict is what to do about a case.
type Verdict int

const (
	// Keep the machine: its node reports.
	Keep Verdict = iota
	// Hold the removal until the brake lets go.
	Hold
	// Remove the machine.
	Remove
)

// Facts are what the verdicts depend on.
type Facts struct {
	// Cases are the machines in dispute and those that were to be removed within the window and are there, each once.
	Cases []Case
	// Removed is the number of removals within the window, by NodePool, whichever process carried them out.
	Removed map[string]int
	// Machines is the number of machines of each NodePool; the key "" has those of none.
	Machines map[string]int
	// Allowed are the NodePools whose removals the operator allows.
	Allowed map[string]bool
	// Latched are the NodePools that the brake held when this process began, as long as it has not seen a whole window; the
	// key "" has the fleet.
	Latched map[string]bool
}

// Count is how many machines are to be removed, and of how many.
type Count struct {
	Wanted, Limit, Machines int
}

// Ruling is the state of the brake.
type Ruling struct {
	// Pools are the NodePools whose own count holds the brake.
	Pools map[string]Count
	// Fleet is the count of all NodePools, and FleetHeld whether it holds the brake for all of them.
	Fleet     Count
	FleetHeld bool

	allowed map[string]bool
	every   bool // every NodePool is allowed
}

// leastLimit is the least number of machines that may be removed within the window, however few there are.
const leastLimit = 3

// limit is how many of so many machines may be removed within the window: a fifth, and at least leastLimit.
func limit(machines int) int { return max(leastLimit, machines/5) }

// Rule works out the state of the brake. Cases that both witnesses call gone do not count, nor do those of NodePools that
// are allowed.
func Rule(f Facts) Ruling {
	r := Ruling{Pools: map[string]Count{}, allowed: f.Allowed, every: everyPoolAllowed(f)}
	wanted := map[string]int{}
	for pool, n := range f.Removed {
		wanted[pool] += n
	}
	for _, c := range f.Cases {
		if !c.bothGone() {
			wanted[c.Pool]++
		}
	}
	for pool, machines := range f.Machines {
		r.Fleet.Machines += machines
		if _, counted := wanted[pool]; !counted && f.Latched[pool] {
			wanted[pool] = 0
		}
	}
	for pool, n := range wanted {
		if r.permits(pool) {
			continue
		}
		r.Fleet.Wanted += n
		count := Count{Wanted: n, Limit: limit(f.Machines[pool]), Machines: f.Machines[pool]}
		if pool != "" && (n > count.Limit || f.Latched[pool]) {
			r.Pools[pool] = count
		}
	}
	r.Fleet.Limit = limit(r.Fleet.Machines)
	r.FleetHeld = r.Fleet.Wanted > r.Fleet.Limit || f.Latched[""] && !r.every
	return r
}

// everyPoolAllowed reports whether there is a NodePool and all are allowed.
func everyPoolAllowed(f Facts) bool {
	pools := 0
	for pool := range f.Machines {
		if pool == "" {
			continue
		}
		if !f.Allowed[pool] {
			return false
		}
		pools++
	}
	return pools > 0
}

// permits reports whether the operator allows the removals of a NodePool, or of machines of none.
func (r Ruling) permits(pool string) bool {
	if pool == "" {
		return r.every
	}
	return r.allowed[pool]
}

// Holds reports whether the brake holds the removals of a NodePool, or of machines of none.
func (r Ruling) Holds(pool string) bool {
	if r.permits(pool) {
		return false
	}
	_, held := r.Pools[pool]
	return held || r.FleetHeld
}

// Of is the verdict about a case.
func (r Ruling) Of(c Case) Verdict {
	switch {
	case c.bothGone():
		return Remove
	case c.disputed():
		return Keep
	case r.Holds(c.Pool):
		return Hold
	}
	return Remove
}

// NodeFacts are what is known of a machine's node.
type NodeFacts struct {
	// Exists is false when the machine has no node.
	Exists bool
	// Ready is the status of the node's condition Ready, empty when it has none.
	Ready corev1.ConditionStatus
	// Renewed is when the kubelet last renewed the node's Lease, zero when there is none, and Duration for how long that
	// holds.
	Renewed  time.Time
	Duration time.Duration
}

// leaseDuration is how long a node's Lease holds that does not say it itself: the kubelet's default
// (nodeLeaseDurationSeconds, https://kubernetes.io/docs/concepts/architecture/leases/).
const leaseDuration = 40 * time.Second

// Testimony is what the node says. The kubelet writes True and False; the node lifecycle controller turns either into
// Unknown when the kubelet has not reported for node-monitor-grace-period, by its own clock, so that a clock of the node
// that is wrong does not count. A fresh Lease shows a kubelet that reports again, or that cannot write its status.
func (n NodeFacts) Testimony(now time.Time) Testimony {
	if !n.Exists {
		return Gone
	}
	if n.Ready == corev1.ConditionTrue || n.Ready == corev1.ConditionFalse {
		return Alive
	}
	duration := n.Duration
	if duration <= 0 {
		duration = leaseDuration
	}
	if !n.Renewed.IsZero() && now.Sub(n.Renewed) < duration {
		return Alive
	}
	return Gone
}
