package transport

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lock returns the lock of the election, which reports each renewal and each holder to the guard. A nil lock stays
// nil: there is no election then.
func (g *Guard) Lock(inner resourcelock.Interface) resourcelock.Interface {
	if inner == nil {
		return nil
	}
	return &lock{Interface: inner, guard: g}
}

type lock struct {
	resourcelock.Interface
	guard *Guard

	mu sync.Mutex
	// holder is the holder of the Lease as last read or written. The next write is conditional on that version of the
	// Lease.
	holder string
}

// NotHolderError means that a Lease is not released, because another process holds it.
type NotHolderError struct{ Holder string }

// Error returns the holder of the Lease.
func (e *NotHolderError) Error() string {
	return fmt.Sprintf("the lease is not released: %s holds it", e.Holder)
}

// Get implements resourcelock.Interface.
func (l *lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record != nil {
		l.note(record.HolderIdentity)
		l.guard.seen(record.HolderIdentity, l.Identity())
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l *lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

func (l *lock) note(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = holder
}

func (l *lock) lastHolder() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder
}

// write records a renewal if it succeeds. A record without a holder releases the Lease: another process may lead at
// once. The election releases the Lease without checking its current holder, because it reads the Lease only for its
// version. A process that was stopped during a renewal would clear the Lease of its successor. Therefore the version
// that was read last decides: the API server refuses the write if the Lease has changed since.
func (l *lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	if holder := l.lastHolder(); record.HolderIdentity == "" && holder != l.Identity() {
		return &NotHolderError{Holder: holder}
	}
	asked := l.guard.Clocks()
	if err := do(ctx, record); err != nil {
		return err
	}
	l.note(record.HolderIdentity)
	if record.HolderIdentity == l.Identity() {
		l.guard.held(asked)
	} else {
		l.guard.givenBack()
	}
	return nil
}
