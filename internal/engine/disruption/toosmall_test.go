package disruption_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestTypesShownTooSmall checks that consolidation does not replace a node by one of a type whose nodes have shown to be too
// small for the pods: the node would hold none of them.
func TestTypesShownTooSmall(t *testing.T) {
	const world = `type xlarge cpu=4 price=0.4
type 2xlarge cpu=8 price=0.8
pool p policy=WhenEmptyOrUnderutilized
node a pool=p type=2xlarge
pod a1 node=a cpu=3
`
	at := worldOf(t, world).snapshot(nil).Now
	room := func(namespace, shown string, at time.Time) pause.List {
		return pause.List{{Key: pause.Key{Reason: pause.Launch, Scope: "p room " + namespace}, Failures: 1, At: at, Shown: shown}}
	}
	for name, test := range map[string]struct {
		pauses   pause.List
		replaced bool
	}{
		"nothing":           {nil, true},
		"too small":         {room("default", "cpu=1500", at), false},
		"large enough":      {room("default", "cpu=500", at), true},
		"another namespace": {room("other", "cpu=1500", at), true},
		"long ago":          {room("default", "cpu=1500", at.Add(-2*time.Hour)), true},
	} {
		f := worldOf(t, world)
		f.pools[0].Pauses = test.pauses
		p := disruption.Propose(f.snapshot(nil), usual)
		if got := len(p.Commands) == 1 && len(p.Commands[0].Replacements) == 1; got != test.replaced {
			t.Errorf("%s: replaced: %t, want %t (%v)", name, got, test.replaced, p.Kept)
		}
		if !test.replaced && (len(p.Commands) > 0 || p.Kept[0].Node != "a" || p.Kept[0].Verdict.Code != plan.NoSaving) {
			t.Errorf("%s: %d commands, kept %v, want no saving for a", name, len(p.Commands), p.Kept)
		}
	}
}
