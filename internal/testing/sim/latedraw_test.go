package sim

import (
	"slices"
	"strings"
	"testing"
)

// unsolved holds histories that fail, with what is known of the cause. docs/state.md lists what they show: who solves one
// removes it here and there.
var unsolved = map[uint64]string{
	Late + 12: "nothing in vain: for the pods of a CronJob that runs every three minutes, four nodes are launched in twelve minutes",
}

// TestLateHistories runs histories in worlds in which something is late.
func TestLateHistories(t *testing.T) {
	opts := Production()
	histories := uint64(14)
	if _, nightly := night(); nightly {
		histories = 300
	}
	seen := map[string]bool{"flips": false, "DaemonSet created-": false, "nothing is late any more": false}
	for seed := Late; seed < Late+histories; seed++ {
		r := Run(NewHistory(seed), opts)
		switch {
		case r.Failure != nil && unsolved[seed] != "":
			t.Logf("seed %d still fails: %v", seed, r.Failure)
		case r.Failure != nil:
			t.Logf("seed %d: %v", seed, r.Failure)
			report(t, NewHistory(seed))
		case unsolved[seed] != "":
			t.Errorf("seed %d passes: remove it from the unsolved histories and from docs/state.md", seed)
		}
		for what := range seen {
			seen[what] = seen[what] || slices.ContainsFunc(r.Trace, func(line string) bool { return strings.Contains(line, what) })
		}
	}
	for what, happened := range seen {
		if !happened {
			t.Errorf("no trace contains %q", what)
		}
	}
}
