package sim

import (
	"cmp"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The properties of disruption that are checked continuously. They are based on what the process can know, unless
// stated otherwise, and share no rule with the engine.
const (
	// PDBsHold: no command removes a node while a PodDisruptionBudget protects a pod on it. Otherwise its drain does
	// not end, and the node is neither usable nor gone meanwhile.
	PDBsHold = "PDBs hold"
	// ProtectionHolds: no command removes a node, and no pod is evicted, against a do-not-disrupt protection that has
	// not ended.
	ProtectionHolds = "protection holds"
	// ReplacedFirst: a node is removed only after its replacements exist.
	ReplacedFirst = "replaced first"
	// Housed: a node is removed to save cost only if each of its pods has a place on a node that is kept.
	Housed = "housed"
	// Cheaper: the replacements of a consolidation cost less than the nodes that it removes, according to the cloud's
	// bill.
	Cheaper = "cheaper"
	// StaticKept: no node of a static pool is removed as surplus unless the pool has too many.
	StaticKept = "static kept"
)

// departure holds what a process knows when it decides to remove nodes.
type departure struct {
	*checks
	command plan.Command
	// going holds the claims that the step deletes.
	going  []*claim
	pods   []*pod
	claims map[string]object
	// listed holds the claims by name.
	listed []object
	pdbs   []*pdb
}

// stepped checks the writes that a process decides on.
func (c *checks) stepped(p *process, steps []Stepped) {
	claims := p.view.present(claimKind)
	all := map[string]bool{} // claims that all commands together delete
	var departures []departure
	var bought *usage
	for _, s := range steps {
		d := departure{checks: c, command: s.Command, claims: claims, listed: p.view.sorted(claimKind)}
		for _, a := range s.Actions {
			if a, buys := a.(plan.CreateClaim); buys {
				if bought == nil {
					bought = c.usage(p)
				}
				bought.buys(&a.NewClaim)
			}
			if a, deletes := a.(plan.DeleteClaim); deletes {
				if of, _ := claims[a.Claim].(*claim); of != nil {
					d.going = append(d.going, of)
					all[of.uid] = true
				}
			}
		}
		if len(d.going) > 0 {
			d.pods, d.pdbs = list[*pod](p.view.sorted(podKind)), list[*pdb](p.view.sorted(pdbKind))
			departures = append(departures, d)
		}
	}
	for _, d := range departures {
		for _, of := range d.going {
			d.leaves(of)
		}
		d.replaced()
		d.sends()
	}
	if len(departures) > 0 {
		c.housed(departures, all)
	}
}

// leaves checks EmptyMeansEmpty, PDBsHold and ProtectionHolds.
func (d departure) leaves(of *claim) {
	if d.command.Reason == plan.Empty {
		d.empty(of.node, d.pods)
		if !d.wrongClock() {
			d.expected(of)
		}
	}
	if of.grace > 0 && (d.command.Reason == plan.Drifted || d.command.Reason == plan.Expired) {
		return // the drain ends in any case
	}
	for _, q := range d.pods {
		if q.node != of.node || of.node == "" || q.daemon || !q.deleting.IsZero() {
			continue
		}
		if q.protected.After(d.w.now) && (!d.wrongClock() || q.protected.Equal(model.Forever)) {
			d.fail(ProtectionHolds, "node %s is removed, %s forbids it until %v", of.node, q.name, q.protected)
		}
		for _, b := range d.pdbs {
			if b.app == q.app && !b.lets(q) {
				d.fail(PDBsHold, "node %s is removed, %s keeps %s on it", of.node, b.name, q.name)
			}
		}
	}
}

// replaced checks ReplacedFirst and Cheaper.
func (d departure) replaced() {
	var before, after int64
	known := 0
	for _, candidate := range d.command.Candidates {
		if of, _ := d.claims[candidate.Claim].(*claim); of != nil && of.uid == candidate.ClaimUID {
			before += d.cost(of)
			known++
		}
	}
	for _, r := range d.command.Replacements {
		of, _ := d.claims[r.Name].(*claim)
		if of == nil || !of.deleting.IsZero() || of.initialized.IsZero() && !d.ready(of) {
			d.fail(ReplacedFirst, "command %s removes nodes before %s is there", d.command.ID, r.Name)
			continue
		}
		after += d.cost(of)
	}
	if d.w.setting.commitments != nil {
		before, after = d.billed()
	}
	whole := known == len(d.command.Candidates) && len(d.going) == known
	if d.command.Reason == plan.Underutilized && whole && after >= before {
		d.fail(Cheaper, "command %s replaces nodes of %d nano-USD an hour by ones of %d", d.command.ID, before, after)
	}
}

func (d departure) ready(of *claim) bool {
	for _, n := range d.w.api.nodes() {
		if n.provider == of.provider && n.initialized {
			return true
		}
	}
	return false
}

// cost returns the cost of the claim's machine per hour, including the price per node.
func (c *checks) cost(of *claim) int64 {
	m := c.w.cloud.machine(of.provider)
	if m == nil {
		return 0
	}
	return c.w.cloud.price(m) + c.w.setting.disruption.Placement.NodePriceOf(c.w.setting.pool(of.pool))
}

// keptNode is a node that is kept, and its free resources.
type keptNode struct {
	labels map[string]string
	taints []model.Taint
	free   map[string]int64
}

// housed checks Housed: the pods of all nodes that are removed now to save cost are placed on the nodes that are
// kept, one by one.
func (c *checks) housed(departures []departure, all map[string]bool) {
	var moving []*pod
	for _, d := range departures {
		for _, of := range d.going {
			for _, q := range d.pods {
				if d.command.Reason == plan.Underutilized && q.node == of.node && !q.daemon && q.deleting.IsZero() {
					moving = append(moving, q)
				}
			}
		}
	}
	if len(moving) == 0 {
		return
	}
	kept := c.keptNodes(departures[0], all)
	work := 20_000
	slices.SortStableFunc(moving, func(a, b *pod) int { return cmp.Compare(amountOf(b.requests, "cpu"), amountOf(a.requests, "cpu")) })
	if !housing(moving, kept, &work) {
		c.fail(Housed, "%d pods of nodes that are removed, %s first, have no place on those that stay", len(moving), moving[0].name)
	}
}

// keptNodes returns the nodes that are kept; claims in flight hold what their plan states.
func (c *checks) keptNodes(d departure, all map[string]bool) []*keptNode {
	var kept []*keptNode
	for _, of := range list[*claim](d.listed) {
		if all[of.uid] || !of.deleting.IsZero() || !of.terminating.IsZero() || of.launched.IsZero() {
			continue
		}
		s := &keptNode{labels: of.labels, taints: of.taints, free: map[string]int64{}}
		add(s.free, of.allocatable)
		for _, q := range d.pods {
			if q.node == of.node && of.node != "" {
				for _, a := range q.requests {
					s.free[a.Name] -= a.Value
				}
			}
		}
		kept = append(kept, s)
	}
	return kept
}

// housing tries all ways to place the pods. It returns true if there are too many.
func housing(pods []*pod, kept []*keptNode, work *int) bool {
	if len(pods) == 0 {
		return true
	}
	p := pods[0]
	for _, s := range kept {
		if *work--; *work < 0 {
			return true
		}
		if !p.wants(s.labels) || !tolerates(p, s.taints) ||
			slices.ContainsFunc(p.requests, func(a quantity.Amount) bool { return s.free[a.Name] < a.Value }) {
			continue
		}
		for _, a := range p.requests {
			s.free[a.Name] -= a.Value
		}
		if housing(pods[1:], kept, work) {
			return true
		}
		add(s.free, p.requests)
	}
	return false
}

// evicted checks ProtectionHolds: the API has evicted the pod, although the process could have known about its
// protection.
func (c *checks) evicted(q *pod) {
	if q.protected.After(c.w.now) && !c.wrongClock() && c.w.now.Sub(q.forbade) > c.w.setting.lag+recently {
		c.fail(ProtectionHolds, "%s is evicted, it forbids that until %v", q.name, q.protected)
	}
}

// surplus checks StaticKept, as far as the process knows.
func (c *checks) surplus(p *process, of *claim) {
	pool := c.w.setting.pool(of.pool)
	count := int64(0)
	for _, other := range list[*claim](p.view.sorted(claimKind)) {
		if other.pool == of.pool && other.deleting.IsZero() && other.terminating.IsZero() {
			count++
		}
	}
	if !pool.Static || count <= pool.Replicas {
		c.fail(StaticKept, "claim %s is removed as too many, %s has %d and wants %d", of.name, pool.Name, count, pool.Replicas)
	}
}

// recently is how long a process may act on earlier knowledge: a pass of the loop, with all its writes.
const recently = 30 * time.Second

// lenient returns the most that the budgets of the pool allowed for the reason, now or recently.
func (c *checks) lenient(name string, reason plan.Reason, total int64) int64 {
	most := allowed(c.w.setting.pool(name), reason, total)
	for _, former := range c.w.setting.past {
		if former.pool.Name == name && c.w.now.Sub(former.until) < recently {
			most = max(most, allowed(former.pool, reason, total))
		}
	}
	return most
}

// typesOf returns the types that a claim names.
func typesOf(all []label.Requirement) []string {
	for _, r := range all {
		if r.Key == model.LabelType && r.Operator == label.In {
			return r.Values
		}
	}
	return nil
}

// possible returns the commands that are possible in a world at rest, from a fresh snapshot. It includes the leader's
// nominations: a drain that a PodDisruptionBudget blocks has its place ready.
func (c *checks) possible() []plan.Command {
	var nominated map[string]time.Time
	opts := c.w.setting.disruption
	if p := c.w.leader(); p != nil {
		nominated, opts = p.nominated, p.disruption()
	}
	known := factsOf(c.w.setting, c.w.now, c.w.api.sorted, nominated)
	return c.w.opts.Propose(known.fresh(c.rng), opts).Commands
}

// overlooked checks Overlooked.
func (c *checks) overlooked() {
	for _, cmd := range c.possible() {
		c.fail(Overlooked, "at rest, nodes could go: %s %s, worth %v", cmd.Reason, candidates(cmd), cmd.Worth)
	}
}

// static checks StaticStands.
func (c *checks) static() {
	for _, pool := range c.w.setting.pools {
		if !pool.Static {
			continue
		}
		count := int64(0)
		for _, of := range c.w.api.claims() {
			if of.pool == pool.Name && of.deleting.IsZero() {
				count++
			}
		}
		short := count < pool.Replicas && !c.limited(pool, count) && c.offers(pool)
		if count > pool.Replicas || short {
			c.fail(StaticStands, "%s has %d nodes, wants %d", pool.Name, count, pool.Replicas)
		}
	}
}

// limited reports whether the pool may not have another node.
func (c *checks) limited(pool *model.PoolSpec, count int64) bool {
	return slices.ContainsFunc(pool.Limits, func(l quantity.Amount) bool { return l.Name == model.ResourceNodes && count >= l.Value })
}

// offers reports whether any node can be launched from the pool now.
func (c *checks) offers(pool *model.PoolSpec) bool {
	for i := range pool.Catalog.Types {
		for _, o := range pool.Catalog.Types[i].Offerings {
			if o.Available && c.suits(pool, labelsAt(&pool.Catalog.Types[i], o, ""), &pod{}) {
				return true
			}
		}
	}
	return false
}
