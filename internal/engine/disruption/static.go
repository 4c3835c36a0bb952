package disruption

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
)

// Surplus is the reason for removing a node of a static pool that has too many nodes. It ignores budgets: the user
// has set the number.
const Surplus plan.Reason = "Surplus"

// Standing holds the changes that give static pools the number of nodes in their spec (spec.replicas).
type Standing struct {
	// Create holds the missing claims, by pool.
	Create []plan.NewClaim
	// Surplus holds the excess nodes, in the order in which they should be removed.
	Surplus []*model.Node
	// Short holds pools with missing nodes that cannot be launched now.
	Short []Short
}

// Short is a static pool with missing nodes, and why they are not launched.
type Short struct {
	Pool    string
	Missing int64
	Verdict plan.Verdict
}

// Actions returns the API writes.
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

// roster holds the nodes of one static pool: active ones, and those that a command is about to replace. Nodes that
// are being deleted do not count.
type roster struct {
	pool            *model.Pool
	active, pending []*model.Node
}

func (r *roster) total() int64 { return int64(len(r.active) + len(r.pending)) }

// missing returns how many nodes the pool has too few.
func (r *roster) missing() int64 { return max(0, r.pool.Replicas-r.total()) }

// rosters returns the nodes of the static pools, and the ledger in which the replacements of commands in progress count.
func rosters(snap *model.Snapshot) (map[string]*roster, model.Ledger) {
	by, read, ledger := map[string]*roster{}, plan.CommandReader{}, snap.Ledger.Clone()
	for _, p := range snap.Pools {
		if p.Static {
			by[p.Name] = &roster{pool: p}
		}
	}
	for _, n := range snap.Nodes {
		r := by[n.Pool]
		switch {
		case r == nil || !n.Ours() || n.Deleting:
		case n.Command != "":
			r.pending = append(r.pending, n)
			for _, c := range uncreated(snap, read.Command(n)) {
				ledger.Charge(c.Use(snap))
			}
		default:
			r.active = append(r.active, n)
		}
	}
	return by, ledger
}

// uncreated returns the replacements that the command of one node has yet to create. From launching on, one that is
// missing is lost.
func uncreated(snap *model.Snapshot, cmd *plan.Command) (list []plan.NewClaim) {
	if cmd == nil || !cmd.Phase.Before(plan.Launching) {
		return nil
	}
	for _, c := range cmd.Replacements {
		if snap.Claim(c.Name) == nil && snap.Pool(c.Pool) != nil {
			list = append(list, c)
		}
	}
	return list
}

// Static computes the changes for static pools. A node that a command replaces counts until it is being deleted, and
// so does its replacement, so that no second node is launched for it. If the command is reverted, one of the two is
// surplus. A pool must be ready in order to grow, but not to shrink.
func Static(snap *model.Snapshot) Standing {
	var s Standing
	taken := map[string]bool{}
	by, ledger := rosters(snap)
	for _, p := range snap.Pools {
		r := by[p.Name]
		if r == nil {
			continue
		}
		// Pools of other controllers and providers are silent: these launch and report what is missing.
		if r.missing() > 0 && !(p.Blocked != nil && p.Blocked.Silent) {
			s.grow(snap, r, taken, ledger)
		}
		if over := int64(len(r.active)) - p.Replicas; over > 0 {
			s.Surplus = append(s.Surplus, dispensable(snap, r.active)[:over]...)
		}
	}
	return s
}

// grow adds the missing claims, as far as limits, offerings of the pool and quotas allow. All pools share the quotas.
func (s *Standing) grow(snap *model.Snapshot, r *roster, taken map[string]bool, ledger model.Ledger) {
	p, missing := r.pool, r.missing()
	most, why := r.headroom(snap, ledger)
	wanted := min(missing, most)
	claims, v := bare(snap, p, wanted, taken)
	for int64(len(claims)) < wanted { // with fewer nodes the share is smaller
		most, why, wanted = int64(len(claims)), v, int64(len(claims))
		claims, v = bare(snap, p, wanted, taken)
	}
	for i := range claims {
		if v := claims[i].Charge(snap, ledger); !v.OK() {
			most, why, claims = int64(i), v, claims[:i]
			break
		}
		taken[claims[i].Name] = true
	}
	s.Create = append(s.Create, claims...)
	if missing > most {
		s.Short = append(s.Short, Short{Pool: p.Name, Missing: missing - most, Verdict: why})
	}
}

// bare returns the given number of claims for the pool, or as many as its share of spot capacity allows, and the
// verdict that prevents more.
func bare(snap *model.Snapshot, p *model.Pool, nodes int64, taken map[string]bool) ([]plan.NewClaim, plan.Verdict) {
	sharing, names := spotshare.NewSharing(snap, p, nodes), map[string]bool{}
	var claims []plan.NewClaim
	for range nodes {
		c := plan.StaticClaim(snap, p, "", func(name string) bool { return taken[name] || names[name] || snap.Claim(name) != nil })
		if v := sharing.Narrow(&c); !v.OK() {
			return claims, v
		}
		names[c.Name] = true
		claims = append(claims, c)
	}
	return claims, plan.Verdict{}
}

// headroom returns how many more nodes the pool may have now, and the verdict that prevents more.
func (r *roster) headroom(snap *model.Snapshot, ledger model.Ledger) (int64, plan.Verdict) {
	p := r.pool
	switch {
	case !p.Standing():
		return 0, plan.Verdict{Code: plan.PoolBlocked, Rejection: p.Blocked}
	case !p.Valid:
		return 0, plan.Verdict{Code: plan.PoolContradiction, Key: p.Contradiction}
	case !hasOffering(p):
		if v := plan.NoTypes(snap, p); !v.OK() {
			return 0, v
		}
		return 0, plan.Verdict{Code: plan.NoOffering}
	}
	nodes := ledger.Nodes(ledger.Own(p.Name)[0])
	if nodes.Limit == model.NoLimit {
		return guard.Unlimited, plan.Verdict{}
	}
	return nodes.Left(), plan.Verdict{Code: plan.NodeLimitReached, Have: nodes.Limit}
}

// hasOffering reports whether one of the pool's types has an available offering.
func hasOffering(p *model.Pool) bool {
	if p.Types == nil {
		return false
	}
	offered, _ := p.Types.Offered(p.Start)
	return p.Eligible.Intersects(offered)
}

// dispensable sorts nodes by the cost of losing them, lowest first: nodes without a machine, empty nodes, nodes with
// unprotected pods by the eviction cost of the pods and the remaining lifetime, then the others.
func dispensable(snap *model.Snapshot, nodes []*model.Node) []*model.Node {
	type ranked struct {
		*model.Node
		class int
		loss  int64 // the eviction cost of the pods, times the remaining part of the node's lifetime
	}
	all := make([]ranked, len(nodes))
	for i, n := range nodes {
		all[i] = ranked{n, classOf(snap, n), evictionCost(n) * lifetimeLeft(n, snap.Now)}
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
	protected := n.DoNotDisrupt || n.ZoneShifted ||
		slices.ContainsFunc(n.Pods, func(p *model.Pod) bool { return p.ProtectedUntil.After(snap.Now) })
	switch {
	case n.Stage == model.Launching:
		return 0
	case protected:
		return 3
	case n.Reschedulable() == 0:
		return 1
	}
	return 2
}

// lifetimeLeft returns the remaining part of the node's lifetime, in thousandths; 1000 if it never expires.
func lifetimeLeft(n *model.Node, now time.Time) int64 {
	whole := n.ExpiresAt.Sub(n.Created)
	if n.ExpiresAt.IsZero() || whole <= 0 {
		return 1000
	}
	return min(1000, max(0, int64(n.ExpiresAt.Sub(now)/(whole/1000+1))))
}

// StaticDrift proposes the renewal of nodes of static pools that are drifted or will soon be deleted because of their
// age, each by a node made from the template, one command per node. A pool with too many nodes waits: replacements
// are in progress, or a surplus node is about to be removed. Missing nodes have a place within the limit before
// replacements. kept holds the nodes that should be renewed and are kept for now, and why. The commands use the budgets
// of the guard.
func StaticDrift(snap *model.Snapshot, g *guard.Guard) (commands []plan.Command, kept []Kept) {
	by, ledger := rosters(snap)
	w := &wave{snap: snap, guard: g, taken: map[string]bool{}, ledger: ledger}
	for _, p := range snap.Pools {
		r := by[p.Name]
		if r == nil {
			continue
		}
		claim := plan.StaticClaim(snap, p, "", func(string) bool { return false })
		use := claim.Use(snap)
		for n := r.missing(); n > 0 && ledger.Admit(use); n-- {
			ledger.Charge(use)
		}
		w.sharing = spotshare.NewSharing(snap, p, 1)
		for _, due := range overdue(r.active, snap.Now) {
			most, v := r.headroom(snap, ledger)
			switch {
			case r.total() > p.Replicas:
				v = plan.Verdict{Code: plan.PoolAboveReplicas, Node: due.Name, Need: p.Replicas, Have: r.total()}
			case most > 0:
				if v = w.replace(p, due); v.OK() {
					continue
				}
			}
			kept = append(kept, Kept{Node: due.Name, Pool: due.Pool, Reason: due.reason, Verdict: v})
		}
	}
	return w.commands, kept
}

// due is a node that should be renewed, and why.
type due struct {
	*model.Node
	reason plan.Reason
}

// overdue returns the nodes that should be renewed: first the drifted ones, then those that expire soon.
func overdue(nodes []*model.Node, now time.Time) []due {
	drifted := slices.DeleteFunc(slices.Clone(nodes), func(n *model.Node) bool { return n.Drifted == "" })
	aged := slices.DeleteFunc(slices.Clone(nodes), func(n *model.Node) bool {
		from := RenewFrom(n)
		return n.Drifted != "" || from.IsZero() || from.After(now)
	})
	var list []due
	for _, n := range eldestDrift(drifted) {
		list = append(list, due{n, plan.Drifted})
	}
	for _, n := range firstToExpire(aged) {
		list = append(list, due{n, plan.Expired})
	}
	return list
}

// wave is the set of replacements in static pools that begin now.
type wave struct {
	snap     *model.Snapshot
	guard    *guard.Guard
	taken    map[string]bool // names of new claims
	sharing  *spotshare.Sharing
	ledger   model.Ledger
	commands []plan.Command
}

// replace proposes to replace the node by one made from its pool's template, or returns the verdict that prevents it.
func (w *wave) replace(p *model.Pool, n due) plan.Verdict {
	if v := w.guard.Removable(n.Node, n.reason); !v.OK() {
		return v
	}
	command := plan.NewCommand(w.snap.Now, n.reason, "", []plan.Candidate{plan.CandidateOf(n.Node)})
	command.Worth.Pods = n.Node.Reschedulable()
	claim := plan.StaticClaim(w.snap, p, n.ClaimUID, func(name string) bool { return w.taken[name] || w.snap.Claim(name) != nil })
	sharing := w.sharing.Clone()
	if v := sharing.Narrow(&claim); !v.OK() {
		v.Node = n.Name
		return v
	}
	ledger := w.ledger.Clone()
	if v := claim.Charge(w.snap, ledger); !v.OK() {
		v.Node = n.Name
		return v
	}
	command.Replacements = []plan.NewClaim{claim}
	if v := w.guard.Admit(command); !v.OK() {
		return v
	}
	if v := w.guard.Paused(command); !v.OK() {
		w.guard.Release(command)
		return v
	}
	w.sharing, w.taken[claim.Name] = sharing, true
	w.ledger.Adopt(ledger)
	w.commands = append(w.commands, command)
	return plan.Verdict{}
}

// eldestDrift sorts drifted nodes: those without pods to move first, then by the time of drift.
func eldestDrift(nodes []*model.Node) []*model.Node {
	slices.SortFunc(nodes, func(a, b *model.Node) int {
		return cmp.Or(cmp.Compare(min(1, a.Reschedulable()), min(1, b.Reschedulable())),
			a.DriftedSince.Compare(b.DriftedSince), strings.Compare(a.Name, b.Name))
	})
	return nodes
}

// firstToExpire sorts nodes by the time of expiry.
func firstToExpire(nodes []*model.Node) []*model.Node {
	slices.SortFunc(nodes, func(a, b *model.Node) int {
		return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), strings.Compare(a.Name, b.Name))
	})
	return nodes
}
