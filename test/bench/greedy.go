package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// leastSaving is what a removal of greedy must save, in USD per hour.
const leastSaving = 0.005

// removal is the removal of one node. Pods that fit no other node move to one new node.
type removal struct {
	saving float64
	node   string
	homes  map[int]string // pods by their index; "" for the new node
	added  *workload.Machine
}

// greedy makes a fleet cheaper in the simplest way, for comparison: it removes the node whose removal saves most until
// none saves half a cent an hour. It knows no budget, no price of moving and no minimum stay.
func greedy(f *workload.Fleet) (*workload.Fleet, error) {
	f = f.Clone()
	for step := 0; ; step++ {
		free, err := f.Free()
		if err != nil {
			return nil, err
		}
		var best *removal
		for _, n := range f.Nodes {
			if r := removalOf(f, n, free); r != nil && (best == nil || r.saving > best.saving) {
				best = r
			}
		}
		if best == nil {
			return f, nil
		}
		best.apply(f, "greedy-"+strconv.Itoa(step))
	}
}

// removalOf returns the removal of a node with its largest pods first, each onto the first node that holds it, or nil if
// that saves too little.
func removalOf(f *workload.Fleet, n workload.FleetNode, before map[string]workload.Room) *removal {
	free := make([]workload.Room, len(f.Nodes))
	for i, other := range f.Nodes {
		if other.Name != n.Name {
			free[i] = before[other.Name]
		}
	}
	r := &removal{node: n.Name, saving: n.Price + nodePrice, homes: map[int]string{}}
	var rest workload.Room
	for _, p := range largestFirst(f, n.Name) {
		room := f.Pods[p].Room
		if i := slices.IndexFunc(free, func(r workload.Room) bool { return r.Holds(room) }); i >= 0 {
			free[i], r.homes[p] = free[i].Less(room), f.Nodes[i].Name
			continue
		}
		r.homes[p] = ""
		rest = workload.Room{CPU: rest.CPU + room.CPU, Memory: rest.Memory + room.Memory, Pods: rest.Pods + room.Pods}
	}
	if rest.Pods > 0 {
		i := slices.IndexFunc(f.Types, func(m *workload.Machine) bool { return m.Room.Holds(rest) })
		if i < 0 {
			return nil
		}
		r.added = f.Types[i]
		r.saving -= float64(r.added.Cheapest().Price) + nodePrice
	}
	if r.saving <= leastSaving {
		return nil
	}
	return r
}

// largestFirst returns the indexes of the pods of a node.
func largestFirst(f *workload.Fleet, node string) []int {
	var pods []int
	for i, p := range f.Pods {
		if p.Node == node {
			pods = append(pods, i)
		}
	}
	slices.SortFunc(pods, func(i, j int) int {
		a, b := f.Pods[i].Room, f.Pods[j].Room
		return cmp.Or(cmp.Compare(b.CPU, a.CPU), cmp.Compare(b.Memory, a.Memory), cmp.Compare(i, j))
	})
	return pods
}

func (r *removal) apply(f *workload.Fleet, name string) {
	for p, home := range r.homes {
		f.Pods[p].Node = cmp.Or(home, name)
	}
	f.Nodes = slices.DeleteFunc(f.Nodes, func(n workload.FleetNode) bool { return n.Name == r.node })
	if r.added != nil {
		o := r.added.Cheapest()
		f.Nodes = append(f.Nodes, workload.FleetNode{Name: name, Type: r.added, Zone: o.Zone, Price: float64(o.Price)})
	}
}
