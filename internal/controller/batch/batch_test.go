package batch

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestEnd: a batch ends after a silence, unless more is to come, and at the latest when it has lasted long enough.
func TestEnd(t *testing.T) {
	const tenth = 100 * time.Millisecond
	until := func(at time.Duration) func(time.Time) func() bool {
		return func(begun time.Time) func() bool { return func() bool { return time.Since(begun) < at } }
	}
	for name, c := range map[string]struct {
		events, asked []time.Duration // when they come
		more          func(time.Time) func() bool
		want          time.Duration
	}{
		"silence":                     {nil, nil, nil, time.Second},
		"events":                      {[]time.Duration{5 * tenth, 14 * tenth}, nil, nil, 24 * tenth},
		"an event after a silence":    {[]time.Duration{15 * tenth}, nil, nil, time.Second},
		"after asked, events are not": {[]time.Duration{5 * tenth}, []time.Duration{2 * tenth}, nil, 12 * tenth},
		"more is to come":             {nil, nil, until(25 * tenth), 3 * time.Second},
		"more comes":                  {nil, []time.Duration{35 * tenth}, until(36 * tenth), 45 * tenth},
		"more never comes":            {nil, nil, until(time.Hour), 10 * time.Second},
		"nothing more":                {nil, nil, until(0), time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				w := Window{Idle: time.Second, Longest: 10 * time.Second}
				if c.more != nil {
					w.More = c.more(begun)
				}
				if !End(t.Context(), clock.RealClock{}, at(c.events), at(c.asked), w) {
					t.Error("the context has ended")
				}
				if got := time.Since(begun); got != c.want {
					t.Errorf("the batch lasted %s, want %s", got, c.want)
				}
			})
		})
	}
}

// at returns a channel that receives after the times.
func at(times []time.Duration) <-chan struct{} {
	channel := make(chan struct{}, len(times))
	for _, after := range times {
		time.AfterFunc(after, func() { channel <- struct{}{} })
	}
	return channel
}
