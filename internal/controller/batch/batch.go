// Package batch makes a loop wait for its next pass.
//
//	channel, other channel, timer --Wait--> what ended the wait --End--> the events have stopped for a while
//
// It does not know what the channels announce, and must not depend on any loop.
package batch

import (
	"context"
	"time"

	"k8s.io/utils/clock"
)

// Wait blocks until one of the channels receives or the pause is over. It returns the channel that received, or nil
// after the pause. ok is false when the context ended. A nil channel never receives.
func Wait(ctx context.Context, clk clock.WithTicker, pause time.Duration,
	one, other, third <-chan struct{}) (received <-chan struct{}, ok bool) {
	timer := clk.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return nil, false
	case <-one:
		return one, true
	case <-other:
		return other, true
	case <-third:
		return third, true
	case <-timer.C():
		return nil, true
	}
}

// Window is the duration of a batch: it ends when the channel was silent for Idle, or when Longest has passed.
type Window struct {
	Idle, Longest time.Duration
	// More reports, after a silence, that further events are about to come: the batch goes on. It may be nil.
	More func() bool
}

// End waits, after the first event on the channel, for the end of the batch. After an event on the channel asked,
// which may be nil, only further events there prolong the batch. It returns false when the context ended.
func End(ctx context.Context, clk clock.WithTicker, events, asked <-chan struct{}, w Window) bool {
	end := clk.NewTimer(w.Longest)
	defer end.Stop()
	silence := clk.NewTimer(w.Idle)
	defer func() { silence.Stop() }()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-events:
			silence.Stop()
			silence = clk.NewTimer(w.Idle)
		case <-asked:
			silence.Stop()
			silence, events = clk.NewTimer(w.Idle), nil
		case <-silence.C():
			if w.More == nil || !w.More() {
				return true
			}
			silence = clk.NewTimer(w.Idle)
		case <-end.C():
			return true
		}
	}
}
