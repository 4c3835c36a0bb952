package top

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// Fleet is what there is to see. Money is USD per hour, shares are from 0 to 1.
type Fleet struct {
	// At is when it was read.
	At time.Time `json:"at"`
	// Nodes in the order of Sort; claims without a node are among them.
	Nodes []Node `json:"nodes"`
	// Waiting are the pods that wait for a node, those for which there is none first.
	Waiting []Waiting `json:"waiting"`
	// CPU and Memory are what pods ask for, of what all nodes have.
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	Pods   int     `json:"pods"`
	// PricePerHour is that of the nodes that claims stand behind; LowerBoundPerHour what they would cost at least, whoever
	// plans, while those that stay by rule stay.
	PricePerHour      float64 `json:"pricePerHour"`
	LowerBoundPerHour float64 `json:"lowerBoundPerHour"`
	// Of are the figures of the whole fleet where Filter left nodes out; nil where the others are those.
	Of *Whole `json:"of,omitempty"`
	// PriceSource says where prices are from and of when; empty for invented ones.
	PriceSource string `json:"priceSource,omitempty"`
}

// Whole is what a filter has left nodes out of.
type Whole struct {
	Nodes        int     `json:"nodes"`
	Pods         int     `json:"pods"`
	PricePerHour float64 `json:"pricePerHour"`
}

// Amounts are what pods ask for and what there is for pods: millicores, bytes.
type Amounts struct{ UsedCPU, UsableCPU, UsedMemory, UsableMemory int64 }

// Node is a node, or a claim that has none yet.
type Node struct {
	Name         string `json:"name"`
	NodePool     string `json:"nodePool,omitempty"`
	InstanceType string `json:"instanceType,omitempty"`
	Zone         string `json:"zone,omitempty"`
	CapacityType string `json:"capacityType,omitempty"`
	// State is launching, launched, registered, ready, cordoned, not ready, disrupted (its command has begun) or leaving.
	State  string  `json:"state"`
	CPU    float64 `json:"cpu"`
	Memory float64 `json:"memory"`
	Pods   int     `json:"pods"`
	// Places is how many pods the node may hold; 0 if unknown.
	Places int `json:"places"`
	// PricePerHour is 0 for nodes that are not ours, and where it is not known.
	PricePerHour float64 `json:"pricePerHour"`
	// Age in seconds.
	Age float64 `json:"ageSeconds"`
	// Amounts are zero for claims that have no node yet.
	Amounts Amounts `json:"-"`
}

// Waiting is pods that wait for the same reason.
type Waiting struct {
	// Pod is the first of them, Count their number.
	Pod   string `json:"pod"`
	Count int    `json:"count"`
	// Outcome is NoPlace, NewNode, ExistingNode, NodeInFlight or Ignored, as `karpenter explain pod` says.
	Outcome string `json:"outcome"`
	// Why is the reason, or where they go.
	Why string `json:"why"`
}

// ordering is a column that nodes can be sorted by.
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

// Orders are the names that Sort knows.
func Orders() []string {
	names := make([]string, len(orders))
	for i, o := range orders {
		names[i] = o.name
	}
	return names
}

// Sort orders nodes by a column, those of equal value by name; amounts descend. reverse turns that round. An order that it
// does not know is that of names.
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

// matches reports whether a word of the node contains the text, in whatever case.
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

// Filter keeps the nodes and pods in which the text occurs; an empty text keeps all. The figures are those of what is kept, and
// Of has those of all; what any plan costs at least is known of all only.
func (f *Fleet) Filter(text string) *Fleet {
	kept := *f
	kept.Nodes, kept.Waiting = slices.Clone(f.Nodes), slices.Clone(f.Waiting)
	if text = strings.ToLower(text); text == "" {
		return &kept
	}
	kept.Nodes = slices.DeleteFunc(kept.Nodes, func(n Node) bool { return !n.matches(text) })
	kept.Waiting = slices.DeleteFunc(kept.Waiting, func(w Waiting) bool { return !w.matches(text) })
	if len(kept.Nodes) == len(f.Nodes) {
		return &kept
	}
	kept.Of = &Whole{Nodes: len(f.Nodes), Pods: f.Pods, PricePerHour: f.PricePerHour}
	kept.Pods, kept.PricePerHour, kept.LowerBoundPerHour = 0, 0, 0
	var sum Amounts
	for i := range kept.Nodes {
		n := &kept.Nodes[i]
		kept.Pods += n.Pods
		kept.PricePerHour += n.PricePerHour
		sum.UsedCPU, sum.UsableCPU = sum.UsedCPU+n.Amounts.UsedCPU, sum.UsableCPU+n.Amounts.UsableCPU
		sum.UsedMemory, sum.UsableMemory = sum.UsedMemory+n.Amounts.UsedMemory, sum.UsableMemory+n.Amounts.UsableMemory
	}
	kept.CPU, kept.Memory = part(sum.UsedCPU, sum.UsableCPU), part(sum.UsedMemory, sum.UsableMemory)
	return &kept
}

func part(used, usable int64) float64 {
	if usable <= 0 {
		return 0
	}
	return float64(used) / float64(usable)
}
