package interruption

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
)

// A decision that the brake of removals holds is forgotten: the notice of a spot interruption that follows is acted on, and so
// is the same decision once the brake lets go.
func TestHeldDecisionIsForgotten(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	hold, acted := true, []string{}
	w := &Watcher{done: map[string]past{}, opts: Options{Clock: clocktesting.NewFakeClock(now), Act: func(_ context.Context, d Decision) error {
		if hold && d.Kind == InstanceStatus {
			return fmt.Errorf("of %s: %w", d.Instance, ErrHeld)
		}
		acted = append(acted, string(d.Kind))
		return nil
	}}}
	ill := Decision{Kind: InstanceStatus, Instance: "i-1", Claim: Claim{Name: "c", UID: "u"}, Replace: true, Deadline: now}
	spot := Decision{Kind: SpotInterrupted, Instance: "i-1", Claim: ill.Claim, Replace: true, Deadline: now.Add(2 * time.Minute)}
	act := func(d Decision) {
		t.Helper()
		if err := w.act(t.Context(), d); err != nil {
			t.Errorf("%s: %v", d.Kind, err)
		}
	}
	act(ill)
	act(spot)
	hold = false
	act(ill)
	act(ill)
	if diff := cmp.Diff([]string{string(SpotInterrupted), string(InstanceStatus)}, acted); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
