package provision

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// These are the effective zones that are not names of zones.
const (
	zoneFlexible = "flexible" // more than one is possible
	zoneNone     = "none"     // none of the existing zones is possible
)

// pendingByZone returns the number of pending pods by the zone in which they must be placed, given their own and
// their volumes' requirements. The considered zones are those of available offerings and of nodes.
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
