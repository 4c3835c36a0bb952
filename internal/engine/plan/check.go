package plan

import (
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Check tells whether a command is still safe on this snapshot: every candidate is there, eligible and unpromised, its
// reason still holds, and the budgets of the pools allow it.
func Check(snap *model.Snapshot, cmd Command) Verdict {
	return NewGuard(snap).Admit(cmd)
}

// Guard answers, for one snapshot, which nodes may leave. It is what Check, Step and disruption.Propose have in
// common. Commands that were admitted count against the budgets for the following ones; it is therefore not safe for
// concurrent use. Making one costs a pass over nodes and pending pods.
type Guard struct {
	// CordonQuiet is how long the taint must have stood before claims are deleted, Validation how long a command that moves
	// pods to save money is left standing before it is carried out, and MinStay how long what a consolidation did stands in pools
	// that do not say: 0 means LeastStay, a negative value that it may be undone at once. NewGuard sets the usual.
	CordonQuiet time.Duration
	Validation  time.Duration
	MinStay     time.Duration
	// Judge tells whether a command that moves pods to save money is still right on this snapshot: feasible, worth its
	// price, its replacements still what would be bought. It is asked before the first visible effect and before anything
	// is deleted; of candidates that are gone or going meanwhile it is not told. Nil takes every command for right.
	Judge func(Command) Verdict
	// Cause, optional, is why a claim could not be launched or did not register. It is only noted, and decides nothing.
	Cause func(claim string) string

	snap     *model.Snapshot
	promised map[string]bool
	fleets   map[string]*fleet
	// taken are the nodes of commands admitted by this guard, with the command's ID.
	taken map[string]string
	// awaiting, purchases and pending, the UIDs of pending pods, are nil until asked for.
	awaiting  *awaiting
	pending   map[string]bool
	purchases *provisionCheck
	// trials are where commands that this guard was asked about launch nodes; backedOff are backoffs that it has written.
	trials, backedOff map[trial]bool
}

// fleet counts the nodes of one pool for its budgets.
type fleet struct {
	// total are the initialised nodes whose machine is not being terminated; absent the names of those that are not
	// ready, deleting or in a command.
	total  int64
	absent map[string]bool
}

// NewGuard counts what the snapshot shows.
func NewGuard(snap *model.Snapshot) *Guard {
	g := &Guard{CordonQuiet: CordonQuiet, Validation: Validation, MinStay: MinStay, snap: snap, promised: map[string]bool{}, fleets: map[string]*fleet{}, taken: map[string]string{}}
	for _, group := range snap.Groups {
		for _, p := range group.Pods {
			if p.Nominated != "" {
				g.promised[p.Nominated] = true
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

// Admit checks the command and, when the answer is yes, takes its nodes from the budgets. Of a command that has begun to
// delete, or has its replacements, only what is left is asked about.
func (g *Guard) Admit(cmd Command) Verdict {
	if cmd.Phase == Launching || cmd.Phase == Draining || g.begun(cmd) {
		cmd = g.rest(cmd)
	}
	for _, c := range cmd.Candidates {
		n := g.candidate(c)
		if n == nil || n.Name != c.Node || n.UID != c.NodeUID {
			return Verdict{Code: NodeGone, Node: c.Node}
		}
		if by, taken := g.taken[c.Node]; taken && by != cmd.ID || n.Command != "" && !mine(n, cmd) {
			return Verdict{Code: NodeTaken, Node: c.Node}
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
	return Verdict{}
}

// begun reports whether a candidate is being deleted that shows the command and its taint: we came to draining before a
// crash, when only some of the deletions were written.
func (g *Guard) begun(cmd Command) bool {
	return slices.ContainsFunc(cmd.Candidates, func(c Candidate) bool {
		n := g.candidate(c)
		return n != nil && n.Deleting && n.Disrupted && mine(n, cmd)
	})
}

// rest is the command without the candidates that are gone or going.
func (g *Guard) rest(cmd Command) Command {
	cmd.Candidates = slices.DeleteFunc(slices.Clone(cmd.Candidates), func(c Candidate) bool {
		n := g.candidate(c)
		return n == nil || n.Deleting
	})
	return cmd
}

// Release gives the nodes of a command that was admitted, and is not carried out, back to the budgets, but for those that
// another command has.
func (g *Guard) Release(cmd Command) {
	for _, c := range cmd.Candidates {
		if by, taken := g.taken[c.Node]; taken && by != cmd.ID {
			continue
		}
		if n := g.candidate(c); n != nil && n.Ready && !n.Deleting && (n.Command == "" || mine(n, cmd)) {
			delete(g.fleet(c.Pool).absent, c.Node)
		}
	}
}

// Removable tells whether the node may be taken away for the reason, budgets and other commands left aside (core
// specification 5.2, 5.4, 5.8 to 5.10, 5.17). The rules are asked in order: is there such a node, does somebody protect
// it, does the reason hold for it, and can all of its pods be evicted.
func (g *Guard) Removable(n *model.Node, reason Reason) Verdict {
	pool := g.snap.Pool(n.Pool)
	switch {
	case n.Deleting:
		return Verdict{Code: NodeLeaving, Node: n.Name}
	case n.Stage != model.Initialized:
		return Verdict{Code: NodeNotReady, Node: n.Name}
	case pool == nil:
		return Verdict{Code: PoolGone, Node: n.Name}
	case pool.Refused != nil:
		return Verdict{Code: PoolRefused, Node: n.Name, Rejection: pool.Refused}
	case n.DoNotDisrupt:
		return Verdict{Code: NodeProtected, Node: n.Name}
	}
	// The drain of a node that has to go, and whose claim bounds it, ends whatever its pods say.
	forced := n.DrainBounded && (reason == Drifted || reason == Expired)
	if p := g.protected(n); p != nil && !forced {
		return Verdict{Code: NodeProtected, Node: n.Name, Holder: &Holder{Pod: p.Key()}}
	}
	if g.promised[n.Name] || n.NominatedUntil.After(g.snap.Now) {
		return Verdict{Code: NodeNominated, Node: n.Name}
	}
	if v := g.holds(n, pool, reason); !v.OK() || forced {
		return v
	}
	return g.evictable(n)
}

// holds tells whether the reason itself, and the policy of the pool about it, let the node go.
func (g *Guard) holds(n *model.Node, pool *model.Pool, reason Reason) Verdict {
	switch reason {
	case Empty:
		if pool.Static {
			return Verdict{Code: NodeStatic, Node: n.Name}
		}
		if pods := Inhabitants(n); pods > 0 {
			return Verdict{Code: NodeBusy, Node: n.Name, Have: int64(pods)}
		}
		if g.Awaited(n) || g.AwaitsPendingUntil(n).After(g.snap.Now) {
			return Verdict{Code: NodeNominated, Node: n.Name}
		}
		if Expecting(g.snap, n) {
			return Verdict{Code: NodeExpecting, Node: n.Name}
		}
		return g.quiet(n, pool)
	case Underutilized:
		switch {
		case pool.Static:
			return Verdict{Code: NodeStatic, Node: n.Name}
		case pool.Policy == whenEmpty || pool.ConsolidateAfter < 0:
			return Verdict{Code: PolicyForbids, Node: n.Name}
		case n.Price <= 0:
			return Verdict{Code: PriceUnknown, Node: n.Name}
		case n.Disrupted && n.Command != "":
			return Verdict{} // no pod can come any more; that some leave is no reason to begin anew
		}
		if v := g.quiet(n, pool); !v.OK() {
			return v
		}
		return g.settled(n)
	case Drifted:
		if n.Drifted == "" {
			return Verdict{Code: NodeNotDrifted, Node: n.Name}
		}
	}
	return Verdict{}
}

// whenEmpty is the consolidation policy that only lets empty nodes go.
const whenEmpty = "WhenEmpty"

// Inhabitants counts the pods that somebody would start again elsewhere if the node went. A node without any is empty.
// Priority and deletion cost do not matter: a pod that is cheap to evict still wants a place. (Upstream takes nodes
// with only very low priority pods for empty and removes them without looking where the pods could go.)
func Inhabitants(n *model.Node) int {
	count := 0
	for _, p := range n.Pods {
		if p.Reschedulable {
			count++
		}
	}
	return count
}

func (g *Guard) quiet(n *model.Node, pool *model.Pool) Verdict {
	if pool.ConsolidateAfter < 0 {
		return Verdict{Code: PolicyForbids, Node: n.Name}
	}
	if QuietFrom(n, pool).After(g.snap.Now) {
		return Verdict{Code: NodeTooYoung, Node: n.Name}
	}
	return Verdict{}
}

// QuietFrom is when the pool's consolidateAfter will have passed for the node if no further pod comes or goes. It is
// model.Forever when the pool says Never.
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

func (g *Guard) withinBudgets(cmd Command) Verdict {
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
			return Verdict{Code: BudgetExhausted, Node: c.Node, Have: allowance.Allowed}
		}
	}
	return Verdict{}
}

// Unlimited is the allowance of a pool that no budget limits.
const Unlimited = int64(1) << 62

// Allowance is what a pool's budgets say about one reason.
type Allowance struct {
	// Total initialised nodes of the pool whose machine is not being terminated, Leaving those of them that are not
	// ready, deleting or in a command.
	Total, Leaving int64
	// Allowed to be leaving at once: the strictest budget that applies, Unlimited for none.
	Allowed int64
	// Verdict is BudgetUnreadable when a budget cannot be read; then nothing is allowed.
	Verdict Verdict
}

// Remaining is how many more nodes may leave.
func (a Allowance) Remaining() int64 { return max(0, a.Allowed-a.Leaving) }

// Allowance computes the allowance of a pool (core specification 5.6). The named nodes do not count as leaving: they
// are those that the question is about.
func (g *Guard) Allowance(name string, reason Reason, except ...string) Allowance {
	pool, f := g.snap.Pool(name), g.fleet(name)
	a := Allowance{Total: f.total, Leaving: int64(len(f.absent))}
	for _, node := range except {
		if f.absent[node] {
			a.Leaving--
		}
	}
	switch {
	case pool == nil:
		a.Verdict = Verdict{Code: PoolGone}
	case pool.BudgetError != "":
		a.Verdict = Verdict{Code: BudgetUnreadable}
	default:
		a.Allowed = allowed(pool.Budgets, reason, f.total)
	}
	return a
}

// allowed is the least value of the budgets that apply now; percentages are rounded up. No budget of the API can
// name Expired: what holds then is decided where pools are read.
func allowed(budgets []model.Budget, reason Reason, total int64) int64 {
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
