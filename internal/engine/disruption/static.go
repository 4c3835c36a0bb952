package disruption

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Surplus is why a node of a static pool goes that has more nodes than it should. No budget is asked: somebody has
// written the number.
const Surplus plan.Reason = "Surplus"

// Standing is what has to be done so that static pools have as many nodes as they say (core specification 5.17).
type Standing struct {
	// Create are the claims that are missing, by pool.
	Create []plan.NewClaim
	// Surplus are the nodes that are too many, in the order in which they should go.
	Surplus []*model.Node
	// Short are pools that lack nodes which cannot be bought now.
	Short []Short
}

// Short is a static pool that lacks nodes, and why it does not get them.
type Short struct {
	Pool    string
	Missing int64
	Verdict plan.Verdict
}

// Actions are the writes.
func (s Standing) Actions() []plan.Action {
	var actions []plan.Action
	for _, c := range s.Create {
		actions = append(actions, plan.CreateClaim{NewClaim: c, Reason: "provisioned"})
	}
	for _, n := range s.Surplus {
		actions = append(actions, plan.DeleteClaim{Claim: n.Claim, UID: n.ClaimUID, Reason: Surplus})
	}
	return actions
}

// roster is the nodes of one static pool: active ones, and those that a command is about to replace. Those that are being
// deleted count for nothing.
type roster struct {
	active, pending []*model.Node
}

func (r *roster) total() int64 { return int64(len(r.active) + len(r.pending)) }

func rosters(snap *model.Snapshot) map[string]*roster {
	by := map[string]*roster{}
	for _, p := range snap.Pools {
		if p.Static {
			by[p.Name] = &roster{}
		}
	}
	for _, n := range snap.Nodes {
		r := by[n.Pool]
		switch {
		case r == nil || !n.Ours() || n.Deleting:
		case n.Command != "":
			r.pending = append(r.pending, n)
		default:
			r.active = append(r.active, n)
		}
	}
	return by
}

// Static decides what static pools need. A node that a command replaces counts until it is being deleted, and so does
// its replacement, so that nothing is bought for it a second time; should the command be taken back, one of the two is a
// surplus. A pool need be in order to grow, not to shrink.
func Static(snap *model.Snapshot) Standing {
	var s Standing
	by, taken := rosters(snap), map[string]bool{}
	for _, p := range snap.Pools {
		r := by[p.Name]
		if r == nil {
			continue
		}
		if missing := p.Replicas - r.total(); missing > 0 {
			s.grow(snap, p, missing, taken)
		}
		if over := int64(len(r.active)) - p.Replicas; over > 0 {
			s.Surplus = append(s.Surplus, dispensable(snap, r.active)[:over]...)
		}
	}
	return s
}

// grow adds the claims that are missing, as far as the pool may have them.
func (s *Standing) grow(snap *model.Snapshot, p *model.Pool, missing int64, taken map[string]bool) {
	most, why := headroom(p)
	for range min(missing, most) {
		c := plan.BareClaim(snap, p, "", func(name string) bool { return taken[name] || snap.Claim(name) != nil })
		taken[c.Name] = true
		s.Create = append(s.Create, c)
	}
	if missing > most {
		s.Short = append(s.Short, Short{Pool: p.Name, Missing: missing - most, Verdict: why})
	}
}

// headroom is how many more nodes the pool may have now, and what is in the way of more.
func headroom(p *model.Pool) (int64, plan.Verdict) {
	switch {
	case !p.Standing():
		return 0, plan.Verdict{Code: plan.PoolBlocked, Rejection: p.Blocked}
	case !p.Valid:
		return 0, plan.Verdict{Code: plan.PoolContradiction, Key: p.Contradiction}
	case p.Types == nil || p.Eligible.Empty():
		return 0, plan.Verdict{Code: plan.NoOffering}
	case p.NodeLimit == model.NoLimit:
		return plan.Unlimited, plan.Verdict{}
	}
	return max(0, p.NodeLimit-int64(p.Nodes)), plan.Verdict{Code: plan.NodeLimitReached, Have: p.NodeLimit}
}

// dispensable sorts nodes by what is lost with them, least first: those without a machine, those that are empty, those
// whose pods nobody protects by what their eviction costs and how long they would still have lived, then the others.
func dispensable(snap *model.Snapshot, nodes []*model.Node) []*model.Node {
	type ranked struct {
		*model.Node
		class int
		loss  int64
	}
	all := make([]ranked, len(nodes))
	for i, n := range nodes {
		all[i] = ranked{n, classOf(snap, n), lossOf(n, snap.Now)}
	}
	slices.SortFunc(all, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.loss, b.loss), cmp.Compare(a.Stage, b.Stage),
			cmp.Compare(b.Price, a.Price), strings.Compare(a.Name, b.Name))
	})
	sorted := make([]*model.Node, len(all))
	for i := range all {
		sorted[i] = all[i].Node
	}
	return sorted
}

func classOf(snap *model.Snapshot, n *model.Node) int {
	protected := n.DoNotDisrupt || slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return p.ProtectedUntil.After(snap.Now) })
	switch {
	case n.Stage == model.Launching:
		return 0
	case protected:
		return 3
	case plan.Inhabitants(n) == 0:
		return 1
	}
	return 2
}

// lossOf is what evicting the node's pods costs, times the part of its life that the node still has before it.
func lossOf(n *model.Node, now time.Time) int64 {
	var cost int64
	for _, p := range n.Pods {
		if p.Reschedulable {
			cost += max(0, p.EvictionCost)
		}
	}
	return cost * lifetimeLeft(n, now)
}

// lifetimeLeft is which part of its life the node still has before it, in thousandths; all of it when it never expires.
func lifetimeLeft(n *model.Node, now time.Time) int64 {
	whole := n.ExpiresAt.Sub(n.Created)
	if n.ExpiresAt.IsZero() || whole <= 0 {
		return 1000
	}
	return min(1000, max(0, int64(n.ExpiresAt.Sub(now)/(whole/1000+1))))
}

// StaticDrift proposes the replacement of drifted nodes of static pools, each by a node made from the template, one
// command per node (core specification 5.9). A pool that has more nodes than it should waits: replacements are under
// way, or a surplus is about to go. Kept are the drifted nodes that stay for now, and why. The guard's budgets are taken
// from.
func StaticDrift(snap *model.Snapshot, guard *plan.Guard) (commands []plan.Command, kept []Kept) {
	by, taken := rosters(snap), map[string]bool{}
	for _, p := range snap.Pools {
		r := by[p.Name]
		if r == nil {
			continue
		}
		drifted := slices.DeleteFunc(slices.Clone(r.active), func(n *model.Node) bool { return n.Drifted == "" })
		if len(drifted) == 0 {
			continue
		}
		most, why := headroom(p)
		for _, n := range eldestDrift(drifted) {
			v := why
			var command plan.Command
			switch {
			case r.total() > p.Replicas:
				v = plan.Verdict{Code: plan.PoolAboveReplicas, Node: n.Name, Need: p.Replicas, Have: r.total()}
			case most > 0:
				command = replaced(snap, p, n, taken)
				if v = guard.Removable(n, plan.Drifted); v.OK() {
					v = guard.Admit(command)
				}
			}
			if !v.OK() {
				kept = append(kept, Kept{Node: n.Name, Pool: n.Pool, Reason: plan.Drifted, Verdict: v})
				continue
			}
			most--
			taken[command.Replacements[0].Name] = true
			commands = append(commands, command)
		}
	}
	return commands, kept
}

// replaced is the command that replaces the node by one made from its pool's template.
func replaced(snap *model.Snapshot, p *model.Pool, n *model.Node, taken map[string]bool) plan.Command {
	command := plan.NewCommand(snap.Now, plan.Drifted, "", []plan.Candidate{plan.CandidateOf(n)})
	command.Worth.Pods = plan.Inhabitants(n)
	command.Replacements = []plan.NewClaim{plan.BareClaim(snap, p, n.ClaimUID, func(name string) bool {
		return taken[name] || snap.Claim(name) != nil
	})}
	return command
}

// eldestDrift sorts drifted nodes: those without pods to move first, then by when they drifted.
func eldestDrift(nodes []*model.Node) []*model.Node {
	slices.SortFunc(nodes, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(min(1, plan.Inhabitants(a)), min(1, plan.Inhabitants(b))),
			a.DriftedSince.Compare(b.DriftedSince), strings.Compare(a.Name, b.Name))
	})
	return nodes
}
