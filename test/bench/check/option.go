package check

import (
	"fmt"
	"slices"
)

// judgeOptions checks that the further instance types of a node hold its pods in the same pool, zone and capacity
// type.
func (j *judge) judgeOptions() {
	known := map[string]*optionRule{}
	for _, n := range j.added {
		if n.pool == nil {
			continue
		}
		if len(n.options) > 0 && !slices.Contains(n.options, n.instanceType) {
			j.warn("typeNotAmongOptions", 1)
		}
		if !j.cheapestFirst(n) {
			j.warn("optionsNotCheapestFirst", 1)
		}
		for _, option := range sample(n.options) {
			if why := j.refusedOption(n, option, known); why != "" {
				j.problem("option cannot hold", fmt.Sprintf("%s: %s: %s", n.name, option, why))
			}
		}
	}
}

// sample returns at most optionsPerNode of the options, evenly distributed, with the first and the last.
func sample(options []string) []string {
	if len(options) <= optionsPerNode {
		return options
	}
	some := make([]string, optionsPerNode)
	for i := range some {
		some[i] = options[i*(len(options)-1)/(optionsPerNode-1)]
	}
	return some
}

func (j *judge) cheapestFirst(n *node) bool {
	last := 0.0
	for _, option := range n.options {
		price, sold := j.prices[offering{option, n.zone, n.capacityType}]
		if !sold {
			continue
		}
		if last > price*(1+tolerance) {
			return false
		}
		last = price
	}
	return true
}

// optionRule is the known part of an offering as a node of a pool.
type optionRule struct {
	labels  map[string]string
	allowed bool
	refused map[*placeRule][]string
}

func (j *judge) refusedOption(n *node, option string, known map[string]*optionRule) string {
	o := offering{option, n.zone, n.capacityType}
	if _, sold := j.prices[o]; !sold {
		return fmt.Sprintf("no %s %s in %s", option, n.capacityType, n.zone)
	}
	key := fmt.Sprint(n.pool.name, o)
	rule := known[key]
	if rule == nil {
		labels := j.labels(n.pool, o)
		rule = &optionRule{labels, allHold(n.pool.requirements, labels), map[*placeRule][]string{}}
		known[key] = rule
	}
	if !rule.allowed {
		return "pool requirement"
	}
	for _, p := range n.pods {
		kinds, asked := rule.refused[p.rule]
		if !asked {
			kinds = p.rule.refused(rule.labels, n.pool.taints, "")
			rule.refused[p.rule] = kinds
		}
		if len(kinds) > 0 {
			return kinds[0]
		}
	}
	if short := n.used.lacking(j.allocatable[option]); len(short) > 0 {
		return string(short[0])
	}
	return ""
}
