package plan_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// The time that a verdict names is not before the end of the pause, which may be within a second: a loop that wakes at that time
// finds the pause over.
func TestBackoffIsOverWhenItSays(t *testing.T) {
	for _, fraction := range []time.Duration{0, time.Nanosecond, 480 * time.Millisecond, time.Second - time.Nanosecond} {
		w := newWorld(t, 2)
		w.bind("web", "n1")
		w.pools[0].Backoffs = []model.Backoff{{Reason: string(plan.Underutilized), Failures: 1, At: noon.Add(-time.Second).Add(fraction)}}
		c := w.command("c1")
		c.Reason, c.Replacements = plan.Underutilized, []plan.NewClaim{{Name: "new", Pool: "p", PoolUID: "pool-uid"}}
		v := plan.NewGuard(w.snapshot()).Backoff(c)
		if v.Code != plan.ReplacementsFailed {
			t.Fatalf("%s: got code %d", fraction, v.Code)
		}
		w.now = time.Unix(v.Need, 0)
		if v := plan.NewGuard(w.snapshot()).Backoff(c); !v.OK() {
			t.Errorf("%s: at the time that the verdict named, code %d until %s", fraction, v.Code, time.Unix(v.Need, 0))
		}
	}
}
