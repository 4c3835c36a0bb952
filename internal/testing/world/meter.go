package world

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// Meter sums over the time.
type Meter struct {
	// Cost is what all machines cost, the price per node included, USD. A machine costs from its launch to its end.
	Cost float64
	// PodHours are those of all pods, Pending those of pods without a node.
	PodHours, Pending float64
	// Longest is the longest time that a pod was pending.
	Longest time.Duration
	// Nodes are machine hours.
	Nodes float64
}

// Tally counts events.
type Tally struct {
	// Moved are the pods evicted for commands, Interrupted those evicted from other nodes.
	Moved, Interrupted int
	// Bought are the nodes launched for pending pods.
	Bought int
}

// meter adds a time in which nothing changes.
func (w *World) meter(d time.Duration) {
	w.Meter.Cost += w.Cost() * d.Hours()
	w.Meter.PodHours += float64(len(w.api.shelves.of(kindOf(&corev1.Pod{})).objects)) * d.Hours()
	w.Meter.Pending += float64(len(w.kube.waiting)) * d.Hours()
	w.Meter.Nodes += float64(len(w.provider.machines)) * d.Hours()
	for _, p := range w.kube.waiting {
		w.Meter.Longest = max(w.Meter.Longest, w.Clock.now.Add(d).Sub(p.CreationTimestamp.Time))
	}
}

// Cost returns the cost of the machines, USD per hour, with the price per node.
func (w *World) Cost() float64 {
	var sum int64
	for _, m := range w.provider.machines {
		sum += m.price
	}
	return float64(sum) / model.Nano
}

// nodePrice returns the price per node, nano-USD per hour.
func (w *World) nodePrice() int64 {
	return w.config.Disruption.Placement.NodePriceOf(&model.PoolSpec{})
}

// Fresh returns the cost of the nodes that the engine launches for the same pods without nodes, USD per hour.
func (w *World) Fresh() (float64, error) {
	snap := w.Snapshot()
	names := make([]string, len(snap.Nodes))
	for i, n := range snap.Nodes {
		names[i] = n.Name
	}
	p := placement.Schedule(snap.Without(names...), w.config.Disruption.Placement)
	if len(p.Refused) > 0 {
		return 0, fmt.Errorf("a fresh fleet has no room for pod %s", p.Refused[0].Pods[0].Name)
	}
	var sum int64
	for i := range p.Claims {
		sum += p.Claims[i].Price() + w.nodePrice()
	}
	return float64(sum) / model.Nano, nil
}

// Check returns an error if a property does not hold so far, a node is overfull, or a pod is neither on a node nor pending.
func (w *World) Check() error {
	if w.failure != nil {
		return w.failure
	}
	for _, h := range w.kube.sorted() {
		for resource, amount := range h.used {
			if amount > h.room[resource] {
				return fmt.Errorf("node %s is overfull: %d of %d %s", h.Name, amount, h.room[resource], resource)
			}
		}
	}
	for _, p := range w.Pods() {
		if p.Spec.NodeName != "" && w.kube.hosts[p.Spec.NodeName] == nil {
			return fmt.Errorf("pod %s is lost", p.Name)
		}
	}
	return nil
}

// Spot returns the names of the nodes of spot capacity that take pods, in order.
func (w *World) Spot() []string {
	var names []string
	for _, h := range w.kube.sorted() {
		spot := h.Labels[karpv1.LabelCapacityType] == karpv1.CapacityTypeSpot
		if spot && h.Labels[karpv1.LabelInitialized] == "true" && h.DeletionTimestamp.IsZero() {
			names = append(names, h.Name)
		}
	}
	return names
}
