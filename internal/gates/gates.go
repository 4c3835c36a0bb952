// Package gates reads the value of --feature-gates. The controller, and the commands that decide as the controller
// does, must accept the same gates.
//
//	"Name=true,Other=false" --Read--> the gates that are set, notes about those without effect
//
// It must not know what a gate switches.
package gates

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// known lists Karpenter's feature gates (https://karpenter.sh/docs/reference/settings/#feature-gates).
var known = []string{"ReservedCapacity", "SpotToSpotConsolidation", "NodeRepair", "StaticCapacity", "NodeOverlay", "CapacityBuffer"}

// Set holds the gates that were set to a value.
type Set map[string]bool

// Off reports whether a gate was set to false. A gate that is not set has Karpenter's default, which is true for all
// gates that callers pass.
func (s Set) Off(gate string) bool {
	on, set := s[gate]
	return set && !on
}

// Read parses the value of --feature-gates. It returns the gates that are set, and notes about unknown ones.
func Read(text string) (on Set, notes []string, err error) {
	on = Set{}
	for item := range strings.SplitSeq(text, ",") {
		if strings.TrimSpace(item) == "" {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimSpace(item), "=")
		yes, err := strconv.ParseBool(value)
		if err != nil {
			return nil, nil, fmt.Errorf("--feature-gates: %q, want Name=true or Name=false", item)
		}
		if !slices.Contains(known, name) {
			notes = append(notes, "feature gate "+name+" is not known and ignored")
		}
		on[name] = yes
	}
	return on, notes, nil
}
