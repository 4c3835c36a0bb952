// Package gates lists the features that users switch (Features), and reads the value of --feature-gates. The controller,
// and the commands that decide as the controller does, must accept the same gates.
//
//	"Name=true,Other=false" --Read--> the gates that are set, notes about those without effect
//
// It must not know what a gate switches.
package gates

import (
	"fmt"
	"strconv"
	"strings"
)

// Set holds the gates that were set to a value.
type Set map[string]bool

// On reports whether a gate is on: as it was set, or by default. It panics for a gate that does not exist.
func (s Set) On(gate string) bool {
	if on, set := s[gate]; set {
		return on
	}
	return find(gate).Default == "true"
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
		if find(name) == nil {
			notes = append(notes, "feature gate "+name+" is not known and ignored")
		}
		on[name] = yes
	}
	return on, notes, nil
}
