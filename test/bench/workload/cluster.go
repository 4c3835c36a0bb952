package workload

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	use         = 0.5 // of the larger of processor and memory
	constrained = 0.2 // share of Deployments with a constraint
)

// slot is the room for one pod on a node.
type slot struct{ node, cpu, memory int }

// cluster has nodes of 4 to 16 processors at about half use. A tenth of the Deployments are one per host and a tenth
// spread over zones; the existing pods respect that.
func cluster(s spec) *Set { return nodesInUse(s, 10) }

// crowded is like cluster with twice as many pods, half as large.
func crowded(s spec) *Set { return nodesInUse(s, 20) }

func nodesInUse(s spec, podsPerNode float64) *Set {
	r := newRandom("cluster", s.count, s.seed)
	var some []InstanceType
	for _, t := range catalog(400, 1, false) {
		if slices.Contains([]string{"4", "8", "16"}, t.Capacity["cpu"]) && t.Arch == "amd64" && strings.ContainsAny(t.Name[:1], "cmr") {
			some = append(some, t)
		}
	}
	c := clusterMaker{random: r, podsPerNode: podsPerNode, pods: newPodList("bound", s.seed)}
	for i := range s.count {
		c.addNode(i, some)
	}
	shuffle(r, c.slots)
	for d := 0; len(c.slots) > 0; d++ {
		c.addDeployment(d)
	}
	pending := newPodList("pending", s.seed)
	for j := range s.pending {
		owner := "new-" + strconv.Itoa(j%40)
		cpu, memory := someSize(r)
		pending.add(podShape{cpu: cpu, memory: memory, labels: object{"app": owner}, owner: owner})
	}
	return &Set{
		types: catalog(s.typesOr(400), 1, false), pods: pending.items, nodes: c.nodes, bound: c.pods.items, existing: true,
		pools: []poolShape{{name: "default", requirements: []object{requirement(LabelCapacity, "In", onDemand)}}},
	}
}

type clusterMaker struct {
	*random
	podsPerNode float64
	nodes       []object
	zones       []string // of the nodes
	pods        *podList
	slots       []slot
}

func (c *clusterMaker) addNode(i int, some []InstanceType) {
	t := pick(c.random, some)
	offerings := slices.DeleteFunc(slices.Clone(t.Offerings), func(o Offering) bool { return o.CapacityType != onDemand })
	o := t.Offerings[0]
	if len(offerings) > 0 {
		o = offerings[i%len(offerings)]
	}
	cpu, memory := allocatable(t)
	c.nodes = append(c.nodes, nodeObject(fmt.Sprintf("node-%05d", i), c.uid(), t, o, poolShape{name: "default"}))
	c.zones = append(c.zones, o.Zone)
	count := max(1, int(c.podsPerNode*(0.5+c.fraction())))
	usedCPU := float64(cpu) * use * c.between(0.7, 0.6)
	usedMemory := float64(memory) * use * c.between(0.5, 0.7)
	for range count {
		f := 0.5 + c.fraction()
		c.slots = append(c.slots, slot{i,
			max(50, int(usedCPU/float64(count)*f)/50*50),
			max(64, int(usedMemory/float64(count)*f)/64*64)})
	}
}

// addDeployment uses up to 20 of the last 40 slots, those that its constraint allows.
func (c *clusterMaker) addDeployment(d int) {
	kind := "plain"
	if c.chance(constrained / 2) {
		kind = "anti"
	} else if c.chance(constrained / 2) {
		kind = "zone"
	}
	perZone, seen := map[string]int{}, map[int]bool{}
	for _, z := range zones {
		perZone[z] = 0
	}
	start := max(0, len(c.slots)-40)
	var taken, rest []slot
	for _, s := range c.slots[start:] {
		zone := c.zones[s.node]
		fewest := slices.Min(slices.Collect(maps.Values(perZone)))
		if len(taken) >= 20 || kind == "anti" && seen[s.node] || kind == "zone" && perZone[zone] > fewest+1 {
			rest = append(rest, s)
			continue
		}
		taken, seen[s.node] = append(taken, s), true
		perZone[zone]++
	}
	c.slots = append(c.slots[:start], rest...)
	counts := slices.Collect(maps.Values(perZone))
	name := "app-" + strconv.Itoa(d)
	own := object{"app": name}
	shape := podShape{cpu: taken[0].cpu, memory: taken[0].memory, labels: own, owner: name}
	switch {
	case kind == "anti":
		shape.spec = podAffinity("podAntiAffinity", LabelHost, own)
	case kind == "zone" && slices.Max(counts)-slices.Min(counts) <= 5:
		shape.spec = object{"topologySpreadConstraints": []object{spread(LabelZone, own, 5)}}
	}
	for _, s := range taken {
		shape.cpu, shape.memory = s.cpu, s.memory
		bind(c.pods.add(shape), fmt.Sprintf("node-%05d", s.node))
	}
}

// allocatable returns millicores and MiB.
func allocatable(t InstanceType) (cpu, memory int) {
	left := func(resource string) int64 { return milli(t.Capacity[resource]) - milli(t.Overhead[resource]) }
	return int(left("cpu")), int(left("memory") / 1000 >> 20)
}

func milli(amount string) int64 {
	q := resource.MustParse(amount)
	return q.MilliValue()
}

// nodeObject returns a Ready node of a type and a pool.
func nodeObject(name, uid string, t InstanceType, o Offering, pool poolShape) object {
	cpu, memory := allocatable(t)
	labels := map[string]string{
		LabelType: t.Name, LabelZone: o.Zone, LabelCapacity: o.CapacityType, LabelArch: t.Arch, LabelOS: "linux", LabelHost: name,
		LabelPool: pool.name, "karpenter.sh/registered": "true", "karpenter.sh/initialized": "true",
	}
	maps.Copy(labels, t.Labels)
	maps.Copy(labels, pool.labels)
	free := map[string]string{
		"cpu": fmt.Sprintf("%dm", cpu), "memory": fmt.Sprintf("%dMi", memory), "pods": t.Capacity["pods"], "ephemeral-storage": "90Gi",
	}
	if gpus, ok := t.Capacity[resourceGPU]; ok {
		free[resourceGPU] = gpus
	}
	spec := object{"providerID": "perf:///" + o.Zone + "/" + name}
	if pool.taint != nil {
		spec["taints"] = []object{pool.taint}
	}
	return object{
		"apiVersion": "v1", "kind": "Node", "spec": spec,
		"metadata": object{"name": name, "uid": uid, "creationTimestamp": created, "labels": labels},
		"status": object{
			"capacity": t.Capacity, "allocatable": free, "conditions": []object{{"type": "Ready", "status": "True"}},
		},
	}
}
