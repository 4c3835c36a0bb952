package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

const (
	everydayTypes = 120
	budgetDefault = "10%" // of a pool that sets no budget
)

var (
	everydayCPU    = []int{100, 250, 500, 1000, 1500, 2000}
	everydayMemory = []int{256, 512, 1024, 2048, 4096}

	purchasedCPU    = []int{100, 250, 500, 750, 1000, 1500, 2000, 3000, 4000}
	purchasedMemory = []int{128, 256, 512, 1024, 2048, 4096, 8192, 16384}
)

// Fleet is a cluster of on-demand nodes of one pool. Its pods request processor and memory, and have no constraint.
type Fleet struct {
	Types []*Machine // that the pool allows, in the order of their lowest price
	Nodes []FleetNode
	Pods  []FleetPod
	Seed  int

	name     string
	catalog  []InstanceType
	features Features
}

// FleetNode is a node of a fleet.
type FleetNode struct {
	Name  string
	Type  *Machine
	Zone  string
	Price float64 // USD per hour
}

// FleetPod is a pod of a fleet.
type FleetPod struct {
	Name string
	Node string
	Room Room

	app string
}

// Machine is an instance type with what nodes of it allocate.
type Machine struct {
	InstanceType

	Room Room
}

// Room is an amount of millicores, MiB and pods.
type Room struct{ CPU, Memory, Pods int }

// Holds reports whether other fits.
func (r Room) Holds(other Room) bool {
	return other.CPU <= r.CPU && other.Memory <= r.Memory && other.Pods <= r.Pods
}

// Less returns the room without other.
func (r Room) Less(other Room) Room {
	return Room{r.CPU - other.CPU, r.Memory - other.Memory, r.Pods - other.Pods}
}

// Purchase generates 3 to 11 pods of 1 to 4 Deployments, without nodes.
func Purchase(seed int) *Fleet {
	r := newRandom("purchase", seed)
	f := &Fleet{name: "purchase", Seed: seed, catalog: catalog(everydayTypes, 1, false)}
	f.Types = machinesOf(f.catalog)
	pods, apps := 3+r.below(9), make([]Room, 1+r.below(4))
	for i := range apps {
		apps[i] = Room{pick(r, purchasedCPU), pick(r, purchasedMemory), 1}
	}
	for range pods {
		app := r.below(len(apps))
		name := "app-" + strconv.Itoa(app)
		f.Pods = append(f.Pods, FleetPod{Name: podName(name, len(f.Pods)), Room: apps[app], app: name})
	}
	return f
}

// Everyday generates a fleet of 2 to 6 Deployments. Its nodes have 2 to 16 processors, of which the pods request about
// half.
func Everyday(nodes, seed int) *Fleet {
	r := newRandom("everyday", nodes, seed)
	f := &Fleet{name: "everyday-" + strconv.Itoa(nodes), Seed: seed, catalog: catalog(everydayTypes, 1, false)}
	f.Types = machinesOf(f.catalog)
	some := slices.DeleteFunc(slices.Clone(f.Types), func(m *Machine) bool {
		return !slices.Contains([]string{"2", "4", "8", "16"}, m.Capacity["cpu"])
	})
	for i := range nodes {
		m := pick(r, some)
		o := pick(r, m.onDemand())
		f.Nodes = append(f.Nodes, FleetNode{fmt.Sprintf("node-%05d", i), m, o.Zone, float64(o.Price)})
	}
	f.addPods(r)
	return f
}

func (f *Fleet) addPods(r *random) {
	apps := make([]Room, 2+r.below(5))
	for i := range apps {
		apps[i] = Room{pick(r, everydayCPU), pick(r, everydayMemory), 1}
	}
	free, total := make([]Room, len(f.Nodes)), 0
	for i, n := range f.Nodes {
		free[i] = n.Type.Room
		total += n.Type.Room.CPU
	}
	for left := float64(total) * r.between(0.35, 0.3); left > 0; {
		app := r.below(len(apps))
		var fit []int
		for i := range free {
			if free[i].Holds(apps[app]) {
				fit = append(fit, i)
			}
		}
		if len(fit) == 0 {
			return
		}
		i, name := pick(r, fit), "app-"+strconv.Itoa(app)
		free[i] = free[i].Less(apps[app])
		left -= float64(apps[app].CPU)
		f.Pods = append(f.Pods, FleetPod{podName(name, len(f.Pods)), f.Nodes[i].Name, apps[app], name})
	}
}

// machinesOf returns the types of the pool's architecture.
func machinesOf(types []InstanceType) []*Machine {
	var all []*Machine
	for _, t := range types {
		m := &Machine{InstanceType: t}
		if t.Arch != "amd64" || len(m.onDemand()) == 0 {
			continue
		}
		m.Room.CPU, m.Room.Memory = allocatable(t)
		m.Room.Pods = int(milli(t.Capacity["pods"]) / 1000)
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b *Machine) int {
		return cmp.Or(cmp.Compare(a.Cheapest().Price, b.Cheapest().Price), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (m *Machine) onDemand() []Offering {
	return slices.DeleteFunc(slices.Clone(m.Offerings), func(o Offering) bool { return o.CapacityType != onDemand || !o.Available })
}

// Cheapest returns the on-demand offering of the lowest price, the first of several.
func (m *Machine) Cheapest() Offering {
	return slices.MinFunc(m.onDemand(), func(a, b Offering) int { return cmp.Compare(a.Price, b.Price) })
}

// NewNode returns a node of a type in a zone.
func (f *Fleet) NewNode(name, instanceType, zone string) (FleetNode, error) {
	for _, m := range f.Types {
		for _, o := range m.onDemand() {
			if m.Name == instanceType && o.Zone == zone {
				return FleetNode{name, m, zone, float64(o.Price)}, nil
			}
		}
	}
	return FleetNode{}, fmt.Errorf("node %s: the pool allows no %s in %s", name, instanceType, zone)
}

// Clone returns a fleet with nodes and pods of its own.
func (f *Fleet) Clone() *Fleet {
	c := *f
	c.Nodes, c.Pods = slices.Clone(f.Nodes), slices.Clone(f.Pods)
	return &c
}

// Free returns the free room of each node. It returns an error if a pod is on no node, a node is overfull, or two nodes
// have one name.
func (f *Fleet) Free() (map[string]Room, error) {
	free := map[string]Room{}
	for _, n := range f.Nodes {
		if _, ok := free[n.Name]; ok {
			return nil, fmt.Errorf("two nodes are named %s", n.Name)
		}
		free[n.Name] = n.Type.Room
	}
	for _, p := range f.Pods {
		room, ok := free[p.Node]
		if !ok {
			return nil, fmt.Errorf("pod %s: no node %s", p.Name, p.Node)
		}
		if !room.Holds(p.Room) {
			return nil, fmt.Errorf("pod %s: node %s is overfull", p.Name, p.Node)
		}
		free[p.Node] = room.Less(p.Room)
	}
	return free, nil
}

// Bound returns the workload of the fleet as it is, with a disruption budget.
func (f *Fleet) Bound(budget string) *Set {
	pools := f.pools(budget)
	nodes := make([]object, len(f.Nodes))
	for i, n := range f.Nodes {
		nodes[i] = nodeObject(n.Name, newRandom("uid", n.Name).uid(), n.Type.InstanceType, Offering{CapacityType: onDemand, Zone: n.Zone},
			f.poolOf(n.Type, pools))
	}
	s := &Set{name: f.name, seed: f.Seed, types: f.catalog, pools: pools, nodes: nodes, bound: f.objects(), existing: true}
	for i, p := range f.Pods {
		bind(s.bound[i], p.Node)
	}
	return s
}

// Pending returns the workload of the fleet's pods without its nodes.
func (f *Fleet) Pending() *Set {
	return &Set{name: f.name, seed: f.Seed, types: f.catalog, pools: f.pools(budgetDefault), pods: f.objects()}
}

func (f *Fleet) objects() []object {
	pods := newPodList("everyday", f.Seed)
	for _, p := range f.Pods {
		pods.add(podShape{cpu: p.Room.CPU, memory: p.Room.Memory, labels: object{"app": p.app}, owner: p.app, spec: f.rules(p.app)})
	}
	return pods.items
}

func everyday(s spec) *Set { return Everyday(s.count, s.seed).Bound(budgetDefault) }
