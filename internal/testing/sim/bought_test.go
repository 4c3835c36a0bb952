package sim

import "testing"

// TestBoughtHistories runs histories in worlds in which capacity is paid in advance.
func TestBoughtHistories(t *testing.T) {
	first, histories := Bought, uint64(40)
	if day, nightly := night(); nightly {
		first, histories = Bought+day%1_000_000*1000, 1000
	}
	play(t, first, histories, []string{"reserved}) for claim", "partitions [", "commitment-0: "}).lacks(t)
}
