package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// HoursPerMonth is that of bills.
const HoursPerMonth = bill.HoursPerMonth

// Fleet is the nodes of a cluster with their pods. Money is USD per hour.
type Fleet struct {
	At    time.Time
	Nodes []Node
	// Workloads are the controllers of pods, by key. Pods refer to them by index.
	Workloads []Workload
	// Waiting are the pods without a node.
	Waiting []Pod
}

// Workload is a controller of pods, or a pod without one.
type Workload struct {
	Namespace string
	Kind      string
	Name      string
	// Pods is the number of its pods on nodes.
	Pods int
}

// Key returns NAMESPACE/NAME (KIND).
func (w Workload) Key() string {
	if w.Kind == "" {
		return w.Namespace + "/" + w.Name
	}
	return fmt.Sprintf("%s/%s (%s)", w.Namespace, w.Name, w.Kind)
}

// Node is a node, or a claim without a node.
type Node struct {
	Name         string
	Pool         string
	Type         string
	Zone         string
	CapacityType string
	State        string
	// CPU and Memory are the allocatable amounts, in millicores and bytes; the shares are what pods request of them,
	// 0 to 1, and above 1 if overcommitted.
	CPU, Memory           int64
	CPUShare, MemoryShare float64
	// Price is 0 if it is unknown, or the node is not managed.
	Price    float64
	Managed  bool
	Unpriced bool
	// Age is 0 if it is unknown.
	Age     time.Duration
	Drifted string
	Pods    []Pod
	// Code and Why are why the node is kept; empty before the decision is made, and for nodes without a claim. Saved
	// is how a step that removes the node is named.
	Code, Why string
	// Change is what a plan does with the node: Stays, Added or Removed.
	Change Change
	// Other says that a filter does not select the node.
	Other bool
}

// Pod is a pod. Its namespace is that of its workload.
type Pod struct {
	Name     string
	Workload int
	// Share is the larger of its requests of cpu and memory, as a part of what the node has.
	Share float64
}

// Change is what a plan does with a node.
type Change uint8

// The changes of a node.
const (
	Stays Change = iota
	Added
	Removed
)

// String returns the change in a word.
func (c Change) String() string { return [...]string{"stays", "added", "removed"}[c] }

// Share returns the larger of the shares of cpu and memory.
func (n *Node) Share() float64 { return max(n.CPUShare, n.MemoryShare) }

// Waste returns the price of the part that no pod requests, USD per hour.
func (n *Node) Waste() float64 { return n.Price * max(0, 1-n.Share()) }

// Normalize sorts the nodes by pool and name, the workloads by key, and the pods of each node by workload and share.
// Everything that is derived from a fleet expects this order.
func (f *Fleet) Normalize() {
	order := make([]int, len(f.Workloads))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(f.Workloads[a].Key(), f.Workloads[b].Key()) })
	sorted, at := make([]Workload, len(order)), make([]int, len(order))
	for i, old := range order {
		sorted[i], at[old] = f.Workloads[old], i
	}
	f.Workloads = sorted
	for i := range f.Nodes {
		pods := slices.Clone(f.Nodes[i].Pods)
		for j := range pods {
			pods[j].Workload = at[pods[j].Workload]
		}
		slices.SortFunc(pods, func(a, b Pod) int {
			return cmp.Or(cmp.Compare(a.Workload, b.Workload), cmp.Compare(b.Share, a.Share))
		})
		f.Nodes[i].Pods = pods
	}
	f.Waiting = slices.Clone(f.Waiting)
	for i := range f.Waiting {
		f.Waiting[i].Workload = at[f.Waiting[i].Workload]
	}
	slices.SortFunc(f.Nodes, func(a, b Node) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Name, b.Name))
	})
}

// Price returns the price of the nodes with known prices, and the number of managed nodes without one.
func (f *Fleet) Price() (usd float64, unpriced int) {
	for i := range f.Nodes {
		usd += f.Nodes[i].Price
		if f.Nodes[i].Unpriced {
			unpriced++
		}
	}
	return usd, unpriced
}

// Cost compares the price of the fleet with what its pods need. Money is USD per hour.
type Cost struct {
	Nodes    int     `json:"nodes"`
	Pods     int     `json:"pods"`
	Price    float64 `json:"pricePerHour"`
	Unpriced int     `json:"unknownPrices,omitempty"`
	// Bound is a lower bound for any plan that keeps the nodes that must be kept.
	Bound float64 `json:"lowerBoundPerHour"`
	// Fresh is the price of the nodes that would be launched for the same pods if no managed node existed, and
	// FreshNodes their number. FreshWithout is the number of pods that have no place then.
	Fresh        float64 `json:"freshPerHour"`
	FreshNodes   int     `json:"freshNodes"`
	FreshWithout int     `json:"freshUnschedulable,omitempty"`
	// Pending is the number of pods that wait for a node, and NoPlace of those that no node can run.
	Pending int `json:"pendingPods"`
	NoPlace int `json:"unschedulablePods"`
}

// Over returns by how much the fleet is more expensive than a fresh one, as a part of the latter; 0 if that is free.
func (c *Cost) Over() float64 {
	if c.Fresh <= 0 {
		return 0
	}
	return c.Price/c.Fresh - 1
}
