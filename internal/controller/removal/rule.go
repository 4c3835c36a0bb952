package removal

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Liveness is what a witness reports about a machine.
type Liveness int

const (
	// Unknown means that the witness was not queried. It counts as Alive.
	Unknown Liveness = iota
	Alive
	Gone
	// Failing means that the cloud reports the machine as existing and failing the cloud's checks.
	Failing
)

// Cause is why a machine is to be removed. Logs and events contain it.
type Cause string

const (
	// CauseMachineGone means that the cloud does not list the machine of a claim.
	CauseMachineGone Cause = "MachineGone"
	// CauseStray means that no claim shows the machine.
	CauseStray Cause = "Stray"
	// CauseUnhealthy means that a condition of the node requires repair.
	CauseUnhealthy Cause = "NodeUnhealthy"
	// CauseNodeGone means that the Node object of a claim is gone.
	CauseNodeGone Cause = "NodeGone"
)

// Case is a machine that is to be removed.
type Case struct {
	// Machine is the provider ID, which identifies the case.
	Machine string
	// Pool is the NodePool, empty for a machine without one.
	Pool  string
	Cause Cause
	// Cloud and Node are the reports of the two witnesses.
	Cloud, Node Liveness
}

// agreed reports whether both witnesses report the machine as lost: the node is silent, and the cloud reports the machine
// as gone or failing. A machine that the cloud reports as failing and whose node reports is alive, and not agreed on.
func (c Case) agreed() bool { return (c.Cloud == Gone || c.Cloud == Failing) && c.Node == Gone }

// disputed reports whether the cloud cannot find a machine whose node reports.
func (c Case) disputed() bool { return c.Cloud == Gone && c.Node != Gone }

// Verdict is the decision about a case.
type Verdict int

const (
	// Keep the machine: its node reports.
	Keep Verdict = iota
	// Hold the removal until the brake releases.
	Hold
	// Remove the machine.
	Remove
)

// Facts are the input of the verdicts.
type Facts struct {
	// Cases are the machines in dispute and the existing machines that were to be removed within the window, each
	// once.
	Cases []Case
	// Removed is the number of removals within the window, by NodePool, for all processes.
	Removed map[string]int
	// Machines is the number of machines of each NodePool. The key "" holds those without a NodePool.
	Machines map[string]int
	// Allowed holds the NodePools whose removals the operator allows.
	Allowed map[string]bool
	// Latched holds the NodePools that the Brake held when this process started, until the process has covered a
	// whole window. The key "" holds the state for all NodePools together.
	Latched map[string]bool
}

// Count is the number of machines to be removed, its limit, and the number of machines.
type Count struct {
	Wanted, Limit, Machines int
}

// Ruling is the state of the brake.
type Ruling struct {
	// Pools holds the NodePools whose own count holds the Brake.
	Pools map[string]Count
	// Fleet is the count of all NodePools, and FleetHeld whether it holds the Brake for all of them.
	Fleet     Count
	FleetHeld bool

	allowed  map[string]bool
	every    bool // every NodePool is allowed
	poolless bool // there is no NodePool
	// firm holds the NodePools for which the Brake holds even without the rate-limited cases. The key "" holds that
	// for all NodePools together.
	firm map[string]bool
	// removed is the number of removals within the window by NodePool, and total the sum.
	removed map[string]int
	total   int
	failing bool // there are machines that fail the cloud's checks
}

// leastLimit is the minimum of the limit for removals within the window, even for few machines.
const leastLimit = 3

// limit returns how many of the machines may be removed within the window: a fifth, and at least leastLimit.
func limit(machines int) int { return max(leastLimit, machines/5) }

// step returns how many machines are removed per window by rate-limited removals while the Brake holds: a tenth, as
// in the default budget of a NodePool, and at least one.
func step(machines int) int { return max(1, (machines+9)/10) }

// Rule computes the state of the Brake. Cases on which both witnesses agree do not count, nor do those of allowed
// NodePools.
func Rule(f Facts) Ruling {
	r := Ruling{Pools: map[string]Count{}, allowed: f.Allowed, firm: map[string]bool{}, removed: map[string]int{}}
	r.every, r.poolless = census(f)
	wanted, paced := map[string]int{}, map[string]int{}
	for pool, n := range f.Removed {
		r.removed[pool] = n
		wanted[pool] += n
		if !r.permits(pool) {
			r.total += n
		}
	}
	for _, c := range f.Cases {
		if c.agreed() {
			continue
		}
		wanted[c.Pool]++
		r.failing = r.failing || c.Cloud == Failing
		if r.hasPace(c) {
			paced[c.Pool]++
		}
	}
	for pool, machines := range f.Machines {
		r.Fleet.Machines += machines
		if _, counted := wanted[pool]; !counted && f.Latched[pool] {
			wanted[pool] = 0
		}
	}
	slack := 0
	for pool, n := range wanted {
		if r.permits(pool) {
			continue
		}
		r.Fleet.Wanted += n
		slack += paced[pool]
		count := Count{Wanted: n, Limit: limit(f.Machines[pool]), Machines: f.Machines[pool]}
		if pool != "" && (n > count.Limit || f.Latched[pool]) {
			r.Pools[pool] = count
			r.firm[pool] = n-paced[pool] > count.Limit || f.Latched[pool]
		}
	}
	r.Fleet.Limit = limit(r.Fleet.Machines)
	latched := f.Latched[""] && !r.every
	r.FleetHeld = r.Fleet.Wanted > r.Fleet.Limit || latched
	r.firm[""] = r.Fleet.Wanted-slack > r.Fleet.Limit || latched
	return r
}

// census reports whether there is a NodePool and all are allowed, and whether there is none.
func census(f Facts) (every, poolless bool) {
	every, poolless = true, true
	for pool := range f.Machines {
		if pool != "" {
			every, poolless = every && f.Allowed[pool], false
		}
	}
	return every && !poolless, poolless
}

// permits reports whether the operator allows the removals of a NodePool, or of machines without one.
func (r Ruling) permits(pool string) bool {
	if pool == "" {
		return r.every
	}
	return r.allowed[pool]
}

// Holds reports whether the Brake holds the removals of a NodePool, or of machines without one.
func (r Ruling) Holds(pool string) bool {
	if r.permits(pool) {
		return false
	}
	_, held := r.Pools[pool]
	return held || r.FleetHeld
}

// hasPace reports whether such cases continue, rate-limited, while the Brake holds. For machines that fail the
// cloud's checks, the two witnesses disagree: each step shows whether the replacements fail as well. A machine
// without a claim waits until the operator allows removals with an annotation of NodePools. Without any NodePool,
// there is nothing to annotate.
func (r Ruling) hasPace(c Case) bool {
	return c.Cloud == Failing || r.poolless && c.Cause == CauseStray
}

// goesOn reports whether a case is removed although the Brake holds: the rate allows it, and without such cases the
// Brake would not hold.
func (r Ruling) goesOn(c Case) bool {
	if !r.hasPace(c) || r.firm[""] || r.firm[c.Pool] {
		return false
	}
	if c.Cloud != Failing {
		return r.total < r.Fleet.Limit
	}
	if own, held := r.Pools[c.Pool]; held && r.removed[c.Pool] >= step(own.Machines) {
		return false
	}
	return !r.FleetHeld || r.total < step(r.Fleet.Machines)
}

// paces reports whether machines of a NodePool that fail the cloud's checks are removed, rate-limited, while the
// Brake holds.
func (r Ruling) paces(pool string) bool {
	return r.Holds(pool) && !r.firm[""] && !r.firm[pool] && r.failing
}

// Of returns the verdict about a case.
func (r Ruling) Of(c Case) Verdict {
	switch {
	case c.agreed():
		return Remove
	case c.disputed():
		return Keep
	case r.Holds(c.Pool) && !r.goesOn(c):
		return Hold
	}
	return Remove
}

// Take returns the verdict about a case that is executed: a removal consumes a part of the rate.
func (r *Ruling) Take(c Case) Verdict {
	verdict := r.Of(c)
	if verdict == Remove && !c.agreed() && !r.permits(c.Pool) {
		r.removed[c.Pool]++
		r.total++
	}
	return verdict
}

// NodeFacts are the facts about a machine's node.
type NodeFacts struct {
	// Exists is false when the machine has no node.
	Exists bool
	// Ready is the status of the node's condition Ready, empty if it is absent.
	Ready corev1.ConditionStatus
	// Renewed is when the kubelet last renewed the node's Lease, or zero if there is none. Duration is the duration
	// of the Lease.
	Renewed  time.Time
	Duration time.Duration
}

// leaseDuration is the duration of a node's Lease that does not specify it: the kubelet's default
// (nodeLeaseDurationSeconds, https://kubernetes.io/docs/concepts/architecture/leases/).
const leaseDuration = 40 * time.Second

// Liveness returns the node's report. The kubelet writes True and False. The node lifecycle controller changes either
// to Unknown when the kubelet has not reported for node-monitor-grace-period, by its own clock, so that a wrong clock
// of the node has no effect. A fresh Lease shows a kubelet that reports again, or that cannot write its status.
func (n NodeFacts) Liveness(now time.Time) Liveness {
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
