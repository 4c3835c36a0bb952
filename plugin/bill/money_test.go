package bill

import (
	"encoding/json"
	"strings"
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

// TestRightSizedIsExact checks that a saving and its month are written as the difference of the prices, without the rounding of
// binary fractions.
func TestRightSizedIsExact(t *testing.T) {
	r := RightSized{AtRest: 300_000_000, Fit: 100_000_000, Saving: 200_000_000, SavingPerMonth: USD(200_000_000).PerMonth()}
	text, err := json.Marshal(&r)
	want := `{"pods":0,"percentOfUsage":0,"atRestPerHour":0.3,"rightSizedPerHour":0.1,"savingPerHour":0.2,"savingPerMonth":146}`
	if err != nil || string(text) != want {
		t.Errorf("got %s, %v, want %s", text, err, want)
	}
	if got := r.String(); !strings.HasSuffix(got, "the fleet at rest costs 0.1000 USD per hour in place of 0.3000: 146.00 less per month") {
		t.Errorf("got %s", got)
	}
}
