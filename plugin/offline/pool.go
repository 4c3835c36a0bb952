package offline

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// PoolOutcome is the state of a pool. Money is USD per hour.
type PoolOutcome struct {
	NodePool string `json:"nodePool"`
	// Blocked is why no node can be launched from it for pods.
	Blocked string `json:"blocked,omitempty"`
	// Limits are those of the pool with what its nodes use, the one of which most is used first.
	Limits []LimitOutcome `json:"limits,omitempty"`
	// Quotas are the CapacityQuotas in which new nodes of the pool may count.
	Quotas []QuotaOutcome `json:"quotas,omitempty"`
	// Nodes are those with claims; NotReady counts those of them that are not initialized or not ready.
	FleetFigures
	NotReady int `json:"notReady"`
	// Terminating counts nodes whose machine is being terminated. Budgets do not count them.
	Terminating int `json:"terminating,omitempty"`
	// Static is set for a pool with a fixed number of nodes.
	Static                *staticOutcome `json:"static,omitempty"`
	LowerBoundPerHour     float64        `json:"lowerBoundPerHour"`
	LowerBoundCostPerHour float64        `json:"lowerBoundCostPerHour"`
	// Budgets are the limits by reason. BudgetError is why no disruption is allowed. Changes is when the window of a
	// budget opens or closes next.
	Budgets     []BudgetOutcome `json:"budgets"`
	BudgetError string          `json:"budgetError,omitempty"`
	Changes     *time.Time      `json:"changes,omitempty"`
	Rollout     rolloutOutcome  `json:"rollout"`
	// Steps are those that would be started now; Saving is what they save.
	Steps  []Step      `json:"steps,omitempty"`
	Saving top.Sum     `json:"savingPerHour,omitzero"`
	Kept   []keptCount `json:"kept,omitempty"`
	// AtRest is the state at which the fleet remains; nil where it was not determined (all pools at once).
	AtRest *restOutcome `json:"atRest,omitempty"`
	pausesOutcome
	// Assumed are DaemonSets that are expected on new nodes because of labels that existing ones show.
	Assumed []Assumed `json:"assumed,omitempty"`
	// PriceSource is the source and the date of prices; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	Gaps
}

// restOutcome is the state of a pool once no step is left, also after a time that the rules make steps wait.
type restOutcome struct {
	FleetFigures
	// Steps concern the pool. WaitSeconds is how long the rules make the last of them wait.
	Steps       int   `json:"steps"`
	WaitSeconds int64 `json:"waitSeconds,omitempty"`
	// Partial means that more steps follow, which were not determined: the fleet is large.
	Partial bool `json:"partial,omitempty"`
}

// roundsOfNodes limits how often steps of a fleet are determined for a sentence about one pool: as often as the nodes fit
// into it, which takes seconds. A fleet of 200 nodes with the default budget of 10 % is at rest after fewer rounds.
const roundsOfNodes = 5000

// atRest makes the steps that --until-stable makes, and returns the state of the pool after them.
func (d *DisruptDecision) atRest(pool string) *restOutcome {
	rest := &DisruptDecision{opts: d.opts, first: d.first, last: d.first, pools: d.pools}
	rest.launch()
	o := &restOutcome{}
	for range max(1, roundsOfNodes/max(1, len(d.first.Nodes))) {
		if o.Partial = rest.next(); !o.Partial {
			break
		}
	}
	for i := range rest.steps {
		s := &rest.steps[i]
		if s.concerns(pool) {
			o.Steps++
			o.WaitSeconds = rest.waited(s.at)
		}
	}
	o.FleetFigures = figuresOf(rest.last, rest.opts, func(n *model.Node) bool { return n.Pool == pool })
	return o
}

// concerns reports whether a step removes or launches nodes of a pool.
func (s *decidedStep) concerns(pool string) bool {
	return slices.ContainsFunc(s.Candidates, func(c plan.Candidate) bool { return c.Pool == pool }) ||
		slices.ContainsFunc(s.Replacements, func(r plan.NewClaim) bool { return r.Pool == pool })
}

// write prints the state at rest beside the state now.
func (o *restOutcome) write(b *strings.Builder) {
	switch {
	case o == nil:
	case o.Steps == 0 && !o.Partial:
		b.WriteString("  at rest: no step is possible and saves enough, now or within 7 days\n")
	default:
		fmt.Fprintf(b, "  at rest: %s %s, after %s", plural(o.Nodes, "node"), o.perHour(), plural(o.Steps, "step"))
		if o.WaitSeconds > 0 {
			fmt.Fprintf(b, " and %s of waiting", time.Duration(o.WaitSeconds)*time.Second)
		}
		if o.Partial {
			b.WriteString(", and more that were not determined")
		}
		b.WriteString(" (kubectl karpenter simulate --live --disrupt --until-stable)\n")
	}
}

// staticOutcome is the state of a pool with a fixed number of nodes.
type staticOutcome struct {
	Replicas int64 `json:"replicas"`
	// Kept means that the feature gate StaticCapacity is enabled by --feature-gates.
	Kept bool `json:"kept"`
	// Missing nodes cannot be launched now, and Why says why.
	Missing int64  `json:"missing,omitempty"`
	Why     string `json:"why,omitempty"`
}

// staticOf returns the state of a pool with a fixed number of nodes, nil for other pools.
func (d *DisruptDecision) staticOf(pool *model.Pool) *staticOutcome {
	if !pool.Static {
		return nil
	}
	o := &staticOutcome{Replicas: pool.Replicas, Kept: d.opts.Static}
	if !o.Kept {
		return o
	}
	for _, short := range disruption.Static(d.first).Short {
		if short.Pool == pool.Name {
			o.Missing, o.Why = short.Missing, explain.Verdict(d.first, short.Verdict)
		}
	}
	return o
}

// BudgetOutcome is the state of the budgets for a reason.
type BudgetOutcome struct {
	Reason string `json:"reason"`
	// Allowed is the number of nodes at once, -1 for no limit. Leaving counts nodes that are not ready, being deleted
	// or in a command.
	Allowed   int64 `json:"allowed"`
	Leaving   int64 `json:"leaving"`
	Remaining int64 `json:"remaining"`
}

// rolloutOutcome describes how many of the pool's nodes match the pool.
type rolloutOutcome struct {
	Drifted []driftCount `json:"drifted,omitempty"`
	// Current counts nodes that match the pool. Due counts nodes that have reached the time before their expiry at
	// which they are replaced.
	Current int `json:"current"`
	Due     int `json:"due"`
	// UnderWay counts nodes in commands, by reason and phase.
	UnderWay []phaseCount `json:"underWay,omitempty"`
}

type driftCount struct {
	Reason string     `json:"reason"`
	Nodes  []string   `json:"nodes"`
	Since  *time.Time `json:"since,omitempty"`
}

type phaseCount struct {
	Reason string `json:"reason"`
	Phase  string `json:"phase"`
	Nodes  int    `json:"nodes"`
}

// keptCount groups nodes that are kept for the same code, with a message that is true of all of them, or an example.
type keptCount struct {
	For     string   `json:"for,omitempty"`
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Nodes   []string `json:"nodes"`
	// CostPerHour is the cost of those of these nodes whose price is known, and Unpriced the number of the others.
	CostPerHour   float64 `json:"costPerHour,omitempty"`
	UnknownPrices int     `json:"unknownPrices,omitempty"`
	// ChangesAt is the earliest time at which this may change for one of them by time alone.
	ChangesAt *time.Time `json:"changesAt,omitempty"`
	reasons   []KeptReason
	kept      []disruption.Kept
}

// Names returns the pool as `kubectl get -o name` does.
func (o *PoolOutcome) Names() []string { return []string{"nodepool.karpenter.sh/" + o.NodePool} }

// ExplainPool decides, and returns the state of a pool.
func (o *Manifests) ExplainPool(p *Policy, name string) (*PoolOutcome, error) {
	d := o.Disrupt(p, 1)
	outcome := d.poolOutcome(name)
	if outcome == nil {
		var names, nodes []string
		for _, n := range d.first.Nodes {
			if n.Ours() && n.Pool == name {
				nodes = append(nodes, n.Name)
			}
		}
		for _, p := range o.pools {
			names = append(names, p.object.Name)
		}
		if len(nodes) > 0 {
			return nil, fmt.Errorf("there is no pool %s; %s of it: %s (kubectl karpenter explain node NAME)", name,
				plural(len(nodes), "node"), fewNames(nodes))
		}
		return nil, fmt.Errorf("there is no pool %s%s", name, didYouMean(name, names))
	}
	outcome.Gaps, outcome.AtRest = o.gaps(), d.atRest(name)
	return outcome, nil
}

// PoolsOutcome is the state of all pools.
type PoolsOutcome struct {
	// Pools are sorted by name.
	Pools []*PoolOutcome `json:"pools"`
	// PriceSource is the source and the date of prices; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	Gaps
}

// ExplainPools decides, and returns the state of all pools.
func (o *Manifests) ExplainPools(p *Policy) *PoolsOutcome {
	d := o.Disrupt(p, 1)
	details := &PoolsOutcome{Pools: []*PoolOutcome{}, PriceSource: d.source, Gaps: o.gaps()}
	for _, pool := range d.first.Pools {
		one := d.poolOutcome(pool.Name)
		one.PriceSource = ""
		details.Pools = append(details.Pools, one)
	}
	slices.SortFunc(details.Pools, func(a, b *PoolOutcome) int { return strings.Compare(a.NodePool, b.NodePool) })
	return details
}

// Names returns the pools as `kubectl get -o name` does.
func (o *PoolsOutcome) Names() []string {
	var names []string
	for _, pool := range o.Pools {
		names = append(names, pool.Names()...)
	}
	return names
}

// Text returns a paragraph for each pool.
func (o *PoolsOutcome) Text() string {
	paragraphs := make([]string, len(o.Pools))
	for i, pool := range o.Pools {
		paragraphs[i] = pool.Text()
	}
	if len(paragraphs) == 0 {
		paragraphs = []string{"there is no NodePool\n"}
	}
	return strings.Join(paragraphs, "\n") + pricesAre(o.PriceSource) + incomplete(o.Incomplete)
}

// poolOutcome returns the result for the pool in the decision; nil if there is none.
func (d *DisruptDecision) poolOutcome(name string) *PoolOutcome {
	pool := d.first.Pool(name)
	if pool == nil {
		return nil
	}
	o := &PoolOutcome{PriceSource: d.source, NodePool: name, BudgetError: pool.BudgetError}
	o.Blocked, o.Limits = blockedBy(d.first, pool), limitsOf(d.first, pool)
	o.Quotas = quotasOf(d.first, pool)
	var nodes []*model.Node
	for _, n := range d.first.Nodes {
		if !n.Ours() || n.Pool != name {
			continue
		}
		nodes = append(nodes, n)
		if n.Stage != model.Initialized || !n.Ready {
			o.NotReady++
		}
		if n.Terminating {
			o.Terminating++
		}
	}
	o.Static = d.staticOf(pool)
	o.FleetFigures = figuresOf(d.first, d.opts, func(n *model.Node) bool { return n.Pool == name })
	price, cost := disruption.LeastCost(d.first, d.opts, func(n *model.Node) bool { return n.Pool == name })
	o.LowerBoundPerHour, o.LowerBoundCostPerHour = usd(price), usd(cost)
	o.addBudgets(d.first, pool)
	o.addRollout(d.first, nodes)
	for i := range d.steps {
		s := &d.steps[i]
		if slices.ContainsFunc(s.Candidates, func(c plan.Candidate) bool { return c.Pool == name }) ||
			len(s.Candidates) == 0 && s.concerns(name) { // a launch of a static pool
			o.Steps = append(o.Steps, d.steps[i].told())
			o.Saving += o.Steps[len(o.Steps)-1].Saving
		}
	}
	o.Kept = d.keptCounts(name)
	o.pausesOutcome, o.Assumed = pausesOf(pool, d.first.Now), assumedOfPool(pool)
	o.RemovalsPaused = d.removalsPaused(pool.Name)
	return o
}

// blockedBy returns why no node can be launched from the pool, apart from its limits; "" if nodes can be launched.
func blockedBy(snap *model.Snapshot, pool *model.Pool) string {
	if why := explain.NoTypes(snap, pool); why != "" {
		return why
	}
	if b := pool.Blocked; b != nil && *b != *model.StaticBlock() {
		return strings.TrimPrefix(b.Field+": "+b.Reason, ": ")
	}
	return ""
}

func (o *PoolOutcome) addBudgets(snap *model.Snapshot, pool *model.Pool) {
	g := guard.New(snap)
	for _, reason := range []plan.Reason{plan.Empty, plan.Underutilized, plan.Drifted, plan.Expired} {
		a := g.Allowance(pool.Name, reason)
		b := BudgetOutcome{Reason: string(reason), Allowed: a.Allowed, Leaving: a.Leaving,
			Remaining: min(a.Remaining(), max(0, a.Total-a.Leaving))}
		if a.Allowed == guard.Unlimited {
			b.Allowed = -1
		}
		o.Budgets = append(o.Budgets, b)
	}
	for _, b := range pool.Budgets {
		if b.Changes.After(snap.Now) && (o.Changes == nil || b.Changes.Before(*o.Changes)) {
			at := b.Changes
			o.Changes = &at
		}
	}
}

func (o *PoolOutcome) addRollout(snap *model.Snapshot, nodes []*model.Node) {
	r := &o.Rollout
	for _, n := range nodes {
		if from := disruption.RenewFrom(n); !from.IsZero() && !from.After(snap.Now) {
			r.Due++
		}
		if n.Drifted == "" {
			r.Current++
		} else {
			r.drifted(n)
		}
		if command, err := plan.DecodeCommand(n.Command); err == nil && n.Command != "" {
			r.underWay(string(command.Reason), string(command.Shown(n)))
		}
	}
	slices.SortFunc(r.Drifted, func(a, b driftCount) int { return strings.Compare(a.Reason, b.Reason) })
	slices.SortFunc(r.UnderWay, func(a, b phaseCount) int {
		return cmp.Or(strings.Compare(a.Reason, b.Reason), strings.Compare(a.Phase, b.Phase))
	})
}

func (r *rolloutOutcome) drifted(n *model.Node) {
	at := slices.IndexFunc(r.Drifted, func(c driftCount) bool { return c.Reason == n.Drifted })
	if at < 0 {
		at = len(r.Drifted)
		r.Drifted = append(r.Drifted, driftCount{Reason: n.Drifted})
	}
	c := &r.Drifted[at]
	c.Nodes = append(c.Nodes, n.Name)
	if !n.DriftedSince.IsZero() && (c.Since == nil || n.DriftedSince.Before(*c.Since)) {
		c.Since = &n.DriftedSince
	}
}

func (r *rolloutOutcome) underWay(reason, phase string) {
	at := slices.IndexFunc(r.UnderWay, func(c phaseCount) bool { return c.Reason == reason && c.Phase == phase })
	if at < 0 {
		at = len(r.UnderWay)
		r.UnderWay = append(r.UnderWay, phaseCount{Reason: reason, Phase: phase})
	}
	r.UnderWay[at].Nodes++
}

// keptCounts groups the nodes of the pool that are kept, the most expensive group first.
func (d *DisruptDecision) keptCounts(pool string) []keptCount {
	var list []keptCount
	for _, k := range d.proposal.Kept {
		n := d.first.Node(k.Node)
		if k.Pool != pool || n == nil || n.Command != "" || n.Deleting {
			continue
		}
		r := keptReasonOf(d.first, k)
		at := slices.IndexFunc(list, func(c keptCount) bool { return c.For == r.For && c.Code == r.Code })
		if at < 0 {
			at = len(list)
			list = append(list, keptCount{For: r.For, Code: r.Code})
		}
		c := &list[at]
		c.Nodes, c.reasons = append(c.Nodes, k.Node), append(c.reasons, r)
		if n.LeastPrice() == 0 {
			c.UnknownPrices++
		} else {
			c.CostPerHour += usd(d.opts.CostOf(d.first, n))
		}
		c.Message, c.kept = ofAll(c.reasons), append(c.kept, k)
	}
	for i := range list {
		if at := disruption.ChangesAt(d.first, d.opts, list[i].kept...); !at.IsZero() {
			list[i].ChangesAt = &at
		}
	}
	slices.SortFunc(list, func(a, b keptCount) int {
		return cmp.Or(cmp.Compare(b.CostPerHour, a.CostPerHour), strings.Compare(a.For, b.For), strings.Compare(a.Code, b.Code))
	})
	return list
}

// Text returns the outcome as the lines that explain prints.
func (o *PoolOutcome) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "pool %s: %s %s", o.NodePool, plural(o.Nodes, "node"), o.perHour())
	if o.NotReady > 0 {
		fmt.Fprintf(&b, "; %d not ready", o.NotReady)
	}
	b.WriteByte('\n')
	if o.Blocked != "" {
		fmt.Fprintf(&b, "  launches nothing: %s\n", o.Blocked)
	}
	writeLimits(&b, o.Limits)
	for i := range o.Quotas {
		b.WriteString("  " + o.Quotas[i].line())
	}
	o.pausesOutcome.write(&b, o.NodePool)
	for i := range o.Assumed {
		o.Assumed[i].write(&b)
	}
	if o.LowerBoundCostPerHour > 0 {
		fmt.Fprintf(&b, "  lower bound %.4f USD per hour, %.4f including per-node overhead, with protected nodes kept\n",
			o.LowerBoundPerHour, o.LowerBoundCostPerHour)
	}
	if s := o.Static; s != nil && s.Kept {
		fmt.Fprintf(&b, "  has a fixed number of nodes: %s of %s\n", plural(o.Nodes, "node"), plural(int(s.Replicas), "replica"))
		if s.Missing > 0 {
			fmt.Fprintf(&b, "    %s cannot be launched: %s\n", plural(int(s.Missing), "missing node"), s.Why)
		}
	} else if s != nil {
		fmt.Fprintf(&b, "  has %s, and none of them is launched while the feature gate StaticCapacity is off: give --feature-gates as the controller has them; "+
			"settings.featureGates.staticCapacity of the chart enables it\n", plural(int(s.Replicas), "replica"))
	}
	o.writeBudgets(&b)
	o.writeRollout(&b)
	if len(o.Steps) > 0 {
		fmt.Fprintf(&b, "  %s would start now: %s\n", plural(len(o.Steps), "step"), savingPerHour(o.Saving))
	}
	o.AtRest.write(&b)
	for _, k := range o.Kept {
		fmt.Fprintf(&b, "  %s %s (%s), %s USD per hour: %s\n", plural(len(k.Nodes), "node"), verb(len(k.Nodes)),
			k.For, knownPrice(k.CostPerHour), k.Message)
		if k.ChangesAt != nil {
			fmt.Fprintf(&b, "    may change at %s\n", k.ChangesAt.UTC().Format(time.RFC3339))
		}
	}
	b.WriteString(indented(pricesAre(o.PriceSource)))
	b.WriteString(incomplete(o.Incomplete))
	return b.String()
}

func verb(n int) string {
	if n == 1 {
		return "is kept"
	}
	return "are kept"
}

func (o *PoolOutcome) writeBudgets(b *strings.Builder) {
	if o.BudgetError != "" {
		fmt.Fprintf(b, "  budgets allow nothing: %s\n", o.BudgetError)
		return
	}
	b.WriteString("  budgets allow now:")
	for i, budget := range o.Budgets {
		if i > 0 {
			b.WriteByte(',')
		}
		if budget.Allowed < 0 {
			fmt.Fprintf(b, " %s any", budget.Reason)
		} else {
			fmt.Fprintf(b, " %s %d more of %d", budget.Reason, budget.Remaining, budget.Allowed)
		}
	}
	if o.Budgets[0].Leaving > 0 {
		fmt.Fprintf(b, "; %s not ready, being deleted or in a command", plural(int(o.Budgets[0].Leaving), "node"))
	}
	if o.Terminating > 0 {
		fmt.Fprintf(b, "; %s being terminated, which no longer count", plural(o.Terminating, "node"))
	}
	b.WriteByte('\n')
	if o.Changes != nil {
		fmt.Fprintf(b, "    the next window opens or closes at %s\n", o.Changes.UTC().Format(time.RFC3339))
	}
}

func (o *PoolOutcome) writeRollout(b *strings.Builder) {
	r := &o.Rollout
	if r.Current < o.Nodes {
		fmt.Fprintf(b, "  up to date: %d of %s\n", r.Current, plural(o.Nodes, "node"))
	}
	for _, c := range r.Drifted {
		fmt.Fprintf(b, "    %s drifted, %s: %s", plural(len(c.Nodes), "node"), c.Reason, names(c.Nodes, ","))
		if c.Since != nil {
			fmt.Fprintf(b, ", the first at %s", c.Since.UTC().Format(time.RFC3339))
		}
		b.WriteByte('\n')
	}
	if r.Due > 0 {
		fmt.Fprintf(b, "  %s due for renewal before expireAfter ends\n", plural(r.Due, "node"))
	}
	for _, c := range r.UnderWay {
		fmt.Fprintf(b, "  %s being removed: %s, phase %s\n", plural(c.Nodes, "node"), c.Reason, c.Phase)
	}
}
