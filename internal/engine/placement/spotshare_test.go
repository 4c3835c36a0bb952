package placement_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/placement"
)

// TestRestsOfShares: there are twice as many slots as shares, and no more than the zones need for that.
func TestRestsOfShares(t *testing.T) {
	var got []string
	for _, at := range [][2]int{{1, 3}, {10, 3}, {33, 1}, {34, 1}, {50, 1}, {60, 1}, {99, 1}, {60, 3}, {60, 6}} {
		got = append(got, fmt.Sprintf("%d%% in %d: %d", at[0], at[1], placement.RestsOf(at[0], at[1])))
	}
	want := []string{
		"1% in 3: 67", "10% in 3: 7", "33% in 1: 8", "34% in 1: 6", "50% in 1: 4", "60% in 1: 4", "99% in 1: 4", "60% in 3: 2", "60% in 6: 1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("remainders (-want +got):\n%s", diff)
	}
}
