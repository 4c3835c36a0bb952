package main

import (
	"strconv"
	"strings"
)

// gates lists Karpenter's feature gates (https://karpenter.sh/docs/reference/settings/#feature-gates), and how an
// enabled one is handled.
var gates = map[string]struct {
	refuse bool
	note   string
}{
	"ReservedCapacity":        {},
	"SpotToSpotConsolidation": {},
	"NodeRepair":              {},
	"StaticCapacity":          {},
	"NodeOverlay":             {refuse: true, note: "is on, but NodeOverlay is not supported"},
	"CapacityBuffer":          {refuse: true, note: "is on, but CapacityBuffer is not supported"},
}

// readGates parses the value of --feature-gates. It returns the enabled gates, and notes about unknown ones.
func readGates(text string) (on map[string]bool, notes []string, err error) {
	on = map[string]bool{}
	for item := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		yes, err := strconv.ParseBool(value)
		if err != nil {
			return nil, nil, usageErrorf("--feature-gates: %q, want Name=true or Name=false", item)
		}
		gate, known := gates[name]
		switch {
		case !known:
			notes = append(notes, "feature gate "+name+" is not known and ignored")
		case yes && gate.refuse:
			return nil, nil, usageErrorf("feature gate %s %s; set it to false", name, gate.note)
		}
		on[name] = yes
	}
	return on, notes, nil
}

// off reports whether a feature gate was set to false. A gate that is not set has Karpenter's default, which is true
// for all gates that callers pass.
func (o *controllerOptions) off(gate string) bool {
	on, set := o.on[gate]
	return set && !on
}
