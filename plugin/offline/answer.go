package offline

import (
	"cmp"
	"io"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bound"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/spotshare"
)

// LaunchAnswer is the output of the verb; docs/simulate.md describes it for users. Money is USD per hour. The cost is the
// price and, for every new node, the node overhead price.
type LaunchAnswer struct {
	Pods          PodCounts       `json:"pods"`
	Nodes         []NewNode       `json:"nodes"`
	ExistingNodes []ExistingNode  `json:"existingNodes"`
	Unschedulable []Unschedulable `json:"unschedulable"`
	// BindOrder is an order in which every pod is admissible at its turn.
	BindOrder    []string `json:"bindOrder"`
	PricePerHour float64  `json:"pricePerHour"`
	CostPerHour  float64  `json:"costPerHour"`
	// These are lower bounds of what any plan adds for these pods.
	LowerBoundPerHour     float64 `json:"lowerBoundPerHour"`
	LowerBoundCostPerHour float64 `json:"lowerBoundCostPerHour"`
	// Preferences is the cost of respecting pods' preferences; omitted if there are none, or if they cost nothing.
	Preferences *PreferencesCost `json:"preferences,omitempty"`
	// Overlays say what the NodeOverlays do, and WithoutOverlays is the plan without them; omitted if there are none.
	Overlays        []OverlayOutcome `json:"overlays,omitempty"`
	WithoutOverlays *OtherPlan       `json:"withoutOverlays,omitempty"`
	// Quotas are the CapacityQuotas with what nodes use of them, and WithoutQuotas is the plan without them; omitted if there
	// are none, or if the plan is the same.
	Quotas        []QuotaOutcome `json:"quotas,omitempty"`
	WithoutQuotas *OtherPlan     `json:"withoutQuotas,omitempty"`
	// Buffers are what becomes of the CapacityBuffers, and Room is the plan for their virtual pods; omitted if there are
	// none.
	Buffers []BufferOutcome `json:"buffers,omitempty"`
	Room    *Room           `json:"room,omitempty"`
	// Commitments are those of the price file.
	Commitments []CommitmentUse `json:"commitments,omitempty"`
	// PriceRules say what of the rules of the price file has no effect.
	PriceRules []string `json:"priceRules,omitempty"`
	// SpotShares are those of pools that limit them.
	SpotShares []SpotShare `json:"spotShares,omitempty"`
	// PriceSource is the source and the date of prices; omitted for invented prices.
	PriceSource string `json:"priceSource,omitempty"`
	Gaps
	Stats *Stats `json:"stats,omitempty"`
}

// SpotShare is the instance type and zone that will have the largest share of a pool's spot capacity, in percent of
// its vCPUs.
type SpotShare struct {
	NodePool     string `json:"nodePool"`
	MaxPercent   int64  `json:"maxPercent"`
	InstanceType string `json:"instanceType"`
	Zone         string `json:"zone"`
	Percent      int64  `json:"percent"`
}

// PodCounts counts the pods of an answer by where they are planned.
type PodCounts struct {
	Total    int `json:"total"`
	Existing int `json:"existing"`
	// InFlight counts those of Existing whose node is being launched.
	InFlight      int `json:"inFlight,omitempty"`
	New           int `json:"new"`
	Unschedulable int `json:"unschedulable"`
}

// NewNode is a node to launch as its cheapest offering. InstanceTypes, cheapest first, are all suitable types that
// are available in the same zone and capacity type.
type NewNode struct {
	Name          string   `json:"name"`
	NodePool      string   `json:"nodePool"`
	InstanceType  string   `json:"instanceType"`
	Zone          string   `json:"zone"`
	CapacityType  string   `json:"capacityType"`
	PricePerHour  float64  `json:"pricePerHour"`
	InstanceTypes []string `json:"instanceTypes"`
	// Labels are those for which the pool allows several values, with the chosen value.
	Labels map[string]string `json:"labels,omitempty"`
	Pods   []string          `json:"pods"`
	// Requests are those of the pods and of the expected DaemonSet pods; Allocatable is that of the instance type.
	Requests    map[string]string `json:"requests"`
	Allocatable map[string]string `json:"allocatable"`

	used usage
}

// ExistingNode lists pods for a node that exists or is being launched.
type ExistingNode struct {
	Name string `json:"name"`
	// InFlight means that the node is being launched; the name is that of the claim.
	InFlight bool     `json:"inFlight,omitempty"`
	Pods     []string `json:"pods"`
}

// Unschedulable is an unschedulable pod.
type Unschedulable struct {
	Pod     string   `json:"pod"`
	Reasons []Reason `json:"reasons"`
}

// Reason is why a pool cannot provide a node for a pod; without a pool it concerns the pod itself.
type Reason struct {
	Code     string `json:"code"`
	NodePool string `json:"nodePool"`
	Message  string `json:"message"`
}

// PreferencesCost is the number of additional nodes that are launched because preferences of pods are respected, and
// their cost. It is negative if ignoring preferences would cost more.
type PreferencesCost struct {
	Nodes       int     `json:"nodes"`
	CostPerHour float64 `json:"costPerHour"`
}

// Answer converts the decision to words and figures.
func (d *Decision) Answer() *LaunchAnswer {
	a := &LaunchAnswer{Nodes: []NewNode{}, ExistingNodes: []ExistingNode{}, Unschedulable: []Unschedulable{}, PriceSource: d.source,
		Gaps: d.gaps, Stats: d.stats}
	prices := priceTables{}
	for i := range d.plan.Claims {
		a.Nodes = append(a.Nodes, d.newNode(&d.plan.Claims[i], prices))
		a.Pods.New += len(d.plan.Claims[i].Pods)
	}
	for _, n := range d.plan.Placed {
		there := ExistingNode{Name: n.Node, InFlight: d.inFlight(n.Node), Pods: podKeys(n.Pods)}
		a.ExistingNodes = append(a.ExistingNodes, there)
		a.Pods.Existing += len(n.Pods)
		if there.InFlight {
			a.Pods.InFlight += len(n.Pods)
		}
	}
	a.Unschedulable = d.refusals()
	a.BindOrder = podKeys(d.plan.Order)
	price, cost := priceOf(d.snap, d.plan, d.opts)
	a.PricePerHour, a.CostPerHour = usd(price), usd(cost)
	price, cost = d.lowerBound()
	a.LowerBoundPerHour, a.LowerBoundCostPerHour = usd(price), usd(cost)
	a.Preferences = d.preferences()
	a.Overlays, a.WithoutOverlays = d.from.overlays, d.without
	a.Quotas = d.quotaOutcomes()
	if d.withoutQuotas != nil {
		a.WithoutQuotas = d.withoutQuotas()
	}
	a.Buffers, a.Room = d.bufferOutcomes(), d.room()
	a.Commitments, a.PriceRules = commitmentsOf(d.snap, d.plan.Claims), d.from.rules
	for _, p := range d.snap.Pools {
		if worst, bound := spotshare.LargestOf(d.snap, p.Name, d.plan.Claims); bound {
			a.SpotShares = append(a.SpotShares, SpotShare{p.Name, p.MaxSpotShare, worst.Type, worst.Zone, worst.Percent})
		}
	}
	a.Pods.Unschedulable = len(a.Unschedulable)
	a.Pods.Total = a.Pods.New + a.Pods.Existing + a.Pods.Unschedulable
	return a
}

// inFlight reports whether a node of the snapshot is being launched.
func (d *Decision) inFlight(name string) bool {
	node := d.snap.Node(name)
	return node != nil && node.Stage < model.Registered
}

// priceOf returns the total price and cost of the new nodes.
func priceOf(snap *model.Snapshot, p *plan.Provision, opts placement.Options) (price, cost int64) {
	for i := range p.Claims {
		c := &p.Claims[i]
		price += c.Price()
		cost += c.Price() + opts.NodePriceOf(snap.Pool(c.Pool).PoolSpec)
	}
	return price, cost
}

// lowerBound returns lower bounds of the price and the cost that any plan adds for the placed pods. If the costs of
// nodes beyond their price differ between pools, the lowest one is used.
func (d *Decision) lowerBound() (price, cost int64) {
	if len(d.plan.Claims) == 0 {
		return 0, 0
	}
	least := int64(math.MaxInt64)
	for _, p := range d.snap.Pools {
		least = min(least, d.opts.NodePriceOf(p.PoolSpec))
	}
	placed := make(map[*model.Pod]bool, len(d.plan.Order))
	for _, p := range d.plan.Order {
		placed[p] = true
	}
	b := bound.Of(d.snap, bound.Options{NodePrice: least, Pods: func(p *model.Pod) bool { return placed[p] }})
	return b.Price, b.Cost
}

func (d *Decision) refusals() []Unschedulable {
	list := []Unschedulable{}
	for _, r := range d.plan.Refused {
		reasons := reasonsOf(d.snap, r)
		for _, pod := range r.Pods {
			list = append(list, Unschedulable{pod.Key(), reasons})
		}
	}
	for _, p := range d.from.idle {
		list = append(list, Unschedulable{p.pod, reasonsOf(d.snap, plan.Refusal{Verdict: p.why})})
	}
	return list
}

func reasonsOf(snap *model.Snapshot, r plan.Refusal) []Reason {
	var reasons []Reason
	for _, c := range explain.Clauses(snap, r) {
		if len(c.Pools) == 0 {
			reasons = append(reasons, Reason{Code: explain.Code(c.Code), Message: c.Text})
		}
		for _, pool := range c.Pools {
			reasons = append(reasons, Reason{Code: explain.Code(c.Code), NodePool: pool, Message: c.Text})
		}
	}
	return reasons
}

// preferences decides once more without preferences, if any pod has some.
func (d *Decision) preferences() *PreferencesCost {
	if d.opts.IgnorePreferences || !slices.ContainsFunc(d.snap.Groups, hasPreferences) {
		return nil
	}
	opts := d.opts
	opts.IgnorePreferences = true
	without := placement.Schedule(d.snap, opts)
	_, with := priceOf(d.snap, d.plan, d.opts)
	_, cost := priceOf(d.snap, without, opts)
	if len(d.plan.Claims) == len(without.Claims) && with == cost {
		return nil
	}
	return &PreferencesCost{Nodes: len(d.plan.Claims) - len(without.Claims), CostPerHour: usd(with - cost)}
}

// hasPreferences reports whether the pods of the group have preferences.
func hasPreferences(g *model.Group) bool {
	return len(g.Preferred) > 0 || slices.ContainsFunc(g.Spread, func(s model.Spread) bool { return s.Soft }) ||
		slices.ContainsFunc(g.Terms, func(t model.Term) bool { return !t.Required() })
}

func (d *Decision) newNode(c *plan.NewClaim, prices priceTables) NewNode {
	first := c.Options[0]
	index := d.snap.Pool(c.Pool).Types
	n := NewNode{
		Name: c.Name, NodePool: c.Pool, InstanceType: first.Type, Zone: first.Zone, CapacityType: first.CapacityType,
		PricePerHour: usd(first.Price), Pods: podKeys(c.Pods), Labels: d.chosenLabels(c), Requests: map[string]string{}, Allocatable: map[string]string{},
	}
	table := prices.table(index, first)
	n.InstanceTypes = table.sameOffering(c)
	for _, a := range c.Requests {
		n.Requests[a.Name] = explain.Quantity(a.Name, a.Value)
	}
	for _, a := range index.Catalog.Types[table.byName[first.Type]].Allocatable {
		if !model.IsVolumeResource(a.Name) {
			n.Allocatable[a.Name] = explain.Quantity(a.Name, a.Value)
		}
	}
	n.used = usageOf(c.Requests, index.Catalog.Types[table.byName[first.Type]].Allocatable)
	return n
}

// chosenLabels returns the custom labels for which the pool allows more than one value; nil for none.
func (d *Decision) chosenLabels(c *plan.NewClaim) map[string]string {
	var chosen map[string]string
	for key, value := range c.Labels {
		fixed := slices.ContainsFunc(d.snap.Pool(c.Pool).PoolSpec.Requirements, func(r label.Requirement) bool {
			return label.Canonical(r.Key) == key && r.Operator == label.In && len(r.Values) == 1
		})
		if fixed {
			continue
		}
		if chosen == nil {
			chosen = map[string]string{}
		}
		chosen[key] = value
	}
	return chosen
}

// priceTables caches the prices of each zone and capacity type of a catalog.
type priceTables map[priceTableKey]*priceTable

type priceTableKey struct {
	catalog            *model.Catalog
	zone, capacityType string
}

type priceTable struct {
	byName map[string]int
	// price is the price by type, model.NoPrice if the type is not available.
	price []int64
	// lists caches the results by option list; claims with the same options share them.
	lists map[*plan.Option][]string
}

func (s priceTables) table(index *model.TypeIndex, o plan.Option) *priceTable {
	at := priceTableKey{index.Catalog, o.Zone, o.CapacityType}
	if s[at] != nil {
		return s[at]
	}
	fresh := &priceTable{byName: make(map[string]int, index.Len()), price: make([]int64, index.Len()), lists: map[*plan.Option][]string{}}
	for t := range index.Catalog.Types {
		fresh.byName[index.Catalog.Types[t].Name] = t
		fresh.price[t] = model.NoPrice
	}
	for i := range index.Classes {
		class := &index.Classes[i]
		if class.Zone != o.Zone || class.CapacityType != o.CapacityType {
			continue
		}
		for t := range class.Types.All() {
			fresh.price[t] = min(fresh.price[t], class.Price[t])
		}
	}
	s[at] = fresh
	return fresh
}

// sameOffering returns the claim's types that are available on the table, cheapest first.
func (s *priceTable) sameOffering(c *plan.NewClaim) []string {
	if known := s.lists[&c.Options[0]]; known != nil {
		return known
	}
	type priced struct {
		name  string
		price int64
	}
	same := make([]priced, 0, len(c.Options))
	for _, option := range c.Options {
		if price := s.price[s.byName[option.Type]]; price != model.NoPrice {
			same = append(same, priced{option.Type, price})
		}
	}
	slices.SortStableFunc(same, func(a, b priced) int { return cmp.Compare(a.price, b.price) })
	names := make([]string, len(same))
	for i := range same {
		names[i] = same[i].name
	}
	s.lists[&c.Options[0]] = names
	return names
}

func podKeys(pods []*model.Pod) []string {
	keys := make([]string, len(pods))
	for i, p := range pods {
		keys[i] = p.Key()
	}
	return keys
}

// WriteJSON writes the answer as one JSON object, whose fields simulate documents.
func (a *LaunchAnswer) WriteJSON(out io.Writer) error { return writeStream(out, a) }
