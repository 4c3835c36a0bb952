package sim

import "testing"

// TestNeutralFaults checks that changes with known faults still make plans dearer, in the histories that are listed with
// them: a change without a fault is tried in all histories.
func TestNeutralFaults(t *testing.T) {
	for _, change := range neutralChanges {
		for _, number := range change.faults {
			opts := Production()
			opts.Neutral = change.name
			if f := Run(NewHistory(numbered(number)), opts).Failure; f == nil || f.Property != Neutral {
				t.Errorf("history %d with %s: %v; this is no fault any more: remove the number", number, change.name, f)
			}
		}
	}
}
