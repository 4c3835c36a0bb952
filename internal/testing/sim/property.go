package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Failure is a violated property.
type Failure struct {
	// Property is the name of the check.
	Property string
	Text     string
	// At is the time since the history began.
	At time.Duration
}

// String returns the property, the time in seconds and the text.
func (f *Failure) String() string {
	return fmt.Sprintf("%s at %.3f: %s", f.Property, f.At.Seconds(), f.Text)
}

// The properties that are checked continuously. Those of a world at rest are in settled.go.
const (
	// Audited: an independent audit finds no problem in any plan.
	Audited = "audited"
	// Idempotent: with a plan's claims in flight and its nominations written, its process launches nothing more, and a
	// process that knows nothing else launches one node at most. Otherwise every repeated pass would cost money.
	Idempotent = "idempotent"
	// Deterministic: the same facts and the same previous plan, in another order, give the same plan. Otherwise no
	// capture could be replayed, and two replicas would name one claim differently.
	Deterministic = "deterministic"
	// BoughtOnce: no node is launched twice for the same need, and no machine is larger than its plan requested.
	// Unnecessary cost is a failure that no other symptom reveals.
	BoughtOnce = "bought once"
	// Checked: nodes are launched only for pods that are still pending, or whose nodes are being removed, and within
	// the limits of the pool, as far as the process can know at that moment.
	Checked = "checked"
	// WithinBudgets: at no time are more nodes of a pool being removed voluntarily than its budgets allow.
	WithinBudgets = "within budgets"
	// EmptyMeansEmpty: emptiness removes no node on which a pod runs, unless another client removed the taint a
	// moment ago.
	EmptyMeansEmpty = "empty means empty"
	// Announced: a node is removed only by a command that is stored on its claim, so that the command survives a
	// crash.
	Announced = "announced"
)

// checks observes a world. It reads everything and changes nothing.
type checks struct {
	w *world
	// rng is separate from the world's, so that the number of checks does not change histories.
	rng *rand.Rand
	// plans holds the plan of each claim, by its UID; creator is the process that created it, if that process knows.
	plans   map[string]plan.NewClaim
	creator map[string]*process
	// commands by ID, as written; removed holds the claims that commands deleted, by UID.
	commands map[string]plan.Command
	removed  map[string]bool
	// saving holds those of removed that commands deleted to save cost, moved the evictions from them, by owner.
	saving map[string]bool
	moved  map[string][]moved
	// sent holds the latest sendings, by the UID of the claim.
	sent map[string]sending
	// late counts commands that begin in an undisturbed world, most is the permitted number.
	late, most int
	// told is the last plan that was checked.
	told string
	// vain holds what was in vain so far.
	vain vain
	// evictions counts those by the controller.
	evictions int
	// plansJudged counts the plans for Neutral.
	plansJudged int
}

func newChecks(w *world) *checks {
	return &checks{w: w, rng: rand.New(rand.NewPCG(1, 2)), plans: map[string]plan.NewClaim{}, creator: map[string]*process{},
		commands: map[string]plan.Command{}, removed: map[string]bool{},
		saving: map[string]bool{}, moved: map[string][]moved{},
		sent: map[string]sending{}}
}

func (c *checks) fail(property, format string, args ...any) {
	if c.w.failure == nil && !slices.Contains(c.w.opts.Skip, property) {
		c.w.failure = &Failure{Property: property, Text: fmt.Sprintf(format, args...), At: c.w.now.Sub(epoch)}
		c.w.say("FAILS: %s", c.w.failure)
	}
}

// judged is a plan, and the previous plan whose reservations it was made with.
type judged struct{ decided, last *plan.Provision }

// planned checks a plan: Audited, Idempotent, Deterministic.
func (c *checks) planned(p *process, snap *model.Snapshot, j judged) {
	decided := j.decided
	for _, n := range decided.Claims {
		c.w.say("process %d plans claim %s for %s", p.id, n.Name, names(n.Pods))
	}
	for _, placed := range decided.Placed {
		c.w.say("process %d plans %s onto %s", p.id, names(placed.Pods), placed.Node)
	}
	for _, r := range decided.Refused {
		c.w.say("process %d has no place for %s: %s", p.id, names(r.Pods), refusal(r))
	}
	told := text(decided)
	if told == c.told && c.rng.IntN(4) > 0 {
		return // the same plan, a moment later
	}
	c.told = told
	if found := c.w.opts.Audit(snap, decided); len(found) > 0 {
		c.fail(Audited, "%s", strings.Join(found, "; "))
	}
	known := p.facts()
	if again := text(c.w.opts.Schedule(known.fresh(c.rng), j.last)); again != told {
		c.fail(Deterministic, "told in another order, the plan is\n%s\nnot\n%s", again, told)
	}
	c.idempotent(known, snap, j)
	c.neutral(known, j)
}

// idempotent plans again for the same process, and for a process that knows only the state in the API.
func (c *checks) idempotent(known facts, snap *model.Snapshot, j judged) {
	if len(j.decided.Claims) == 0 {
		return
	}
	for i := range j.decided.Claims {
		n := &j.decided.Claims[i]
		created := claimOf(c.w.setting, n)
		created.uid, created.created = "uid-of-"+n.Name, known.now
		known.nodes = append(known.nodes, nodeSpec(created, nil))
	}
	nominations, _ := nominate.Nominations(known.fresh(nil), j.decided)
	nominated := known.with(nominations)
	for _, last := range []*plan.Provision{j.decided, nil} {
		if last == nil {
			known = nominated
		}
		most := 0
		if last == nil { // places that only memory has may differ
			most = 1
		}
		if again := c.w.opts.Schedule(known.fresh(c.rng), last); len(again.Claims) > most {
			c.fail(Idempotent, "with the claims of\n%s\nin flight, the next plan (after a restart: %t) is\n%s", text(j.decided), last == nil, text(again))
		}
	}
}

// kept checks the claims that are about to be created: Checked.
func (c *checks) kept(p *process, kept *plan.Provision) {
	waiting, leaving := map[string]bool{}, map[string]bool{}
	for _, n := range p.facts().nodes {
		leaving[n.Name] = n.Deleting || n.Command != ""
	}
	for _, q := range list[*pod](p.view.sorted(podKind)) {
		// A pod with a disk that is being deleted will be recreated.
		waiting[q.uid] = q.node == "" && q.deleting.IsZero() || leaving[q.node] && (q.deleting.IsZero() || q.disk != "")
	}
	u := c.usage(p)
	for i := range kept.Claims {
		n := &kept.Claims[i]
		if u.known[n.Name] != nil {
			continue
		}
		if !slices.ContainsFunc(n.Pods, func(q *model.Pod) bool { return waiting[q.UID] }) {
			c.fail(Checked, "claim %s is about to be bought for %s, of which none waits", n.Name, names(n.Pods))
		}
		u.buys(n)
	}
}

// usage holds the current and planned usage of pools, as far as a process knows it.
type usage struct {
	*checks
	known map[string]object
	used  map[string]map[string]int64
}

func (c *checks) usage(p *process) *usage {
	u := &usage{checks: c, known: p.view.present(claimKind), used: map[string]map[string]int64{}}
	for _, of := range list[*claim](p.view.sorted(claimKind)) {
		if of.deleting.IsZero() && of.terminating.IsZero() {
			u.take(of.pool, c.capacityOf(of))
		}
	}
	return u
}

func (u *usage) take(pool string, capacity map[string]int64) {
	if u.used[pool] == nil {
		u.used[pool] = map[string]int64{}
	}
	u.used[pool][model.ResourceNodes]++
	for name, amount := range capacity {
		u.used[pool][name] += amount
	}
}

// buys checks the limits for Checked.
func (u *usage) buys(n *plan.NewClaim) {
	u.take(n.Pool, u.largest(n))
	for _, limit := range u.w.setting.pool(n.Pool).Limits {
		if u.used[n.Pool][limit.Name] > limit.Value {
			u.fail(Checked, "with claim %s pool %s has %d of %s, its limit is %d", n.Name, n.Pool, u.used[n.Pool][limit.Name], limit.Name, limit.Value)
		}
	}
}

// capacityOf returns the capacity of a claim's machine, or the largest possible one while there is none.
func (c *checks) capacityOf(of *claim) map[string]int64 {
	if of.launched.IsZero() {
		n := c.plans[of.uid]
		return c.largest(&n)
	}
	capacity := map[string]int64{}
	add(capacity, of.capacity)
	return capacity
}

// largest returns the maximum over the claim's types, resource by resource.
func (c *checks) largest(n *plan.NewClaim) map[string]int64 {
	most := map[string]int64{}
	for _, name := range n.Types() {
		for i := range c.w.setting.types {
			if t := &c.w.setting.types[i]; t.Name == name {
				for _, a := range t.Capacity {
					most[a.Name] = max(most[a.Name], a.Value)
				}
			}
		}
	}
	return most
}

// proposed checks proposals: Deterministic.
func (c *checks) proposed(p *process, commands []plan.Command) {
	if len(commands) == 0 {
		return
	}
	again := c.w.opts.Propose(p.facts().fresh(c.rng), p.disruption()).Commands
	if !slices.EqualFunc(commands, again, func(a, b plan.Command) bool { return a.Encode() == b.Encode() }) {
		c.fail(Deterministic, "told in another order, there are %d commands %v, not %d %v", len(again), again, len(commands), commands)
	}
}

// created checks a new claim: BoughtOnce.
func (c *checks) created(p *process, fresh *claim, a plan.CreateClaim) {
	n := a.NewClaim
	if a.Reason != "provisioned" || c.w.setting.pool(n.Pool).Static {
		c.replacement(fresh, n)
		return
	}
	visible := p.view.present(claimKind)
	known := p.facts()
	unknown := 0
	for _, other := range c.w.api.claims() {
		if visible[other.name] != nil || other.uid == fresh.uid || !other.deleting.IsZero() || !other.registered.IsZero() {
			continue
		}
		before := c.plans[other.uid]
		if before.Pool == n.Pool && names(before.Pods) == names(n.Pods) {
			c.fail(BoughtOnce, "claim %s is bought for %s, as %s was", fresh.name, names(n.Pods), other.name)
		}
		if c.creator[other.uid] == p {
			unknown++
			known.nodes = append(known.nodes, nodeSpec(other, nil))
		}
	}
	if unknown > 0 && !slices.ContainsFunc(c.w.opts.Schedule(known.fresh(nil), p.provision.plan).Claims, func(again plan.NewClaim) bool { return shares(again, n) }) {
		c.fail(BoughtOnce, "claim %s is bought for %s though the process itself had created claims that hold them", fresh.name, names(n.Pods))
	}
	c.plans[fresh.uid] = n
	c.creator[fresh.uid] = p
}

// replacement checks a claim that is created for a command, or for a static pool: BoughtOnce. A new process may
// recreate a claim after a crash, but not if the command states that all of its claims existed.
func (c *checks) replacement(fresh *claim, n plan.NewClaim) {
	for _, of := range c.w.api.claims() {
		cmd, err := plan.DecodeCommand(of.command)
		again := slices.ContainsFunc(cmd.Replacements, func(r plan.NewClaim) bool { return r.Name == n.Name })
		if err == nil && again && cmd.Phase == plan.Launching {
			c.fail(BoughtOnce, "claim %s is bought again for command %s, which had it", fresh.name, cmd.ID)
		}
	}
	c.plans[fresh.uid] = n
}

func shares(a, b plan.NewClaim) bool {
	return slices.ContainsFunc(a.Pods, func(p *model.Pod) bool {
		return slices.ContainsFunc(b.Pods, func(q *model.Pod) bool { return p.UID == q.UID })
	})
}

// unanswered removes the creator of a claim: the reply was lost, so only the watch shows the claim.
func (c *checks) unanswered(uid string) { delete(c.creator, uid) }

// sold checks a launched machine: BoughtOnce.
func (c *checks) sold(m *machine) {
	for _, other := range c.w.cloud.alive() {
		if other != m && other.claimUID == m.claimUID {
			c.fail(BoughtOnce, "%s and %s are both for claim %s", other.id, m.id, m.claim)
		}
	}
	n := c.plans[m.claimUID]
	if types := typesOf(n.Requirements); len(types) > 0 && !slices.Contains(types, m.place.kind) {
		c.fail(BoughtOnce, "%s is a %s, which no plan asked for on claim %s", m.id, m.place.kind, m.claim)
	}
}

// commanded records a command that is about to be written.
func (c *checks) commanded(a plan.WriteCommand) {
	if _, known := c.commands[a.Command.ID]; !known && c.w.calm {
		c.late++
		c.most = max(c.most, mostLate(c.w)) // a cloud without capacity until now launches the fleet only now
		if c.late > c.most {
			c.fail(Settles, "%d commands were begun since nothing happens any more, the last is %s for %s", c.late, a.Command.Reason, candidates(a.Command))
		}
	}
	c.commands[a.Command.ID] = a.Command
}

// deleting checks the removal of a node: Announced, WithinBudgets, EmptyMeansEmpty.
func (c *checks) deleting(p *process, of *claim, reason plan.Reason) {
	if reason == disruption.Surplus {
		c.surplus(p, of)
		return
	}
	if _, known := c.commands[commandID(of)]; !known {
		c.fail(Announced, "claim %s is deleted without a command on it", of.name)
	}
	c.budgets(p, of, reason)
	c.removedFor(of, reason)
	if reason == plan.Empty && c.w.setting.lag+c.w.setting.binding < guard.CordonQuiet && !c.justUntainted(of.node) && !c.wrongClock() {
		c.empty(of.node, c.w.api.pods())
	}
}

// justUntainted reports whether the taint was removed from the node so recently that the watch need not have shown
// it. A pod that was bound since then is drained like any other: no process can know of it.
func (c *checks) justUntainted(name string) bool {
	n := c.w.api.node(name)
	return n != nil && c.w.now.Sub(c.w.untainted[n.uid]) <= c.w.setting.lag+c.w.setting.binding
}

func (c *checks) empty(node string, pods []*pod) {
	for _, q := range pods {
		if q.node == node && node != "" && !q.daemon && q.deleting.IsZero() {
			c.fail(EmptyMeansEmpty, "node %s is removed as empty, %s runs there", node, q.name)
		}
	}
}

// mostLate returns how many commands an undisturbed world may need to settle: twice the size of the fleet, plus a
// constant.
func mostLate(w *world) int { return 10 + 2*len(w.api.claims()) }

func commandID(of *claim) string {
	if of.command == "" {
		return ""
	}
	cmd, err := plan.DecodeCommand(of.command)
	if err != nil {
		return ""
	}
	return cmd.ID
}

func (c *checks) budgets(p *process, of *claim, reason plan.Reason) {
	leaving := int64(1)
	for _, other := range c.w.api.claims() {
		// A node that is gone no longer counts; only its claim remains to be finalized.
		if other.pool == of.pool && other.uid != of.uid && c.removed[other.uid] && c.w.api.node(other.node) != nil {
			leaving++
		}
	}
	total := max(initialized(c.w.api.sorted, of.pool), initialized(p.view.sorted, of.pool))
	if most := c.lenient(of.pool, reason, total); leaving > most {
		c.fail(WithinBudgets, "%d of %d nodes of %s are leaving, %d may", leaving, total, of.pool, most)
	}
}

// initialized returns the number of initialized nodes of a pool, by claim or by node.
func initialized(objects func(kind) []object, pool string) int64 {
	known := factsOf(&setting{}, epoch, objects, nil)
	total := int64(0)
	for _, n := range known.nodes {
		if n.Pool == pool && n.Stage == model.Initialized {
			total++
		}
	}
	return total
}

// allowed returns the minimum of the budgets for the reason; percentages round up.
func allowed(pool *model.PoolSpec, reason plan.Reason, total int64) int64 {
	least := int64(1 << 40)
	for _, b := range pool.Budgets {
		switch {
		case b.Inactive, len(b.Reasons) > 0 && !slices.Contains(b.Reasons, string(reason)):
		case b.IsPercent:
			least = min(least, (total*b.Percent+99)/100)
		default:
			least = min(least, b.Count)
		}
	}
	return least
}

// text returns a complete textual form of a plan.
func text(p *plan.Provision) string {
	var b strings.Builder
	for _, n := range p.Claims {
		fmt.Fprintf(&b, "claim %s %v %v %v %v for %s\n", n.Name, n.Requirements, n.Labels, sorted(n.Requests), n.Options, names(n.Pods))
	}
	for _, placed := range p.Placed {
		fmt.Fprintf(&b, "onto %s: %s\n", placed.Node, names(placed.Pods))
	}
	for _, r := range p.Refused {
		fmt.Fprintf(&b, "refused: %s: %s\n", names(r.Pods), refusal(r))
	}
	return b.String()
}

// sorted orders amounts by name: their own order is by ids, which depend on the order of interning.
func sorted[T any](amounts []T) []T {
	amounts = slices.Clone(amounts)
	slices.SortFunc(amounts, func(a, b T) int { return cmp.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return amounts
}

func refusal(r plan.Refusal) string {
	codes := []string{fmt.Sprint(r.Verdict.Code)}
	for _, v := range r.Pools {
		codes = append(codes, fmt.Sprintf("%s %d", v.Pool, v.Verdict.Code))
	}
	return strings.Join(codes, ", ")
}
