package disruption_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

var fleets = flag.Int("fleets", 60, "random fleets per property")

// usual are the options of random fleets: they allow everything.
var usual = disruption.Options{SpotToSpot: true, Static: true}

// TestRandomFleets checks the properties of proposals for random fleets.
func TestRandomFleets(t *testing.T) {
	for seed := range uint64(*fleets) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { properties(t, seed) })
	}
}

func FuzzFleets(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) { properties(t, seed) })
}

func properties(t *testing.T, seed uint64) {
	f := fleetOf(seed)
	snap := f.snapshot(nil)
	p := disruption.Propose(snap, usual)
	if diff := cmp.Diff(told(p), told(disruption.Propose(f.snapshot(rand.New(rand.NewPCG(seed, 2))), usual))); diff != "" {
		t.Fatalf("the order of the objects changes the result:\n%s", diff)
	}
	everyNodeHasAnAnswer(t, snap, p)
	noProtectedPodMoves(t, snap, p)
	limitsHold(t, snap, p)
	for _, c := range p.Commands {
		if c.Reason == plan.Underutilized {
			itPays(t, snap, c)
		}
	}
	random := rand.New(rand.NewPCG(seed, 3))
	for range 3 {
		commands := slices.Clone(p.Commands)
		random.Shuffle(len(commands), func(i, j int) { commands[i], commands[j] = commands[j], commands[i] })
		inOrder(t, snap, commands)
	}
	judged(t, f, p)
	untilNothingPays(t, snap)
	if t.Failed() {
		t.Logf("the proposal:\n%s", told(p))
	}
}

// told returns a proposal as text.
func told(p disruption.Proposal) string {
	var b strings.Builder
	for i := range p.Commands {
		c := &p.Commands[i]
		fmt.Fprintln(&b, c.Encode())
		for _, s := range c.Assignments {
			fmt.Fprintln(&b, "  to", s.Node, keysOf(s.Pods))
		}
		for k := range c.Replacements {
			fmt.Fprintln(&b, "  to", c.Replacements[k].Name, c.Replacements[k].Options[:min(3, len(c.Replacements[k].Options))], keysOf(c.Replacements[k].Pods))
		}
	}
	for _, k := range p.Kept {
		fmt.Fprintln(&b, "keep", k.Node, k.Pool, k.Reason, k.Verdict.Code, k.Verdict.Need, k.Verdict.Have)
	}
	fmt.Fprintln(&b, p.Eligible, p.Next)
	return b.String()
}

func keysOf(pods []*model.Pod) []string {
	keys := make([]string, len(pods))
	for i, p := range pods {
		keys[i] = p.Key()
	}
	return keys
}

func everyNodeHasAnAnswer(t *testing.T, snap *model.Snapshot, p disruption.Proposal) {
	t.Helper()
	answers := map[string]int{}
	for _, k := range p.Kept {
		answers[k.Node]++
		if k.Verdict.OK() {
			t.Errorf("%s is kept without a reason", k.Node)
		}
	}
	for _, c := range p.Commands {
		for _, candidate := range c.Candidates {
			if answers[candidate.Node] += 100; answers[candidate.Node] >= 200 {
				t.Errorf("%s is in two commands", candidate.Node)
			}
		}
	}
	for _, n := range snap.Nodes {
		if n.Ours() && answers[n.Name] == 0 {
			t.Errorf("%s is neither kept nor in a command", n.Name)
		}
	}
}

// noProtectedPodMoves checks candidates against the rules as documented for users, without the guard: protected
// nodes are kept (only the bounded drain of a node that must be removed ends whatever its pods request), budgets
// hold, and no pod is moved to a node that is being removed.
func noProtectedPodMoves(t *testing.T, snap *model.Snapshot, p disruption.Proposal) {
	t.Helper()
	going := map[string]plan.Reason{}
	for _, c := range p.Commands {
		for _, candidate := range c.Candidates {
			n := snap.Node(candidate.Node)
			if going[n.Name] != "" {
				t.Errorf("%s is in two commands: %s", n.Name, c.Encode())
			}
			if n.DoNotDisrupt {
				t.Errorf("%s is protected: %s", n.Name, c.Encode())
			}
			if removing(n) {
				t.Errorf("%s is already being removed, or not initialized: %s", n.Name, c.Encode())
			}
			going[n.Name] = c.Reason
			if n.DrainBounded && (c.Reason == plan.Drifted || c.Reason == plan.Expired) {
				continue
			}
			for _, pod := range n.Pods {
				if why := stuck(snap, pod); why != "" {
					t.Errorf("%s must not be removed as %s: %s %s", n.Name, c.Reason, pod.Key(), why)
				}
			}
		}
	}
	budgetsHold(t, snap, going)
	for _, c := range p.Commands {
		for _, s := range c.Assignments {
			if n := snap.Node(s.Node); n == nil || going[s.Node] != "" || n.Deleting || n.Disrupted || n.Stage != model.Initialized {
				t.Errorf("pods of %s are moved to %s, which is not kept", c.Candidates[0].Node, s.Node)
			}
		}
	}
}

// stuck returns the reason why the pod cannot be evicted now, or "". It checks every PodDisruptionBudget.
func stuck(snap *model.Snapshot, pod *model.Pod) string {
	if pod.ProtectedUntil.After(snap.Now) {
		return "says do-not-disrupt"
	}
	tolerates := slices.ContainsFunc(pod.Tolerations, func(l model.Toleration) bool { return l.Key == "" || l.Key == "karpenter.sh/disrupted" })
	if pod.Terminating || pod.Controller.Kind == "Node" || tolerates {
		return "" // the drain does not evict it
	}
	asked, allows := 0, true
	for _, pdb := range snap.PDBs {
		if pdb.Selector.Selects(pod.Namespace, pod.Labels) {
			asked++
			allows = pdb.Allowed > 0 || !pod.Ready && (pdb.AlwaysEvictUnready || pdb.Healthy)
		}
	}
	switch {
	case asked > 1:
		return "has several PodDisruptionBudgets"
	case !allows:
		return "has a PodDisruptionBudget that allows none"
	}
	return ""
}

// budgetsHold checks that the nodes of a pool that are removed for a reason, and those already missing, do not exceed
// any budget for the reason.
func budgetsHold(t *testing.T, snap *model.Snapshot, going map[string]plan.Reason) {
	t.Helper()
	for _, pool := range snap.Pools {
		var total, missing int64
		var names []string
		for _, n := range snap.Nodes {
			if !n.Ours() || n.Pool != pool.Name || n.Stage != model.Initialized || n.Terminating {
				continue
			}
			total++
			if going[n.Name] != "" {
				names = append(names, n.Name)
			}
			if !n.Ready || n.Deleting || n.Command != "" {
				if going[n.Name] == "" {
					missing++
				}
			}
		}
		for _, reason := range []plan.Reason{plan.Empty, plan.Drifted, plan.Expired, plan.Underutilized} {
			var own int64
			for _, name := range names {
				if going[name] == reason {
					own++
				}
			}
			for _, budget := range pool.Budgets {
				if own == 0 || budget.Inactive || len(budget.Reasons) > 0 && !slices.Contains(budget.Reasons, string(reason)) {
					continue
				}
				most := budget.Count
				if budget.IsPercent {
					most = int64(math.Ceil(float64(total*budget.Percent) / 100))
				}
				if own+missing > most {
					t.Errorf("pool %s: %d nodes are removed as %s, %d are missing, and a budget allows %d", pool.Name, own, reason, missing, most)
				}
			}
		}
	}
}

// limitsHold checks that no pool exceeds its limits with the nodes that are removed and all launched nodes, each of
// its largest type.
func limitsHold(t *testing.T, snap *model.Snapshot, p disruption.Proposal) {
	t.Helper()
	for _, pool := range snap.Pools {
		used, bought := map[string]int64{}, map[string]int64{}
		for _, n := range snap.Nodes {
			if n.Pool == pool.Name && !n.Deleting {
				used[model.ResourceNodes]++
				for _, a := range n.Capacity {
					used[a.Name] += a.Value
				}
			}
		}
		for _, c := range p.Commands {
			for i := range c.Replacements {
				if c.Replacements[i].Pool != pool.Name {
					continue
				}
				bought[model.ResourceNodes]++
				largest := map[string]int64{}
				for _, o := range c.Replacements[i].Options {
					for _, a := range pool.Catalog.Types[slices.IndexFunc(pool.Catalog.Types, func(k model.InstanceType) bool { return k.Name == o.Type })].Capacity {
						largest[a.Name] = max(largest[a.Name], a.Value)
					}
				}
				for name, value := range largest {
					bought[name] += value
				}
			}
		}
		for _, l := range pool.Limits {
			if bought[l.Name] > 0 && used[l.Name]+bought[l.Name] > l.Value {
				t.Errorf("pool %s may have %d of %s, has %d and would launch %d", pool.Name, l.Value, l.Name, used[l.Name], bought[l.Name])
			}
		}
	}
}

// itPays checks that the command saves what it states, and pays, whichever of the listed types is delivered at the
// highest price at which the claim may be delivered; and that no node is replaced by an equal one.
func itPays(t *testing.T, snap *model.Snapshot, c plan.Command) {
	t.Helper()
	var saving, price, least int64
	hours, owed := 0.0, 0.0
	for _, candidate := range c.Candidates {
		n := snap.Node(candidate.Node)
		pool := snap.Pool(n.Pool)
		saving += n.Price + usual.Placement.NodePriceOf(pool.PoolSpec)
		e := economicsOf(pool)
		var cost, again int64
		for _, p := range n.Pods {
			if p.Reschedulable {
				cost, again = cost+max(0, p.EvictionCost), again+max(1000, p.EvictionCost)
			}
		}
		moving := e.MovePrice / 1000 * cost
		if at := consolidated(n); !at.IsZero() && snap.Now.Sub(at) < e.MinStay {
			moving = max(e.MovePrice, model.Nano/1000) / 50 * again
		}
		price += moving
		least = max(least, e.MinSaving)
		if hours = e.Payback.Hours(); moving > 0 {
			owed += float64(moving) / hours
		}
	}
	worst := saving
	for i := range c.Replacements {
		r := &c.Replacements[i]
		extra := usual.Placement.NodePriceOf(snap.Pool(r.Pool).PoolSpec)
		saving -= r.Price() + extra
		worst -= dearest(t, snap, r) + extra
		likes(t, snap, c, r)
	}
	if c.Worth.Saving != saving || c.Worth.Price != price {
		t.Errorf("the command states a saving of %d for %d, the actual saving is %d for %d: %s", c.Worth.Saving, c.Worth.Price, saving, price, c.Encode())
	}
	if float64(worst) <= owed || worst <= least {
		t.Errorf("the command may save only %d, must save %.0f, minimum %d: %s", worst, owed, least, c.Encode())
	}
}

// economicsOf returns the economics of the pool, computed independently.
func economicsOf(pool *model.Pool) disruption.Economics {
	e := disruption.Economics{Payback: time.Hour, MovePrice: model.Nano / 1000}
	if pool.Payback != 0 {
		e.Payback = max(0, pool.Payback)
	}
	if pool.MovePrice != 0 {
		e.MovePrice = max(0, pool.MovePrice)
	}
	e.MinSaving = max(0, pool.MinSaving)
	e.MinStay = e.Payback
	if pool.MinStay != 0 {
		e.MinStay = max(0, pool.MinStay)
	}
	return e
}

// consolidated returns when a consolidation last launched the node or moved pods to it, computed independently.
func consolidated(n *model.Node) time.Time {
	at := n.ConsolidatedAt
	if n.Replacement && n.InitializedAt.After(at) {
		at = n.InitializedAt
	}
	return at
}

// dearest returns the highest cost of the claim.
func dearest(t *testing.T, snap *model.Snapshot, r *plan.NewClaim) int64 {
	t.Helper()
	var worst int64
	for _, kind := range snap.Pool(r.Pool).Catalog.Types {
		if !slices.ContainsFunc(r.Options, func(o plan.Option) bool { return o.Type == kind.Name }) {
			continue
		}
		for _, o := range kind.Offerings {
			if allows(r.Requirements, model.LabelZone, o.Zone) && allows(r.Requirements, model.LabelCapacityType, o.CapacityType) {
				worst = max(worst, o.Price)
			}
		}
	}
	if worst == 0 {
		t.Errorf("no type of %s has an available offering", r.Name)
	}
	return worst
}

func allows(reqs []label.Requirement, key, value string) bool {
	for _, r := range reqs {
		if r.Key == key && (r.Operator == label.In && !slices.Contains(r.Values, value) || r.Operator == label.NotIn && slices.Contains(r.Values, value)) {
			return false
		}
	}
	return true
}

// likes checks that no node is replaced by an equal one. Of several nodes together, only the cheapest type of a replacement
// may be that of one of them.
func likes(t *testing.T, snap *model.Snapshot, c plan.Command, r *plan.NewClaim) {
	t.Helper()
	options := r.Options
	if len(c.Candidates) > 1 {
		options = slices.DeleteFunc(slices.Clone(options), func(o plan.Option) bool { return o.Type == r.Options[0].Type })
	}
	for _, candidate := range c.Candidates {
		n := snap.Node(candidate.Node)
		for _, o := range options {
			if o.Type == n.Labels[model.LabelType] && o.CapacityType == n.Labels[model.LabelCapacityType] && o.Price >= n.Price {
				t.Errorf("%s, a %s at %d, may be replaced by an equal node at %d", n.Name, o.Type, n.Price, o.Price)
			}
		}
	}
}

// inOrder carries out the commands one after the other: the nodes of each exist, all of their pods move, and the
// audit finds no problem in the placement.
func inOrder(t *testing.T, snap *model.Snapshot, commands []plan.Command) {
	t.Helper()
	for _, c := range commands {
		if c.Replacements != nil && c.Replacements[0].Options == nil {
			continue // a replacement in a static pool is made from the template, without pods
		}
		names := make([]string, len(c.Candidates))
		moving := map[*model.Pod]bool{}
		for i, candidate := range c.Candidates {
			n := snap.Node(candidate.Node)
			if n == nil {
				t.Fatalf("%s is gone before its command is carried out", candidate.Node)
			}
			names[i] = n.Name
			for _, p := range n.Pods {
				if p.Reschedulable {
					moving[p] = true
				}
			}
		}
		what := snap.Without(names...)
		onlyMoving(what, moving)
		p := &plan.Provision{Claims: c.Replacements}
		for _, s := range c.Assignments {
			p.Placed = append(p.Placed, plan.Placement{Node: s.Node, Pods: s.Pods})
		}
		p.Order = audit.Order(what, p)
		for _, problem := range audit.Provision(what, p) {
			if problem.Kind == "weight" {
				continue // the nodes that are removed still count against the limits of heavier pools
			}
			t.Errorf("command about %v: %s", names, problem)
		}
		before := costOf(snap)
		snap = disruption.After(snap, c)
		if saved := before - costOf(snap); saved != c.Worth.Saving && c.Reason == plan.Underutilized {
			t.Errorf("command about %v states a saving of %d, the fleet costs %d less", names, c.Worth.Saving, saved)
		}
	}
}

// onlyMoving leaves only the moving pods pending: the command is not about the others.
func onlyMoving(what *model.Snapshot, moving map[*model.Pod]bool) {
	var groups []*model.Group
	for _, g := range what.Groups {
		own := *g
		own.Pods = slices.DeleteFunc(slices.Clone(g.Pods), func(p *model.Pod) bool { return !moving[p] })
		if len(own.Pods) > 0 {
			groups = append(groups, &own)
		}
	}
	what.Groups = groups
	what.Rejected = slices.DeleteFunc(slices.Clone(what.Rejected), func(p *model.Pod) bool { return !moving[p] })
}

// costOf returns the cost of the nodes of the pools, nano-USD per hour, including the price per node.
func costOf(snap *model.Snapshot) int64 {
	var sum int64
	for _, n := range snap.Nodes {
		if pool := snap.Pool(n.Pool); pool != nil {
			sum += n.Price + usual.Placement.NodePriceOf(pool.PoolSpec)
		}
	}
	return sum
}

// untilNothingPays carries out proposals until there are none. It checks that this ends, that every step makes the
// fleet cheaper, and that afterwards no single node could be removed with a saving that pays.
func untilNothingPays(t *testing.T, snap *model.Snapshot) {
	t.Helper()
	for round := 0; ; round++ {
		commands := disruption.Propose(snap, usual).Commands
		if len(commands) == 0 {
			break
		}
		if round == 200 {
			t.Fatalf("after 200 rounds there are still commands: %s", commands[0].Encode())
		}
		for _, c := range commands {
			snap = disruption.After(snap, c)
		}
	}
	g, last := guard.New(snap), disruption.Propose(snap, usual)
	for _, n := range snap.Nodes {
		if !n.Ours() || n.Reschedulable() == 0 || !g.Removable(n, plan.Underutilized).OK() || g.Allowance(n.Pool, plan.Underutilized).Remaining() < 1 {
			continue
		}
		if saving, pays := aloneByHand(snap, n); pays {
			if v, _ := disruption.Single(snap, usual, n.Name); v.OK() || v.Code == plan.PodsHomeless {
				at := slices.IndexFunc(last.Kept, func(k disruption.Kept) bool { return k.Node == n.Name && k.Reason == plan.Underutilized })
				code, restless := last.Kept[at].Verdict.Code, len(snap.Groups) > 0 || slices.ContainsFunc(snap.Nodes, func(n *model.Node) bool { return n.Deleting })
				if restless && (code == plan.NodeNominated || code == plan.PodsHomeless) {
					continue // pods that are pending or are being drained will be scheduled, and may block other pods
				}
				t.Errorf("no command, but removing %s would save %d; kept: %+v", n.Name, saving, last.Kept[at].Verdict)
			}
		}
	}
}

// aloneByHand returns the saving if the node is removed, by placing its pods only.
func aloneByHand(snap *model.Snapshot, n *model.Node) (int64, bool) {
	what := snap.Without(n.Name)
	what.Ledger = snap.Ledger
	moving := map[*model.Pod]bool{}
	for _, p := range n.Pods {
		moving[p] = p.Reschedulable
	}
	onlyMoving(what, moving)
	p := placement.Schedule(what, placement.Options{Closed: func(o *model.Node) bool {
		pool := snap.Pool(o.Pool)
		return o.Stage != model.Initialized || !o.Ready || pool != nil && pool.ConsolidateAfter >= 0 && guard.QuietFrom(o, pool).After(snap.Now)
	}})
	pool := snap.Pool(n.Pool)
	saving := n.Price + usual.Placement.NodePriceOf(pool.PoolSpec)
	for i := range p.Claims {
		saving -= p.Claims[i].Price() + usual.Placement.NodePriceOf(snap.Pool(p.Claims[i].Pool).PoolSpec)
	}
	e, cost := economicsOf(pool), int64(0)
	for pod := range moving {
		cost += max(0, pod.EvictionCost)
	}
	moves := e.MovePrice / 1000 * cost
	pays := saving > e.MinSaving && (moves == 0 || e.Payback > 0 && float64(saving)*e.Payback.Hours() > float64(moves))
	return saving, len(p.Refused) == 0 && pays
}

// removing reports whether a node is being removed already, or not initialized.
func removing(n *model.Node) bool {
	return n.Deleting || n.Command != "" || n.Stage != model.Initialized
}
