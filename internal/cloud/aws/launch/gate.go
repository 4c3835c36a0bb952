package launch

import (
	"context"
	"fmt"
)

// gate lets one in at a time, like a mutex, and those who wait may give up: it is held during calls to EC2.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for another who does the same: %w", ctx.Err())
	}
}

// tryEnter says whether nobody was in.
func (g gate) tryEnter() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g gate) leave() { <-g }
