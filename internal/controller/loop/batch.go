package loop

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// wait blocks until the bell rings or the pause is over, and reports whether it was the bell; ok is false when the
// context ended.
func wait(ctx context.Context, clk clock.WithTicker, bell <-chan struct{}, pause time.Duration) (rang, ok bool) {
	timer := clk.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, false
	case <-bell:
		return true, true
	case <-timer.C():
		return false, true
	}
}

// batch waits, after a first ring of the bell, for its last: until it was silent for idle, or longest has passed. It is
// false when the context ended.
func batch(ctx context.Context, clk clock.WithTicker, bell <-chan struct{}, idle, longest time.Duration) bool {
	end := clk.NewTimer(longest)
	defer end.Stop()
	for {
		silence := clk.NewTimer(idle)
		select {
		case <-ctx.Done():
			silence.Stop()
			return false
		case <-bell:
			silence.Stop()
		case <-silence.C():
			return true
		case <-end.C():
			silence.Stop()
			return true
		}
	}
}
