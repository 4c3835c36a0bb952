package picture

import (
	"fmt"
	"slices"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestReasons checks that each code of the engine either has words and a look of its own or is one with which no node is kept.
func TestReasons(t *testing.T) {
	keepsNone := []plan.Code{
		plan.OK,
		// About pods.
		plan.PodInvalid, plan.PodUnsupported, plan.PodWaiting, plan.PodContradiction, plan.NoPools, plan.TaintNotTolerated, plan.LabelUndefined,
		plan.LabelExcluded, plan.TypesExcluded, plan.ResourceTooLarge, plan.CombinationTooLarge, plan.SpreadExceeded, plan.AffinityUnmet,
		plan.AntiAffinityBlocked, plan.MinValuesUnmet, plan.ReservationTaken, plan.TypesSpared, plan.NoPlaceFound, plan.HostPortTaken,
		plan.NodeFull, plan.NoNewNode, plan.TooManyDomains,
		// About a command in progress.
		plan.NodeGone, plan.NodeNotDrifted, plan.ReplacementChanged, plan.PodGone, plan.ReplacementLost, plan.DeadlinePassed,
		plan.CommandUnreadable,
	}
	known := map[string]bool{"Proposed": true, notManaged: true}
	for code := plan.OK; ; code++ {
		name := explain.Code(code)
		if name == fmt.Sprintf("Code%d", code) { // after the last one: a test of explain has it that each has a name
			break
		}
		known[name] = true
		if has := reasonOf(name) != otherReason; has == slices.Contains(keepsNone, code) {
			t.Errorf("%s has words: %t", name, has)
		}
	}
	looks := map[Key]string{{Role: otherReason.role, Pattern: otherReason.pattern}: otherReason.code}
	for _, r := range reasons {
		if look := (Key{Role: r.role, Pattern: r.pattern}); looks[look] != "" {
			t.Errorf("%s looks like %s", r.code, looks[look])
		} else {
			looks[look] = r.code
		}
		if !known[r.code] || r.text == "" {
			t.Errorf("%q is no code, or without words", r.code)
		}
	}
}
