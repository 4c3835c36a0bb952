package fleetsim

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// Meter sums over the time.
type Meter struct {
	// Cost is what all machines cost, the price per node included, USD. A machine costs from its claim to its removal.
	Cost float64
	// PodHours are those of all pods, Pending those of pods without a node.
	PodHours, Pending float64
	// Longest is the longest time that a pod was pending.
	Longest time.Duration
	// Nodes are node hours.
	Nodes float64
}

// meter adds a time in which nothing changes.
func (l *Cluster) meter(d time.Duration) {
	l.Meter.Cost += float64(l.Cost()) / model.Nano * d.Hours()
	l.Meter.PodHours += float64(len(l.pods)) * d.Hours()
	l.Meter.Pending += float64(len(l.waiting)) * d.Hours()
	l.Meter.Nodes += float64(len(l.hosts)) * d.Hours()
	for _, p := range l.waiting {
		l.Meter.Longest = max(l.Meter.Longest, l.Now.Add(d).Sub(p.Created))
	}
}

// Cost returns the cost of the nodes and of the claims in flight, nano-USD per hour, with the price per node.
func (l *Cluster) Cost() int64 {
	var sum int64
	for _, h := range l.hosts {
		sum += h.price + l.opts.Placement.NodePriceOf(l.pools[h.Pool])
	}
	return sum
}

// Fresh returns the cost of the nodes that the engine launches for the same pods without nodes, nano-USD per hour.
func (l *Cluster) Fresh() (int64, error) {
	snap := l.Snapshot()
	p := placement.Schedule(snap.Without(slices.Collect(maps.Keys(l.hosts))...), l.opts.Placement)
	if len(p.Refused) > 0 {
		return 0, fmt.Errorf("a fresh fleet has no room for pod %s", p.Refused[0].Pods[0].Name)
	}
	var sum int64
	for i := range p.Claims {
		sum += p.Claims[i].Price() + l.opts.Placement.NodePriceOf(l.pools[p.Claims[i].Pool])
	}
	return sum, nil
}

// fail records the first failure.
func (l *Cluster) fail(format string, args ...any) {
	if l.failure == nil {
		l.failure = fmt.Errorf(format, args...)
	}
}

// Check returns an error if a node is overfull, or a pod is neither on a node nor pending.
func (l *Cluster) Check() error {
	placed := map[string]bool{}
	for name, h := range l.hosts {
		used := map[string]int64{}
		for _, p := range h.pods {
			placed[p.UID] = true
			for _, a := range p.Requests {
				used[a.Name] += a.Value
			}
		}
		for resource, amount := range used {
			if amount > h.room[resource] {
				return fmt.Errorf("node %s is overfull: %d of %d %s", name, amount, h.room[resource], resource)
			}
		}
	}
	for _, p := range l.waiting {
		placed[p.UID] = true
	}
	for uid, p := range l.pods {
		if !placed[uid] {
			return fmt.Errorf("pod %s is lost", p.Name)
		}
	}
	return nil
}
