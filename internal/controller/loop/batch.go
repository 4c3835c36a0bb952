package loop

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// wait blocks until one of the bells rings or the pause is over, and returns the bell that rang, nil for the pause; ok
// is false when the context ended. A bell that is nil never rings.
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

// window is how long a batch lasts: until the bell was silent for idle, or longest has passed; or until enough, which is
// asked once in each idle if it is there, says that no more need come.
type window struct {
	idle, longest time.Duration
	enough        func() bool
}

// batch waits, after a first ring of the bell, for its last. It is false when the context ended.
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
