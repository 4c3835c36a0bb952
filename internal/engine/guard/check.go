package guard

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
)

// Check reports whether a command is still safe on this snapshot: every candidate exists, is eligible and has no
// nominated pods, its reason still holds, and the budgets of the pools allow it.
func Check(snap *model.Snapshot, cmd plan.Command) plan.Verdict {
	return New(snap).Admit(cmd)
}

// Guard decides, for one snapshot, which nodes may be removed. Check, Step and disruption.Propose share it. Admitted
// commands count against the budgets for later ones, so a Guard is not safe for concurrent use. Creating one costs a
// pass over nodes and pending pods.
type Guard struct {
	// CordonQuiet is how long the taint must be in place before claims are deleted. Validation is how long a command
	// that moves pods to reduce cost waits before it is carried out. Settling is how long the result of a consolidation
	// is left unchanged. New sets the defaults.
	CordonQuiet time.Duration
	Validation  time.Duration
	Settling    time.Duration
	// Judge reports whether a command that moves pods to reduce cost is still right on this snapshot: feasible, worth
	// its price, and with the replacements that a new plan would launch. It is called before the first visible effect
	// and before any deletion. Candidates that are gone or being deleted are not passed to it. Nil accepts every
	// command.
	Judge func(plan.Command) plan.Verdict
	// Cause, optional, returns why a claim could not be launched or did not register. The text is only recorded and
	// affects no decision.
	Cause func(claim string) string

	snap      *model.Snapshot
	nominated map[string]bool
	fleets    map[string]*fleet
	// taken are the nodes of commands admitted by this guard, with the command's ID.
	taken map[string]string
	// ledger counts the claims that the stepped commands launch.
	ledger   model.Ledger
	arrivals *reserve.Arrivals
	// trials are the keys of the pauses that concern admitted commands.
	trials map[pause.Key]bool
	// undone is nil until first used.
	undone *undone
}

// fleet counts the nodes of one pool for its budgets.
type fleet struct {
	// total is the number of initialized nodes whose machine is not being terminated. absent are the names of those
	// that are not ready, being deleted or in a command.
	total  int64
	absent map[string]bool
}

// New returns a Guard with default durations and the counts of the snapshot.
func New(snap *model.Snapshot) *Guard {
	g := &Guard{CordonQuiet: CordonQuiet, Validation: Validation, Settling: Settling, snap: snap, ledger: snap.Ledger,
		nominated: map[string]bool{},
		fleets:    map[string]*fleet{}, taken: map[string]string{}, arrivals: reserve.ArrivalsOf(snap)}
	for _, group := range snap.Groups {
		for _, p := range group.Pods {
			if p.Nominated != "" {
				g.nominated[p.Nominated] = true
			}
		}
	}
	for _, n := range snap.Nodes {
		if !n.Ours() || n.Pool == "" || n.Stage != model.Initialized || n.Terminating {
			continue
		}
		f := g.fleet(n.Pool)
		f.total++
		if !n.Ready || n.Deleting || n.Command != "" {
			f.absent[n.Name] = true
		}
	}
	return g
}

func (g *Guard) fleet(pool string) *fleet {
	f := g.fleets[pool]
	if f == nil {
		f = &fleet{absent: map[string]bool{}}
		g.fleets[pool] = f
	}
	return f
}

// Admit checks the command and, if it is allowed, subtracts its nodes from the budgets. If the command has begun to
// delete, or has its replacements, only its remaining candidates are checked.
func (g *Guard) Admit(cmd plan.Command) plan.Verdict {
	if cmd.Phase == plan.Launching || cmd.Phase == plan.Draining || g.begun(cmd) {
		cmd = g.remaining(cmd)
	}
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if n == nil || n.Name != c.Node || n.UID != c.NodeUID {
			return plan.Verdict{Code: plan.NodeGone, Node: c.Node}
		}
		if by, taken := g.taken[c.Node]; taken && by != cmd.ID || n.Command != "" && !carries(n, cmd) {
			return plan.Verdict{Code: plan.NodeTaken, Node: c.Node}
		}
		if v := g.Removable(n, cmd.Reason); !v.OK() {
			return v
		}
	}
	if v := g.withinBudgets(cmd); !v.OK() {
		return v
	}
	for _, c := range cmd.Candidates {
		g.fleet(c.Pool).absent[c.Node] = true
		g.taken[c.Node] = cmd.ID
	}
	return plan.Verdict{}
}

// begun reports whether a candidate with the command and its taint is being deleted: the command reached draining
// before a crash that interrupted the deletions.
func (g *Guard) begun(cmd plan.Command) bool {
	return slices.ContainsFunc(cmd.Candidates, func(c plan.Candidate) bool {
		n := g.candidate(c)
		return n != nil && n.Deleting && n.Disrupted && carries(n, cmd)
	})
}

// remaining returns the command without the candidates that are gone or being deleted.
func (g *Guard) remaining(cmd plan.Command) plan.Command {
	cmd.Candidates = slices.DeleteFunc(slices.Clone(cmd.Candidates), func(c plan.Candidate) bool {
		n := g.candidate(c)
		return n == nil || n.Deleting
	})
	return cmd
}

// Release returns the nodes of an admitted command that is not carried out to the budgets, except for nodes of another
// command.
func (g *Guard) Release(cmd plan.Command) {
	for _, c := range cmd.Candidates {
		if by, taken := g.taken[c.Node]; taken && by != cmd.ID {
			continue
		}
		if n := g.candidate(c); n != nil && n.Ready && !n.Deleting && (n.Command == "" || carries(n, cmd)) {
			delete(g.fleet(c.Pool).absent, c.Node)
		}
	}
}

// Removable reports whether the node may be removed for the reason, regardless of budgets and other commands. See
// docs/disruption.md. The rules are evaluated in order: the node exists, it is not protected, the reason holds for it,
// and all of its pods can be evicted.
func (g *Guard) Removable(n *model.Node, reason plan.Reason) plan.Verdict {
	pool := g.snap.Pool(n.Pool)
	switch {
	case n.Deleting:
		return plan.Verdict{Code: plan.NodeLeaving, Node: n.Name}
	case n.Stage != model.Initialized:
		return plan.Verdict{Code: plan.NodeNotReady, Node: n.Name}
	case pool == nil:
		return plan.Verdict{Code: plan.PoolGone, Node: n.Name, Pool: n.Pool}
	case pool.Refused != nil:
		return plan.Verdict{Code: plan.PoolRefused, Node: n.Name, Rejection: pool.Refused}
	case n.DoNotDisrupt:
		return plan.Verdict{Code: plan.NodeProtected, Node: n.Name}
	case n.ZoneShifted:
		return plan.Verdict{Code: plan.ZoneShifted, Node: n.Name, Name: n.Labels[model.LabelZone]}
	}
	// The drain of a node that must be removed, and whose claim limits the drain, ends regardless of its pods.
	forced := n.DrainBounded && (reason == plan.Drifted || reason == plan.Expired)
	if p := g.protected(n); p != nil && !forced {
		return plan.Verdict{Code: plan.NodeProtected, Node: n.Name, Holder: &plan.Holder{Pod: p.Key()}}
	}
	if g.nominated[n.Name] || n.NominatedUntil.After(g.snap.Now) {
		return plan.Verdict{Code: plan.NodeNominated, Node: n.Name}
	}
	if v := g.holds(n, pool, reason); !v.OK() || forced {
		return v
	}
	return g.evictable(n)
}

// holds reports whether the reason, and the pool's policy for it, permit the removal of the node.
func (g *Guard) holds(n *model.Node, pool *model.Pool, reason plan.Reason) plan.Verdict {
	switch reason {
	case plan.Empty:
		if pool.Static {
			return plan.Verdict{Code: plan.NodeStatic, Node: n.Name}
		}
		if pods := n.Reschedulable(); pods > 0 {
			return plan.Verdict{Code: plan.NodeBusy, Node: n.Name, Have: int64(pods)}
		}
		if g.arrivals.Awaits(n) || g.arrivals.AwaitsPendingUntil(n).After(g.snap.Now) {
			return plan.Verdict{Code: plan.NodeNominated, Node: n.Name}
		}
		if reserve.Expecting(g.snap, n) {
			return plan.Verdict{Code: plan.NodeExpecting, Node: n.Name}
		}
		return g.quiet(n, pool)
	case plan.Underutilized:
		switch {
		case pool.Static:
			return plan.Verdict{Code: plan.NodeStatic, Node: n.Name}
		case pool.Policy == whenEmpty || pool.ConsolidateAfter < 0:
			return plan.Verdict{Code: plan.PolicyForbids, Node: n.Name}
		case n.Price <= 0:
			return plan.Verdict{Code: plan.PriceUnknown, Node: n.Name}
		case n.Disrupted && n.Command != "":
			// No further pod can be bound. Departing pods are no reason to start the wait again.
			return plan.Verdict{}
		case g.arrivals.Replaces(n): // whichever pods kube-scheduler has bound to it meanwhile
			return plan.Verdict{Code: plan.NodeNominated, Node: n.Name}
		}
		if v := g.quiet(n, pool); !v.OK() {
			return v
		}
		return g.settled(n)
	case plan.Drifted:
		if n.Drifted == "" {
			return plan.Verdict{Code: plan.NodeNotDrifted, Node: n.Name}
		}
	}
	return plan.Verdict{}
}

// whenEmpty is the consolidation policy that removes empty nodes only.
const whenEmpty = "WhenEmpty"

func (g *Guard) quiet(n *model.Node, pool *model.Pool) plan.Verdict {
	if pool.ConsolidateAfter < 0 {
		return plan.Verdict{Code: plan.PolicyForbids, Node: n.Name}
	}
	if QuietFrom(n, pool).After(g.snap.Now) {
		return plan.Verdict{Code: plan.NodeTooYoung, Node: n.Name}
	}
	return plan.Verdict{}
}

// QuietFrom returns when the pool's consolidateAfter will have passed for the node if no further pod is bound or
// removed. It is model.Forever when the pool says Never.
func QuietFrom(n *model.Node, pool *model.Pool) time.Time {
	if pool.ConsolidateAfter < 0 {
		return model.Forever
	}
	since := n.LastPodEvent
	if since.IsZero() {
		since = n.InitializedAt
	}
	return since.Add(pool.ConsolidateAfter)
}

func (g *Guard) withinBudgets(cmd plan.Command) plan.Verdict {
	members := map[string][]string{}
	for _, c := range cmd.Candidates {
		members[c.Pool] = append(members[c.Pool], c.Node)
	}
	for _, c := range cmd.Candidates {
		names := members[c.Pool]
		allowance := g.Allowance(c.Pool, cmd.Reason, names...)
		if !allowance.Verdict.OK() {
			return allowance.Verdict
		}
		if int64(len(names)) > allowance.Remaining() {
			return plan.Verdict{Code: plan.BudgetExhausted, Node: c.Node, Have: allowance.Allowed}
		}
	}
	return plan.Verdict{}
}

// Unlimited is the allowance of a pool without a limiting budget.
const Unlimited = int64(1) << 62

// Allowance is the result of a pool's budgets for one reason.
type Allowance struct {
	// Total is the number of initialized nodes of the pool whose machine is not being terminated. Leaving counts those
	// of them that are not ready, being deleted or in a command.
	Total, Leaving int64
	// Allowed is how many may be disrupted at once: the strictest budget that applies, Unlimited for none.
	Allowed int64
	// Verdict is BudgetUnreadable when a budget cannot be parsed; then nothing is allowed.
	Verdict plan.Verdict
}

// Remaining returns how many more nodes may be disrupted.
func (a Allowance) Remaining() int64 { return max(0, a.Allowed-a.Leaving) }

// Allowance computes the allowance of a pool, see
// https://karpenter.sh/docs/concepts/disruption/#nodepool-disruption-budgets. The nodes in except, the subject of the
// check, do not count as Leaving.
func (g *Guard) Allowance(name string, reason plan.Reason, except ...string) Allowance {
	pool, f := g.snap.Pool(name), g.fleet(name)
	a := Allowance{Total: f.total, Leaving: int64(len(f.absent))}
	for _, node := range except {
		if f.absent[node] {
			a.Leaving--
		}
	}
	switch {
	case pool == nil:
		a.Verdict = plan.Verdict{Code: plan.PoolGone}
	case pool.BudgetError != "":
		a.Verdict = plan.Verdict{Code: plan.BudgetUnreadable, Pool: name}
	default:
		a.Allowed = allowed(pool.Budgets, reason, f.total)
	}
	return a
}

// allowed returns the least value of the budgets that apply now. Percentages are rounded up. No budget of the API can
// name Expired; the conversion of pools decides which budgets apply to it.
func allowed(budgets []model.Budget, reason plan.Reason, total int64) int64 {
	least := Unlimited
	for _, b := range budgets {
		if b.Inactive || (len(b.Reasons) > 0 && !slices.Contains(b.Reasons, string(reason))) {
			continue
		}
		value := b.Count
		if b.IsPercent {
			value = (total*b.Percent + 99) / 100
		}
		least = min(least, value)
	}
	return least
}
