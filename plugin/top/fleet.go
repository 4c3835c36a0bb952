package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// Fleet is the displayed data. Money is in USD per hour, shares are from 0 to 1.
type Fleet struct {
	// At is when the data was read.
	At time.Time `json:"at"`
	// Nodes are in the order of Sort. They include claims without a node.
	Nodes []Node `json:"nodes"`
	// Pools are the NodePools, also those without nodes, by name; nil if they are not known.
	Pools []Pool `json:"pools"`
	// Waiting are the pending pods, the unschedulable ones first.
	Waiting []Waiting `json:"waiting"`
	// CPU and Memory are the requests of pods as a share of the capacity of all nodes.
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	Pods   int     `json:"pods"`
	// PricePerHour is the price of the nodes with claims. LowerBoundPerHour is the lower bound of the price for any
	// plan that keeps the nodes that must be kept.
	PricePerHour      Sum     `json:"pricePerHour,omitzero"`
	LowerBoundPerHour float64 `json:"lowerBoundPerHour"`
	// Unpriced is the number of nodes with claims whose price is unknown. PricePerHour is that of the others.
	Unpriced int `json:"unknownPrices,omitempty"`
	// Filtered is the text of Filter, empty for none. Of contains the totals of all nodes if Filter removed some. It
	// is nil if the other values are the totals.
	Filtered string `json:"filter,omitempty"`
	Of       *Whole `json:"of,omitempty"`
	// poolRows are the rows of pools that a filter shows, and whole is the fleet without it; nil without a filter.
	poolRows []poolTotal
	whole    *Fleet
	// PriceSource describes source and date of the prices, empty for fictitious ones.
	PriceSource string `json:"priceSource,omitempty"`
	// Commitments are those of the price file, a line for each.
	Commitments []string `json:"commitments,omitempty"`
	// Bill is what the price is paid for; nil if that was not asked.
	Bill *bill.Bill `json:"bill,omitempty"`
	// Incomplete lists the kinds that the user may not read, and how the data differs without them.
	Incomplete []Denied `json:"incomplete,omitempty"`
}

// Denied is a kind that the user may not read. Verb is the missing permission.
type Denied struct {
	Resource string `json:"resource"`
	Verb     string `json:"verb"`
	Effect   string `json:"effect"`
}

// Whole holds totals without a filter.
type Whole struct {
	Nodes        int `json:"nodes"`
	Pods         int `json:"pods"`
	PricePerHour Sum `json:"pricePerHour,omitzero"`
}

// Amounts are the requests of pods and the capacity for pods, in millicores and bytes.
type Amounts struct{ UsedCPU, UsableCPU, UsedMemory, UsableMemory int64 }

func (a *Amounts) add(b *Amounts) {
	a.UsedCPU, a.UsableCPU = a.UsedCPU+b.UsedCPU, a.UsableCPU+b.UsableCPU
	a.UsedMemory, a.UsableMemory = a.UsedMemory+b.UsedMemory, a.UsableMemory+b.UsableMemory
}

// Node is a node, or a claim without a node.
type Node struct {
	Name         string `json:"name"`
	NodePool     string `json:"nodePool,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// State is launching, launched, registered, ready, cordoned, not ready, disrupted (its command has begun), leaving
	// (being deleted) or blocked (a pod blocks its drain).
	State  string  `json:"state"`
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	Pods   int     `json:"pods"`
	// Places is the maximum number of pods, 0 if unknown.
	Places int `json:"places"`
	// PricePerHour is 0, which documents omit, for unmanaged nodes, and if it is unknown, which Unpriced says.
	PricePerHour float64 `json:"pricePerHour,omitempty"`
	Unpriced     bool    `json:"-"`
	// Age is in seconds.
	Age float64 `json:"ageSeconds"`
	// Leaving is how long the node has been being deleted, in seconds, and Drain what blocks its drain.
	Leaving float64 `json:"leavingSeconds,omitempty"`
	Drain   string  `json:"drain,omitempty"`
	// Amounts are zero for claims without a node.
	Amounts Amounts `json:"-"`
}

// Pool is a NodePool.
type Pool struct {
	Name string `json:"name"`
	// Ready means that nodes can be launched from it, apart from its limits. NotReady is why not.
	Ready    bool   `json:"ready"`
	NotReady string `json:"notReady,omitempty"`
	// Limit is the limit of which most is used, such as cpu 96/100, empty without limits. AtLimit is why no further node
	// fits, empty if one does.
	Limit   string `json:"limit,omitempty"`
	AtLimit string `json:"atLimit,omitempty"`
}

// Waiting is a set of pods that are pending for the same reason.
type Waiting struct {
	// Pod is the first of them, and Count their number.
	Pod   string `json:"pod"`
	Count int    `json:"count"`
	// Outcome is NoPlace, NewNode, ExistingNode, NodeInFlight or Ignored, as in `kubectl karpenter explain pod`.
	Outcome string `json:"outcome"`
	// Why is the reason, or the planned target.
	Why string `json:"why"`
}

// ordering is a column by which nodes can be sorted.
type ordering struct {
	name    string
	compare func(a, b *Node) int
}

var orders = []ordering{
	{"name", func(a, b *Node) int { return strings.Compare(a.Name, b.Name) }},
	{"cpu", func(a, b *Node) int { return cmp.Compare(b.CPU, a.CPU) }},
	{"memory", func(a, b *Node) int { return cmp.Compare(b.Memory, a.Memory) }},
	{"pods", func(a, b *Node) int { return cmp.Compare(b.Pods, a.Pods) }},
	{"price", func(a, b *Node) int { return cmp.Compare(b.PricePerHour, a.PricePerHour) }},
	{"age", func(a, b *Node) int { return cmp.Compare(b.Age, a.Age) }},
	{"pool", func(a, b *Node) int { return strings.Compare(a.NodePool, b.NodePool) }},
	{"type", func(a, b *Node) int { return strings.Compare(a.InstanceType, b.InstanceType) }},
	{"zone", func(a, b *Node) int { return strings.Compare(a.Zone, b.Zone) }},
	{"state", func(a, b *Node) int { return strings.Compare(a.State, b.State) }},
}

// Orders returns the names that Sort accepts.
func Orders() []string {
	names := make([]string, len(orders))
	for i, o := range orders {
		names[i] = o.name
	}
	return names
}

// Sort sorts nodes by a column, and by name for equal values. Amounts are in descending order. reverse reverses the
// order. An unknown order means the order of names.
func Sort(nodes []Node, by string, reverse bool) {
	at := max(0, slices.IndexFunc(orders, func(o ordering) bool { return o.name == by }))
	slices.SortFunc(nodes, func(a, b Node) int {
		order := cmp.Or(orders[at].compare(&a, &b), strings.Compare(a.Name, b.Name))
		if reverse {
			return -order
		}
		return order
	})
}

// matches reports whether a word of the node contains the text, ignoring case.
func (n *Node) matches(text string) bool {
	for _, word := range []string{n.Name, n.NodePool, n.InstanceType, n.Zone, n.CapacityType, n.State} {
		if strings.Contains(strings.ToLower(word), text) {
			return true
		}
	}
	return false
}

func (w *Waiting) matches(text string) bool {
	return strings.Contains(strings.ToLower(w.Pod+" "+w.Outcome+" "+w.Why), text)
}

// Filter returns the nodes, pods and pools that contain the text, and the pools of these nodes. An empty text matches
// all. The values are those of the matches, and Of has the totals. A pool that contains the text has the totals of all of
// its nodes. The lower bound is only known for the total.
func (f *Fleet) Filter(text string) *Fleet {
	kept := *f
	kept.Nodes, kept.Waiting, kept.Pools = slices.Clone(f.Nodes), slices.Clone(f.Waiting), slices.Clone(f.Pools)
	kept.Filtered = text
	if f.Bill != nil {
		kept.Bill = f.Bill.Filter(text)
	}
	if text = strings.ToLower(text); text == "" {
		return &kept
	}
	kept.whole = f
	kept.Nodes = slices.DeleteFunc(kept.Nodes, func(n Node) bool { return !n.matches(text) })
	kept.Waiting = slices.DeleteFunc(kept.Waiting, func(w Waiting) bool { return !w.matches(text) })
	kept.poolRows = matchingTotals(text, totals(f.Nodes, f.Pools), totals(kept.Nodes, f.Pools))
	kept.Pools = slices.DeleteFunc(kept.Pools, func(p Pool) bool {
		return !slices.ContainsFunc(kept.poolRows, func(row poolTotal) bool { return row.name == p.Name })
	})
	if len(kept.Nodes) == len(f.Nodes) {
		return &kept
	}
	kept.Of = &Whole{Nodes: len(f.Nodes), Pods: f.Pods, PricePerHour: f.PricePerHour}
	kept.Pods, kept.Unpriced, kept.LowerBoundPerHour = 0, 0, 0
	var sum Amounts
	var price float64
	managed := 0
	for i := range kept.Nodes {
		n := &kept.Nodes[i]
		kept.Pods += n.Pods
		sum.add(&n.Amounts)
		price += n.PricePerHour
		if n.Unpriced {
			kept.Unpriced++
		}
		if n.Unpriced || n.PricePerHour > 0 {
			managed++
		}
	}
	kept.PricePerHour = SumOf(price, managed, kept.Unpriced)
	kept.CPU, kept.Memory = part(sum.UsedCPU, sum.UsableCPU), part(sum.UsedMemory, sum.UsableMemory)
	return &kept
}

// billed returns the fleet whose totals are those of the rows of its bill: of the whole fleet, and with a filter the
// pods and the price of the rows beside it.
func (f *Fleet) billed() *Fleet {
	if f.whole == nil || f.Bill == nil || f.Bill.Shown == nil {
		return f
	}
	b := *f.whole
	b.Of = &Whole{Nodes: len(b.Nodes), Pods: b.Pods, PricePerHour: b.PricePerHour}
	b.Pods, b.LowerBoundPerHour = 0, 0
	unpriced := 0
	for i := range f.Bill.Rows {
		b.Pods += f.Bill.Rows[i].Pods
		unpriced += f.Bill.Rows[i].UnknownPrices
	}
	b.PricePerHour = SumOf(f.Bill.Shown.Float(), b.Pods, unpriced)
	return &b
}

// Names returns the nodes, and the claims without a node, as `kubectl get -o name` does.
func (f *Fleet) Names() []string {
	names := make([]string, len(f.Nodes))
	for i := range f.Nodes {
		kind := "node/"
		if state := f.Nodes[i].State; state == StateLaunching || state == StateLaunched {
			kind = "nodeclaim.karpenter.sh/"
		}
		names[i] = kind + f.Nodes[i].Name
	}
	return names
}

func part(used, usable int64) float64 {
	if usable <= 0 {
		return 0
	}
	return float64(used) / float64(usable)
}
