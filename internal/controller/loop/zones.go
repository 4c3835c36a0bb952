package loop

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Effective zones besides names (core specification 3.12).
const (
	zoneFlexible = "flexible" // more than one will do
	zoneNone     = "none"     // no zone that there is will do
)

// pendingByZone counts the pending pods by the zone that they have to be in, for what they and their volumes require. Zones
// are those of what can be bought and of nodes.
func pendingByZone(snap *model.Snapshot) map[string]int {
	counts, zones := map[string]int{}, zonesOf(snap)
	for _, g := range snap.Groups {
		counts[effectiveZone(snap.Space, g, zones)] += len(g.Pods)
	}
	return counts
}

func zonesOf(snap *model.Snapshot) []string {
	var zones []string
	for _, pool := range snap.Pools {
		if pool.Types == nil {
			continue
		}
		for i := range pool.Types.Classes {
			zones = append(zones, pool.Types.Classes[i].Zone)
		}
	}
	for _, n := range snap.Nodes {
		if zone := n.Labels[model.LabelZone]; zone != "" {
			zones = append(zones, zone)
		}
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

func effectiveZone(space *label.Space, g *model.Group, zones []string) string {
	found := ""
	for _, zone := range zones {
		in := label.Requirement{Key: model.LabelZone, Operator: label.In, Values: []string{zone}}
		if !space.Mentioned(in) || !slices.ContainsFunc(g.Rows, func(row label.Row) bool { return space.Narrow(slices.Clone(row), in) }) {
			continue
		}
		if found != "" {
			return zoneFlexible
		}
		found = zone
	}
	if found == "" {
		return zoneNone
	}
	return found
}
