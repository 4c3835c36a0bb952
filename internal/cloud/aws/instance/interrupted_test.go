package instance

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInterruptions(t *testing.T) {
	type event struct {
		at   int // minutes
		want int // minutes for which the offering is avoided from then on
	}
	for _, test := range []struct {
		name    string
		longest time.Duration
		may     bool
		events  []event
	}{
		{"off", UnavailableFor, true, []event{{0, 3}, {10, 3}, {20, 3}, {30, 3}}},
		{"no value", 0, true, []event{{0, 3}, {10, 3}, {20, 3}}},
		{"an hour at most", time.Hour, true, []event{{0, 3}, {10, 12}, {25, 48}, {80, 60}, {150, 60}, {220, 60}}},
		{"20 minutes at most", 20 * time.Minute, true, []event{{0, 3}, {10, 12}, {25, 20}, {50, 20}}},
		{"several at once count once", time.Hour, true, []event{{0, 3}, {1, 3}, {2, 3}, {10, 12}, {11, 11}, {12, 10}, {13, 48}}},
		{"instances that were there before count", time.Hour, true, []event{{0, 3}, {5, 12}, {10, 48}, {15, 60}}},
		{"an hour without any halves the count", time.Hour, true, []event{{0, 3}, {10, 12}, {22 + 60, 12}}},
		{"the hour begins when it is available again", time.Hour, true, []event{{0, 3}, {10, 12}, {20, 48}, {68 + 59, 60}}},
		{"long ago", time.Hour, true, []event{{0, 3}, {10, 12}, {20, 48}, {68 + 120, 3}}},
		{"years ago", time.Hour, true, []event{{0, 3}, {10, 12}, {3_000_000, 3}}},
		{"the last offering of a pool", time.Hour, false, []event{{0, 3}, {10, 3}, {20, 3}}},
	} {
		now := noon
		i := NewInterruptions(func() time.Time { return now }, test.longest)
		var got []event
		var asked time.Time
		may := func() bool {
			if now.Sub(asked) < UnavailableFor {
				t.Errorf("%s: the offerings are read again for the same event", test.name)
			}
			asked = now
			return test.may
		}
		for _, e := range test.events {
			now = noon.Add(time.Duration(e.at) * time.Minute)
			period := i.Count("m5.large", "us-east-1a", may)
			got = append(got, event{e.at, int(period / time.Minute)})
			if avoided := i.Avoided("m5.large", "us-east-1a") > 0; avoided != (period > UnavailableFor) {
				t.Errorf("%s: avoided %t for %v", test.name, avoided, period)
			}
		}
		if diff := cmp.Diff(test.events, got, cmp.AllowUnexported(event{})); diff != "" {
			t.Errorf("%s (-want +have):\n%s", test.name, diff)
		}
		if n := i.Avoided("m5.large", "us-east-1b") + i.Avoided("m5.xlarge", "us-east-1a"); n > 0 {
			t.Errorf("%s: another offering is avoided", test.name)
		}
		if now = now.Add(time.Hour); i.Avoided("m5.large", "us-east-1a") > 0 {
			t.Errorf("%s: avoided after an hour", test.name)
		}
	}
}
