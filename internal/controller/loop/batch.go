package loop

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// wait blocks until one of the channels receives or the pause is over. It returns the channel that received, or nil
// after the pause. ok is false when the context ended. A nil channel never receives.
func wait(ctx context.Context, clk clock.WithTicker, pause time.Duration, one, other <-chan struct{}) (rang <-chan struct{}, ok bool) {
	timer := clk.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, false
	case <-one:
		return one, true
	case <-other:
		return other, true
	case <-timer.C():
		return nil, true
	}
}

// window is the duration of a batch: it ends when the channel was silent for idle, when longest has passed, or when
// enough, if set, returns true. enough is called once in each idle interval.
type window struct {
	idle, longest time.Duration
	enough        func() bool
}

// batch waits, after the first event on the channel, for the end of the batch. It returns false when the context
// ended.
func batch(ctx context.Context, clk clock.WithTicker, bell <-chan struct{}, w window) bool {
	end := clk.NewTimer(w.longest)
	defer end.Stop()
	var look <-chan time.Time
	if w.enough != nil && w.longest > w.idle {
		ticker := clk.NewTicker(w.idle)
		defer ticker.Stop()
		look = ticker.C()
	}
	silence := clk.NewTimer(w.idle)
	defer func() { silence.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-bell:
			silence.Stop()
			silence = clk.NewTimer(w.idle)
		case <-look:
			if w.enough() {
				return true
			}
		case <-silence.C():
			return true
		case <-end.C():
			return true
		}
	}
}
