package workload

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
)

var teams = []string{"red", "green", "blue"}

// manyPools are ten pools with weights, taints, labels, limits and requirements.
var manyPools = []poolShape{
	{name: "gpu", weight: 100, taint: taint(resourceGPU, "true", "NoSchedule"), limits: map[string]string{"cpu": "20000"},
		requirements: []object{requirement(labelGPU, "Exists"), requirement(LabelCapacity, "In", onDemand)}},
	{name: "spot-arm", weight: 90,
		requirements: []object{requirement(LabelArch, "In", "arm64"), requirement(LabelCapacity, "In", spot), noGPU}},
	{name: "spot-amd", weight: 80,
		requirements: []object{requirement(LabelArch, "In", "amd64"), requirement(LabelCapacity, "In", spot), noGPU}},
	{name: "team-red", weight: 70, taint: taint("team", "red", "NoSchedule"), labels: map[string]string{"team": "red"},
		requirements: []object{anyCapacity, noGPU}},
	{name: "team-green", weight: 70, taint: taint("team", "green", "NoSchedule"), labels: map[string]string{"team": "green"},
		requirements: []object{anyCapacity, noGPU, requirement(LabelZone, "In", "zone-a", "zone-b")}},
	{name: "team-blue", weight: 60, taint: taint("team", "blue", "NoSchedule"), labels: map[string]string{"team": "blue"},
		requirements: []object{requirement(LabelCapacity, "In", onDemand), noGPU}},
	{name: "compute", weight: 50, taint: taint("workload", "compute", "NoSchedule"), labels: map[string]string{"workload": "compute"},
		requirements: []object{requirement(LabelCapacity, "In", onDemand), requirement(labelCPU, "Gt", "7"), noGPU}},
	{name: "memory", weight: 40, taint: taint("workload", "memory", "NoSchedule"), labels: map[string]string{"workload": "memory"},
		requirements: []object{anyCapacity, requirement(labelCPU, "Lt", "65"), noGPU}},
	{name: "prefer", weight: 30, taint: taint("soft", "true", "PreferNoSchedule"),
		requirements: []object{requirement(LabelCapacity, "In", onDemand), noGPU}},
	{name: "default", requirements: []object{anyCapacity, noGPU}},
}

var (
	noGPU       = requirement(labelGPU, "DoesNotExist")
	anyCapacity = requirement(LabelCapacity, "In", onDemand, spot)
)

var shapeCPU = []weighted[int]{
	{100, 3}, {250, 4}, {500, 5}, {750, 2}, {1000, 4}, {1500, 2}, {2000, 3}, {4000, 2}, {8000, 1}, {16000, .3},
}

// plainFamilies returns the families without accelerators, with their architecture, in order.
func plainFamilies(types []InstanceType) [][2]string {
	var all [][2]string
	for _, t := range types {
		if _, gpu := t.Labels[labelGPU]; !gpu {
			all = append(all, [2]string{t.Labels[labelFamily], t.Arch})
		}
	}
	slices.SortFunc(all, func(a, b [2]string) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return slices.Compact(all)
}

// someShape returns a random shape of pod: size, selectors, tolerations.
func someShape(r *random, families [][2]string) podShape {
	s := podShape{cpu: pickWeighted(r, shapeCPU)}
	perCPU := pick(r, []float64{0.5, 1, 2, 4, 8})
	s.memory = int(float64(s.cpu)*perCPU*r.between(0.8, 0.4)) + 64
	k := r.fraction()
	if k < 0.02 {
		s.gpu, s.spec = true, object{"tolerations": []object{toleration(resourceGPU, "true")}}
		return s
	}
	selector := map[string]string{}
	var tolerations []object
	switch {
	case k < 0.20:
		selector["team"] = pick(r, teams)
		tolerations = append(tolerations, toleration("team", selector["team"]))
	case k < 0.30:
		selector["workload"] = pick(r, []string{"compute", "memory"})
		tolerations = append(tolerations, toleration("workload", selector["workload"]))
		s.cpu = min(s.cpu, 8000)
	}
	selectOffering(r, selector)
	s.spec = object{}
	if expressions := someExpressions(r, selector, families); len(expressions) > 0 {
		s.spec["affinity"] = nodeAffinity(expressions)
	}
	if len(selector) > 0 {
		s.spec["nodeSelector"] = selector
	}
	if len(tolerations) > 0 {
		s.spec["tolerations"] = tolerations
	}
	return s
}

// selectOffering adds architecture, zone and capacity type to some selectors, only with values that the pool of the
// team or workload has.
func selectOffering(r *random, selector map[string]string) {
	if r.chance(0.30) {
		selector[LabelArch] = pickWeighted(r, []weighted[string]{{"amd64", 7}, {"arm64", 3}})
	}
	if r.chance(0.15) {
		of := zones
		if selector["team"] == "green" {
			of = zones[:2]
		}
		selector[LabelZone] = pick(r, of)
	}
	if r.chance(0.20) && selector["team"] != "blue" && selector["workload"] != "compute" {
		selector[LabelCapacity] = pickWeighted(r, []weighted[string]{{onDemand, 6}, {spot, 4}})
	}
}

func someExpressions(r *random, selector map[string]string, families [][2]string) []object {
	var expressions []object
	if r.chance(0.20) {
		arch, restricted := selector[LabelArch]
		var of []string
		for _, f := range families {
			if !restricted || f[1] == arch {
				of = append(of, f[0])
			}
		}
		var names []string
		for range 6 {
			names = append(names, pick(r, of))
		}
		expressions = append(expressions, requirement(labelFamily, "In", distinct(names)...))
	}
	if r.chance(0.10) {
		expressions = append(expressions, requirement(labelCPU, "Lt", pick(r, []string{"33", "65", "97"})))
	}
	if r.chance(0.05) {
		expressions = append(expressions, requirement(labelSize, "NotIn", "large", "xlarge"))
	}
	return expressions
}

// popularity is the distribution of pods over shapes: shape i has a frequency proportional to (1+i)^-0.6.
type popularity []float64

func newPopularity(shapes int) popularity {
	sums, sum := make(popularity, shapes), 0.0
	for i := range sums {
		sum += 1 / math.Pow(float64(1+i), 0.6)
		sums[i] = sum
	}
	return sums
}

func (p popularity) draw(r *random) int {
	return sort.SearchFloat64s(p, r.fraction()*p[len(p)-1])
}

func heterogeneous(s spec) *Set {
	return &Set{types: shapedTypes(s), pools: manyPools, pods: shapedPods(s, "het", s.partsOr(500))}
}

func shapedTypes(s spec) []InstanceType { return catalog(s.typesOr(800), 2, true) }

// shapedPods returns pending pods of s.parts shapes.
func shapedPods(s spec, name string, count int) []object {
	r, pods := newRandom(name, s.count, s.seed), newPodList(name, s.seed)
	families := plainFamilies(shapedTypes(s))
	shapes := make([]podShape, count)
	for i := range shapes {
		shapes[i] = someShape(r, families)
		shapes[i].owner = "shape-" + strconv.Itoa(i)
		shapes[i].labels = object{"app": shapes[i].owner}
	}
	popular := newPopularity(count)
	for range s.count {
		pods.add(shapes[popular.draw(r)])
	}
	return pods.items
}
