package disruption_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestPick covers where the search stops: the saving counts, and where moves have a price, the last moves must save
// at least a quarter of the mean.
func TestPick(t *testing.T) {
	for _, c := range []struct {
		intent string
		trials []disruption.Trial
		want   int
	}{
		{"free moves go as far as anything is saved", []disruption.Trial{{10, 100, 0, 1e5}, {20, 101, 0, 2e5}}, 20},
		{"moves with a price do not", []disruption.Trial{{10, 100, 1, 1e5}, {20, 101, 2, 2e5}}, 10},
		{"what costs more than it saves is left alone", []disruption.Trial{{10, 100, 101, 1e5}}, 0},
		{"nothing saved, nothing done", []disruption.Trial{{10, 0, 0, 1e5}}, 0},
	} {
		if got := disruption.Pick(c.trials...); got != c.want {
			t.Errorf("%s: picked the first %d, want %d", c.intent, got, c.want)
		}
	}
}

// TestPaybackOfNothing checks that a pool with a very short payback forbids moves that have a price, however large
// the numbers become, and reports it. Free moves need no payback time.
func TestPaybackOfNothing(t *testing.T) {
	lines := []string{"pool p after=0s", "node a pool=p type=large", "pod u node=a", "pod v node=a", "pod w node=a", "pod x node=a",
		"node b pool=p type=large", "pod y node=b"}
	for _, c := range []struct {
		intent    string
		economics disruption.Economics
		moves     bool
	}{
		{"an hour", disruption.Economics{}, true},
		{"a nanosecond", disruption.Economics{Payback: time.Nanosecond, MovePrice: 1000 * model.Nano}, false},
		{"nothing", disruption.Economics{Payback: -1}, false},
		{"a nanosecond, free moves", disruption.Economics{Payback: time.Nanosecond, MovePrice: -1}, true},
		{"nothing, free moves", disruption.Economics{Payback: -1, MovePrice: -1}, true},
	} {
		p := disruption.Propose(costly(tell(t, lines)), disruption.Options{Economics: c.economics, SpotToSpot: true})
		if moves := len(p.Commands) > 0; moves != c.moves {
			t.Errorf("%s: %d commands, want some: %v", c.intent, len(p.Commands), c.moves)
		}
		if c.moves {
			continue
		}
		for _, k := range p.Kept {
			if k.Verdict.Code != plan.SavingTooSmall || k.Verdict.Need != plan.Unpayable {
				t.Errorf("%s: %s is kept because of %+v", c.intent, k.Node, k.Verdict)
			}
		}
	}
}

// costly gives every pod the default eviction cost.
func costly(snap *model.Snapshot) *model.Snapshot {
	for _, n := range snap.Nodes {
		for _, p := range n.Pods {
			p.EvictionCost = 1000
		}
	}
	return snap
}
