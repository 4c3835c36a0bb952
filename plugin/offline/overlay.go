package offline

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/overlay"
	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// OverlayOutcome is what a NodeOverlay of the files does. Reason is empty if it is valid and conflicts with none.
type OverlayOutcome struct {
	Name    string `json:"name"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message"`
}

// OtherPlan is the plan for the same pods without some of the objects.
type OtherPlan struct {
	Nodes         int     `json:"nodes"`
	Unschedulable int     `json:"unschedulable"`
	PricePerHour  float64 `json:"pricePerHour"`
	CostPerHour   float64 `json:"costPerHour"`
}

// resolve resolves the overlays for all pools.
func (m *mirror) resolve(o *Manifests, pools []overlay.Pool) {
	if len(o.overlays)+len(o.prices) == 0 {
		return
	}
	set := overlay.New(m.Overlays(), m.Vocabulary().Rules, o.sale.Declared.ReservationKey)
	if with, err := set.WithRules(o.prices); err == nil { // of the provider's labels, which Check does not know
		set = with
	} else {
		m.problems = append(m.problems, fmt.Errorf("price rules have no effect: %w", err))
	}
	m.pools, m.resolved = pools, set.Resolve(pools)
	for _, r := range m.resolved.Reports() {
		m.overlays = append(m.overlays, OverlayOutcome{r.Name, r.Reason, r.Message})
	}
	for _, r := range m.resolved.RuleProblems() {
		m.rules = append(m.rules, r.Name+" "+r.Message)
	}
}

// overlaid returns the types of a pool with the changes of the overlays: its own slice without any.
func (m *mirror) overlaid(p overlay.Pool) []cloud.InstanceType {
	if m.resolved == nil {
		return p.Types
	}
	types, _ := m.resolved.Apply(p)
	return types
}

// withoutOverlays plans once more without overlays, if there are any.
func (o *Manifests) withoutOverlays(opts placement.Options) *OtherPlan {
	if len(o.overlays) == 0 {
		return nil
	}
	return o.planWithout(opts, func(m *Manifests) { m.overlays = nil })
}

// planWithout plans once more without what remove removes.
func (o *Manifests) planWithout(opts placement.Options, remove func(*Manifests)) *OtherPlan {
	plain := *o
	remove(&plain)
	snap := plain.Snapshot()
	p := new(futile.Launches).Restrain(snap, placement.Schedule(snap, opts))
	return figuresOfPlan(snap, p, opts)
}

func figuresOfPlan(snap *model.Snapshot, p *plan.Provision, opts placement.Options) *OtherPlan {
	price, cost := priceOf(snap, p, opts)
	o := &OtherPlan{Nodes: len(p.Claims), PricePerHour: usd(price), CostPerHour: usd(cost)}
	for _, r := range p.Refused {
		o.Unschedulable += len(r.Pods)
	}
	return o
}

// OverlayChange is a price or a resource that a NodeOverlay changes, or would change if another one did not take
// precedence.
type OverlayChange struct {
	NodePool     string `json:"nodePool"`
	InstanceType string `json:"instanceType"`
	// Offering is type/zone/capacity type, and the reservation if there is one, of a changed price. Prices are USD per
	// hour.
	Offering string  `json:"offering,omitempty"`
	RawPrice float64 `json:"rawPrice,omitempty"`
	Price    float64 `json:"price,omitempty"`
	// Resource and Amount describe a change of capacity.
	Resource string `json:"resource,omitempty"`
	Amount   int64  `json:"amount,omitempty"`
	// OverruledBy is the overlay that takes precedence; empty if the change has an effect.
	OverruledBy string `json:"overruledBy,omitempty"`
}

// OverlayDetails is what one NodeOverlay does in all pools.
type OverlayDetails struct {
	OverlayOutcome
	Changes []OverlayChange `json:"changes"`
	Gaps
}

// Names returns the overlay as `kubectl get -o name` does.
func (o *OverlayDetails) Names() []string { return []string{"nodeoverlay.karpenter.sh/" + o.Name} }

// fewChanges is how many changes have a line each.
const fewChanges = 20

// Text returns a line per change, or if there are many, a line for those that are alike. The documents have all.
func (o *OverlayDetails) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "overlay %s: %s\n", o.Name, o.Message)
	switch n := len(o.Changes); {
	case n > fewChanges:
		fmt.Fprintf(&b, "\n%s%d changes; -o json lists each\n", table.Text(alikeColumns, alikeChanges(o.Changes), 0), n)
	case n > 0:
		b.WriteString("\n" + table.Text(changeColumns, o.Changes, 0))
	}
	return b.String() + incomplete(o.Incomplete)
}

// alike are changes of one pool that differ in type, zone and price only.
type alike struct {
	change, pool, by string
	first, last      string
	types, count     int
}

var alikeColumns = []table.Column[alike]{
	{Title: "CHANGE", Cell: func(a *alike) string { return a.change }},
	{Title: "POOL", Cell: func(a *alike) string { return a.pool }},
	{Title: "CHANGES", Right: true, Cell: func(a *alike) string { return strconv.Itoa(a.count) }},
	{Title: "TYPES", Right: true, Cell: func(a *alike) string { return strconv.Itoa(a.types) }},
	{Title: "FIRST TYPE", Cell: func(a *alike) string { return a.first }},
	{Title: "LAST TYPE", Cell: func(a *alike) string { return a.last }},
	{Title: "OVERRULED BY", Cell: func(a *alike) string { return a.by }},
}

// alikeChanges groups changes, which are sorted by pool and type.
func alikeChanges(changes []OverlayChange) []alike {
	var groups []alike
	types := map[int]map[string]bool{}
	for i := range changes {
		c := &changes[i]
		change := fmt.Sprintf("price %.4f", c.Price)
		switch {
		case c.Resource != "":
			change = fmt.Sprintf("%s %d", c.Resource, c.Amount)
		case c.RawPrice > 0 && c.Price > 0:
			change = fmt.Sprintf("price %+.1f%%", 100*(c.Price/c.RawPrice-1))
		}
		at := slices.IndexFunc(groups, func(a alike) bool {
			return a.change == change && a.pool == c.NodePool && a.by == c.OverruledBy
		})
		if at < 0 {
			at = len(groups)
			groups = append(groups, alike{change: change, pool: c.NodePool, by: c.OverruledBy, first: c.InstanceType})
			types[at] = map[string]bool{}
		}
		types[at][c.InstanceType] = true
		groups[at].last, groups[at].types = c.InstanceType, len(types[at])
		groups[at].count++
	}
	return groups
}

var changeColumns = []table.Column[OverlayChange]{
	{Title: "CHANGE", Cell: func(c *OverlayChange) string {
		if c.Resource != "" {
			return c.InstanceType + " " + c.Resource
		}
		return c.Offering
	}},
	{Title: "POOL", Cell: func(c *OverlayChange) string { return c.NodePool }},
	{Title: "FROM", Right: true, Cell: func(c *OverlayChange) string {
		if c.Resource != "" {
			return ""
		}
		return fmt.Sprintf("%.4f", c.RawPrice)
	}},
	{Title: "TO", Right: true, Cell: func(c *OverlayChange) string {
		if c.Resource != "" {
			return strconv.FormatInt(c.Amount, 10)
		}
		return fmt.Sprintf("%.4f", c.Price)
	}},
	{Title: "OVERRULED BY", Cell: func(c *OverlayChange) string { return c.OverruledBy }},
}

// ExplainOverlay returns what a NodeOverlay does.
func (o *Manifests) ExplainOverlay(name string) (*OverlayDetails, error) {
	t := o.mirror()
	at := slices.IndexFunc(t.overlays, func(details OverlayOutcome) bool { return details.Name == name })
	if at < 0 {
		var names []string
		for _, details := range t.overlays {
			names = append(names, details.Name)
		}
		return nil, fmt.Errorf("there is no NodeOverlay %s that a controller has read%s", name, didYouMean(name, names))
	}
	details := &OverlayDetails{OverlayOutcome: t.overlays[at], Changes: []OverlayChange{}, Gaps: o.gaps()}
	for _, p := range t.pools {
		for _, c := range t.resolved.Changes(p) {
			if c.Overlay == name {
				details.Changes = append(details.Changes, OverlayChange{NodePool: c.Pool, InstanceType: c.Type, Offering: c.Offering,
					RawPrice: c.Raw, Price: c.Price,
					Resource: c.Resource, Amount: c.Amount, OverruledBy: c.By})
			}
		}
	}
	return details, nil
}

// writeOverlays prints what the overlays do, and the plan without them.
func (a *LaunchAnswer) writeOverlays(b *strings.Builder) {
	for _, o := range a.Overlays {
		fmt.Fprintf(b, "overlay %s: %s\n", o.Name, o.Message)
	}
	if o := a.WithoutOverlays; o != nil {
		fmt.Fprintf(b, "without NodeOverlays: %s, %d unschedulable, price %.4f USD per hour; with them %+.4f\n",
			plural(o.Nodes, "new node"), o.Unschedulable, o.PricePerHour, a.PricePerHour-o.PricePerHour)
	}
	if slices.ContainsFunc(a.Overlays, func(o OverlayOutcome) bool { return o.Reason != "" }) {
		b.WriteString("a NodeOverlay that is invalid or conflicts has no effect\n")
	}
}

// CommitmentUse is how much of a commitment of the price file is used. Amounts are in vCPUs or in USD per hour.
type CommitmentUse struct {
	Name      string  `json:"name"`
	Unit      string  `json:"unit"`
	Committed float64 `json:"committed"`
	// Used is what existing nodes use, and Nodes how many they are; New is what the new nodes of a plan will use.
	Used  float64 `json:"used"`
	Nodes int     `json:"nodes"`
	New   float64 `json:"new,omitempty"`
	Left  float64 `json:"left"`
}

// commitmentsOf returns the use of the commitments by the nodes of a snapshot, and by the claims of a plan, one after the
// other: where several commitments match, a claim uses the next one when those before have nothing left.
func commitmentsOf(snap *model.Snapshot, claims []plan.NewClaim) []CommitmentUse {
	planned, what := map[string]int64{}, snap
	for i := range claims {
		c := &claims[i]
		if _, committed := model.CommitmentName(c.Reservation); !committed {
			continue
		}
		if n := what.Future(c.FutureSpec(snap), c.Types()[:1]); n != nil {
			what = what.With(n)
			for id, units := range n.Uses() {
				planned[id] += units
			}
		}
	}
	var list []CommitmentUse
	for _, c := range snap.Commitments {
		name, _ := model.CommitmentName(c.ID)
		unit, per := "vCPUs", 1000.0
		if c.PerPrice {
			unit, per = "USD per hour", model.Nano
		}
		in := func(units int64) float64 { return float64(units) / per }
		list = append(list, CommitmentUse{Name: name, Unit: unit, Committed: in(c.Limit), Used: in(c.Used), Nodes: c.Machines,
			New: in(planned[c.ID]), Left: in(max(0, c.Left()-planned[c.ID]))})
	}
	return list
}

// String returns the commitment in a line of at most 80 characters, for usual names.
func (c *CommitmentUse) String() string {
	text := fmt.Sprintf("%s: %.4g of %.4g %s used by %s", c.Name, c.Used, c.Committed, c.Unit, plural(c.Nodes, "node"))
	if c.New > 0 {
		text += fmt.Sprintf(", %.4g by new ones", c.New)
	}
	return text + fmt.Sprintf(", %.4g left", c.Left)
}

// writePriceRules prints the use of the commitments, and what of the price rules has no effect.
func (a *LaunchAnswer) writePriceRules(b *strings.Builder) {
	for i := range a.Commitments {
		fmt.Fprintf(b, "commitment %s\n", &a.Commitments[i])
	}
	for _, text := range a.PriceRules {
		fmt.Fprintf(b, "price rule %s\n", text)
	}
}
