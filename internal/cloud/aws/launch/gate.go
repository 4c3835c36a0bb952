package launch

import (
	"context"
	"fmt"
)

// gate is a mutex whose waiters can give up when their context ends. It is held during calls to EC2.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for another caller that does the same: %w", ctx.Err())
	}
}

// tryEnter enters the gate if it is free, and reports whether it did.
func (g gate) tryEnter() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gate) leave() { <-g }
