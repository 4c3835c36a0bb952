package workload

import (
	"fmt"
	"slices"
	"strconv"
)

// fill has pending pods of 500 shapes and a tenth as many nodes of 32 to 64 processors, of all ten pools, each with one
// small pod of the owner "agent".
func fill(s spec) *Set {
	r := newRandom("fill-nodes", s.count, s.seed)
	types := shapedTypes(s)
	pools := make([]weighted[poolShape], len(manyPools))
	shares := map[string]float64{"gpu": 6, "spot-arm": 15, "spot-amd": 20, "default": 20}
	candidates := map[string][]bought{}
	for i, p := range manyPools {
		pools[i] = weighted[poolShape]{p, 7}
		if share, ok := shares[p.name]; ok {
			pools[i].weight = share
		}
		candidates[p.name] = p.offers(types)
	}
	agents := newPodList("agent", s.seed)
	var nodes []object
	for i := range s.count / 10 {
		pool := pickWeighted(r, pools)
		b := pick(r, candidates[pool.name])
		name := fmt.Sprintf("node-%05d", i)
		nodes = append(nodes, nodeObject(name, r.uid(), b.InstanceType, b.offering, pool))
		bind(agents.add(podShape{cpu: 100, memory: 128, labels: object{"app": "agent"}, owner: "agent"}), name)
	}
	return &Set{types: types, pools: manyPools, pods: shapedPods(s, "fill", s.partsOr(500)), nodes: nodes, bound: agents.items, existing: true}
}

// bought is a type in one of its offerings.
type bought struct {
	InstanceType
	offering Offering
}

// offers returns the types of 32 to 64 processors that the pool may launch, with each offering.
func (p poolShape) offers(types []InstanceType) []bought {
	var all []bought
	for _, t := range types {
		if cpus := t.Labels[labelCPU]; cpus != "32" && cpus != "48" && cpus != "64" {
			continue
		}
		for _, o := range t.Offerings {
			if p.allows(t, o) {
				all = append(all, bought{t, o})
			}
		}
	}
	return all
}

func (p poolShape) allows(t InstanceType, o Offering) bool {
	for _, r := range p.requirements {
		key := r["key"].(string)
		value, has := t.Labels[key]
		switch key {
		case LabelZone:
			value, has = o.Zone, true
		case LabelCapacity:
			value, has = o.CapacityType, true
		case LabelArch:
			value, has = t.Arch, true
		}
		if !meets(r, value, has) {
			return false
		}
	}
	return true
}

// meets evaluates the operators that the pools of this package use.
func meets(r object, value string, has bool) bool {
	values, _ := r["values"].([]string)
	switch r["operator"] {
	case "In":
		return has && slices.Contains(values, value)
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	}
	n, err := strconv.Atoi(value)
	bound, boundErr := strconv.Atoi(values[0])
	if !has || err != nil || boundErr != nil {
		return false
	}
	if r["operator"] == "Gt" {
		return n > bound
	}
	return n < bound
}
