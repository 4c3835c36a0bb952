package leading

import (
	"context"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Lock is the lock of the election, which tells the guard of each renewal and of each holder. A nil lock stays nil: there
// is no election then.
func (g *Guard) Lock(inner resourcelock.Interface) resourcelock.Interface {
	if inner == nil {
		return nil
	}
	return lock{inner, g}
}

type lock struct {
	resourcelock.Interface
	guard *Guard
}

// Get implements resourcelock.Interface.
func (l lock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record != nil {
		l.guard.seen(record.HolderIdentity, l.Identity())
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Create)
}

// Update implements resourcelock.Interface.
func (l lock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.write(ctx, record, l.Interface.Update)
}

// write notes a renewal if it succeeds. A record without a holder gives the Lease back: another process may lead at once.
func (l lock) write(ctx context.Context, record resourcelock.LeaderElectionRecord, do func(context.Context, resourcelock.LeaderElectionRecord) error) error {
	asked := l.guard.Clocks()
	if err := do(ctx, record); err != nil {
		return err
	}
	if record.HolderIdentity == l.Identity() {
		l.guard.held(asked)
	} else {
		l.guard.givenBack()
	}
	return nil
}
