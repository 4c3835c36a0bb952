package migrate

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// This file describes the migration of the Cluster Autoscaler's flags, and of the priorities of its expander
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/FAQ.md#what-are-the-parameters-to-ca).

// describe adds notes on the flags.
func (a *autoscaler) describe(groups []*nodeGroup) {
	for _, name := range slices.Sorted(maps.Keys(a.flags)) {
		value := strings.Join(a.flags[name], ", ")
		if flag, known := flagOf(name); known {
			a.note(Advice, "--"+name, "is %s; %s", value, flag.becomes)
		} else {
			a.note(Advice, "--"+name, "unknown flag with the value %s; ignored", value)
		}
	}
	a.unreadable()
	if len(groups) == 0 {
		a.note(Advice, "", "the input contains no node group; add the ClusterConfig of eksctl or nodes (kubectl get nodes -o yaml), or use --live")
	}
}

// unreadable adds notes on values that cannot be parsed, for which the flag's default is used.
func (a *autoscaler) unreadable() {
	isTime := func(value string) bool { _, err := time.ParseDuration(value); return err == nil }
	isNumber := func(value string) bool { _, err := strconv.ParseFloat(value, 64); return err == nil }
	isTruth := func(value string) bool { _, err := strconv.ParseBool(value); return err == nil }
	isCount := func(value string) bool { n, err := strconv.Atoi(value); return err == nil && n > 0 }
	for _, one := range []struct {
		flag, want, instead string
		is                  func(string) bool
	}{
		{"scale-down-unneeded-time", "a duration such as 10m", "treated as 10m", isTime},
		{"scale-down-enabled", "true or false", "treated as true", isTruth},
		{"scale-down-utilization-threshold", "a number from 0 to 1", "treated as 0.5", isNumber},
		{"max-scale-down-parallelism", "an integer above 0", "ignored", isCount},
		{"max-empty-bulk-delete", "an integer above 0", "ignored", isCount},
	} {
		if value := a.flag(one.flag, ""); value != "" && !one.is(value) {
			a.note(Impossible, "--"+one.flag, "is %s, want %s; %s", value, one.want, one.instead)
		}
	}
}

// expanderPriorities is the name of the ConfigMap of the expander priority.
const expanderPriorities = "cluster-autoscaler-priority-expander"

// ranks returns the weights of groups by the ConfigMap of the expander priority: 100 for the highest, then 90, 80
// ..., in smaller steps if there are more than ten.
func (m *migration) ranks(groups []*nodeGroup) map[*nodeGroup]int {
	weights := map[*nodeGroup]int{}
	if m.scaler == nil || !strings.Contains(m.scaler.flag("expander", ""), "priority") {
		return weights
	}
	read := false
	for _, i := range m.items {
		if i.kind == "ConfigMap" && i.name == expanderPriorities {
			read = true
			i.rank(groups, weights)
		}
	}
	if !read {
		m.scaler.noteFlag("--expander", "is priority, and the ConfigMap %s is not in the input; no NodePool gets a weight", expanderPriorities)
	}
	return weights
}

// rank adds the weights of groups from one ConfigMap.
func (i *item) rank(groups []*nodeGroup, weights map[*nodeGroup]int) {
	var table yaml.Node
	if err := yaml.Unmarshal([]byte(text(at(i.root, "data", "priorities"))),
		&table); err != nil || len(table.Content) == 0 || table.Content[0].Kind != yaml.MappingNode {
		i.note(Impossible, "data.priorities", "cannot be parsed, want lists of patterns by priority; no NodePool gets a weight")
		return
	}
	ranks := fields(table.Content[0])
	slices.SortFunc(ranks, func(a, b string) int { return number(b) - number(a) })
	step := 10
	if len(ranks) > 10 {
		step = max(1, 99/len(ranks))
	}
	for n, rank := range ranks {
		for _, pattern := range texts(at(table.Content[0], rank)) {
			form, err := regexp.Compile(pattern)
			if err != nil {
				i.note(Impossible, "data.priorities", "%s: %q is not a regular expression: %s", rank, pattern, err)
				continue
			}
			matched := false
			for _, g := range groups {
				if g.matches(form) {
					matched = true
					if weights[g] == 0 {
						weights[g] = max(100-step*n, 1)
					}
				}
			}
			if !matched {
				i.note(Advice, "data.priorities", "%s: %q matches no node group in the input", rank, pattern)
			}
		}
	}
}

// matches reports whether a pattern matches the group's own name or a name that eksctl and EKS derive from it.
func (g *nodeGroup) matches(form *regexp.Regexp) bool {
	called := append([]string{g.name, "eks-" + g.name + "-00000000-0000-0000-0000-000000000000"}, g.clouds...)
	if cluster := g.made["alpha.eksctl.io/cluster-name"]; cluster != "" {
		called = append(called, "eksctl-"+cluster+"-nodegroup-"+g.name+"-NodeGroup-000000000000")
	}
	return slices.ContainsFunc(called, form.MatchString)
}
