package launch

import (
	"context"
	"fmt"
)

// ctxMutex is a mutex whose waiters can give up when their context ends. It is held during calls to EC2.
type ctxMutex chan struct{}

func newCtxMutex() ctxMutex { return make(ctxMutex, 1) }

func (g ctxMutex) lock(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for another caller with the same task: %w", ctx.Err())
	}
}

// tryLock locks the mutex if it is free, and reports whether it did.
func (g ctxMutex) tryLock() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

func (g ctxMutex) unlock() { <-g }
