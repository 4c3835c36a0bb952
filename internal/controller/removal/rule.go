package removal

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Liveness is what a witness says about a machine.
type Liveness int

const (
	// Unknown means that the witness was not asked. It counts as Alive.
	Unknown Liveness = iota
	Alive
	Gone
	// Failing is what the cloud says of a machine that is there and fails the cloud's checks.
	Failing
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
	// Cloud and Node are what the two witnesses say.
	Cloud, Node Liveness
}

// agreed reports whether both witnesses call the machine lost: gone, or failing in the cloud's eyes.
func (c Case) agreed() bool { return (c.Cloud == Gone || c.Cloud == Failing) && c.Node == Gone }

// disputed reports whether the cloud cannot find a machine whose node reports.
func (c Case) disputed() bool { return c.Cloud == Gone && c.Node != Gone }

// Verdict is what to do about a case.
type Verdict int

const (
	// Keep the machine: its node reports.
	Keep Verdict = iota
	// Hold the removal until the brake releases.
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

	allowed  map[string]bool
	every    bool // every NodePool is allowed
	poolless bool // there is no NodePool
	// firm are the NodePools whose brake holds without the cases that have a pace as well; the key "" has the fleet.
	firm map[string]bool
	// removed is the number of removals within the window by NodePool, and total that of all.
	removed map[string]int
	total   int
	failing bool // there are machines that fail the cloud's checks
}

// leastLimit is the least number of machines that may be removed within the window, however few there are.
const leastLimit = 3

// limit is how many of so many machines may be removed within the window: a fifth, and at least leastLimit.
func limit(machines int) int { return max(leastLimit, machines/5) }

// step is how many machines with a pace are removed within the window while the brake holds: a tenth, as the default budget
// of a NodePool has it, and at least one.
func step(machines int) int { return max(1, (machines+9)/10) }

// Rule works out the state of the brake. Cases about which both witnesses agree do not count, nor do those of NodePools that
// are allowed.
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

// census says whether there is a NodePool and all are allowed, and whether there is none.
func census(f Facts) (every, poolless bool) {
	every, poolless = true, true
	for pool := range f.Machines {
		if pool != "" {
			every, poolless = every && f.Allowed[pool], false
		}
	}
	return every && !poolless, poolless
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

// hasPace reports whether such cases go on at a pace while the brake holds. Machines that fail the cloud's checks are one witness's
// word against another's: each step shows whether the replacements fail as well. A machine of no claim waits until the operator
// allows removals, which is an annotation of NodePools; without any NodePool, there is nothing to annotate.
func (r Ruling) hasPace(c Case) bool {
	return c.Cloud == Failing || r.poolless && c.Cause == CauseStray
}

// goesOn reports whether a case is removed although the brake holds: its pace allows it, and without such cases the brake
// would not hold.
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

// paces reports whether machines of a NodePool that fail the cloud's checks go on at a pace while the brake holds.
func (r Ruling) paces(pool string) bool {
	return r.Holds(pool) && !r.firm[""] && !r.firm[pool] && r.failing
}

// Of is the verdict about a case.
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

// Take is the verdict about a case that is acted on: a removal uses up a part of the pace.
func (r *Ruling) Take(c Case) Verdict {
	verdict := r.Of(c)
	if verdict == Remove && !c.agreed() && !r.permits(c.Pool) {
		r.removed[c.Pool]++
		r.total++
	}
	return verdict
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

// Fails reports whether the node, too, calls the machine of no use: it is silent, or says itself that it is not ready.
func (n NodeFacts) Fails(now time.Time) bool {
	return n.Ready == corev1.ConditionFalse || n.Liveness(now) == Gone
}

// Liveness is what the node says. The kubelet writes True and False; the node lifecycle controller turns either into
// Unknown when the kubelet has not reported for node-monitor-grace-period, by its own clock, so that a clock of the node
// that is wrong does not count. A fresh Lease shows a kubelet that reports again, or that cannot write its status.
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
