package removal_test

import (
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/controller/removal"
)

// Strays are no machines of a claim: the text of a pause that they cause counts them, and the machines of claims apart.
func TestWhyWithStrays(t *testing.T) {
	b := newBench(t, map[string]int{"a": 0})
	for i := range 5 {
		if _, err := b.brake.Ask(t.Context(), removal.Case{Machine: machine("stray", i), Cause: removal.CauseStray, Cloud: removal.Alive}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.brake.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	var said []string
	for range len(b.sink.Events) {
		said = append(said, <-b.sink.Events)
	}
	const want = "4 machines of the fleet were to be removed within 10m0s without being asked for (removed: 3, Stray: 1), and NodeClaims show 0 now; more than 3 are not removed"
	if text := strings.Join(said, "\n"); !strings.Contains(text, want) {
		t.Errorf("the events are %q, want %q", text, want)
	}
}
