package bill

import (
	"encoding/json"
	"testing"
	"time"
)

// TestMoney checks that amounts are exact, and that none overflows.
func TestMoney(t *testing.T) {
	for _, c := range []struct {
		price USD
		d     time.Duration
		want  USD
	}{
		{USDOf(0.1), 90 * time.Minute, USDOf(0.15)}, {USDOf(1000), 10000 * time.Hour, USDOf(10_000_000)}, {1, time.Minute, 0},
		{USDOf(-0.1), time.Hour, USDOf(-0.1)}, {USDOf(5), -time.Hour, 0}, {1 << 62, 1 << 62, 1<<63 - 1},
	} {
		if got := c.price.Over(c.d); got != c.want {
			t.Errorf("%d over %v is %d, want %d", c.price, c.d, got, c.want)
		}
	}
	if text, err := json.Marshal(USD(1)); err != nil || string(text) != "0.000000001" {
		t.Errorf("a nano-USD is %s, %v", text, err)
	}
}
