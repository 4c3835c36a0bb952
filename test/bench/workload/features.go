package workload

import (
	"fmt"
	"strconv"
)

// Features are parts of an everyday cluster that leave the best plan for a fleet as it is.
type Features struct {
	Name string
	// Limits are those of each pool, which no plan reaches.
	Limits map[string]string
	// Pools is the number of pools; 0 for one. Of more, two divide the instance types by their processors, and the others
	// have taints that no pod tolerates.
	Pools int
	// Skew is the maxSkew of a spread over zones of each Deployment's pods; 0 for none.
	Skew int
}

const (
	// smallCPU is the largest number of processors of types of the first of several pools.
	smallCPU = 8
	large    = "large"
)

// With returns the fleet with features.
func (f *Fleet) With(features Features) *Fleet {
	c := f.Clone()
	c.features = features
	return c
}

// pools returns the pools of a fleet; the first is the default one.
func (f *Fleet) pools(budget string) []poolShape {
	first := poolShape{name: "default", budget: budget, limits: f.features.Limits, requirements: []object{
		requirement(LabelCapacity, "In", onDemand), requirement(LabelArch, "In", "amd64"),
	}}
	if f.features.Pools < 2 {
		return []poolShape{first}
	}
	part := func(name, operator string, cpus int) poolShape {
		p := first
		p.name = name
		p.requirements = append(append([]object{}, first.requirements...), requirement(labelCPU, operator, strconv.Itoa(cpus)))
		return p
	}
	all := []poolShape{part(first.name, "Lt", smallCPU+1), part(large, "Gt", smallCPU)}
	for i := 2; i < f.features.Pools; i++ {
		team := first
		team.name = fmt.Sprintf("team-%d", i)
		team.taint = taint("team", strconv.Itoa(i), "NoSchedule")
		all = append(all, team)
	}
	return all
}

// poolOf returns the pool of a node.
func (f *Fleet) poolOf(m *Machine, pools []poolShape) poolShape {
	if cpus, err := strconv.Atoi(m.Labels[labelCPU]); len(pools) > 1 && err == nil && cpus > smallCPU {
		return pools[1]
	}
	return pools[0]
}

// rules returns the part of the spec of an app's pods that the features give them.
func (f *Fleet) rules(app string) object {
	if f.features.Skew == 0 {
		return nil
	}
	return object{"topologySpreadConstraints": []object{spread(LabelZone, object{"app": app}, f.features.Skew)}}
}
