package transport_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/karpenter-go/karpenter/internal/transport"
)

// cutOff is an election whose record becomes unreachable, until a process stops trying to renew it. By then another
// process leads.
type cutOff struct {
	election
	renewal time.Duration
	from    time.Time
}

func (c *cutOff) reach() error {
	if c.from.IsZero() {
		return nil
	}
	if time.Since(c.from) < c.renewal {
		return errors.New("no answer")
	}
	c.m.record.HolderIdentity = "them"
	return nil
}

func (c *cutOff) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := c.reach(); err != nil {
		return nil, nil, err
	}
	return c.election.Get(ctx)
}

func (c *cutOff) Update(ctx context.Context, r resourcelock.LeaderElectionRecord) error {
	// The first failed renewal is the last one that this process attempts.
	if r.HolderIdentity == "us" && c.m.record.HolderIdentity == "us" && c.from.IsZero() {
		c.from = time.Now()
	}
	if err := c.reach(); err != nil {
		return err
	}
	// The last attempt may come at the very end. It names the version that this process wrote, which is outdated by
	// then.
	if r.HolderIdentity == "us" && c.m.record.HolderIdentity == "them" {
		return errors.New("conflict")
	}
	return c.election.Update(ctx, r)
}

// TestReleaseOfALeaseOfAnother covers a leader that cannot renew and releases the Lease as it ends. When another
// process holds the Lease by then, that process keeps it.
func TestReleaseOfALeaseOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMachine()
		inner := &cutOff{election: election{m}, renewal: 10 * time.Second}
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: m.guard.Lock(inner), LeaseDuration: 15 * time.Second, RenewDeadline: inner.renewal, RetryPeriod: 2 * time.Second, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) {}, OnStoppedLeading: func() {}},
		})
		if err != nil {
			t.Fatal(err)
		}
		elector.Run(t.Context())
		if inner.from.IsZero() || m.record.HolderIdentity != "them" {
			t.Errorf("the lease is held by %q, want them", m.record.HolderIdentity)
		}
	})
}

// TestRelease verifies that only the holder of a Lease can release it.
func TestRelease(t *testing.T) {
	for holder, given := range map[string]bool{"us": true, "them": false, "": false} {
		m := newMachine()
		m.renew(t)
		m.record.HolderIdentity = holder
		if _, _, err := m.lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		err := m.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{})
		var other *transport.NotHolderError
		if given {
			if err != nil {
				t.Errorf("held by %q: %v, want it released", holder, err)
			}
			continue
		}
		switch {
		case !errors.As(err, &other):
			t.Errorf("held by %q: got error %v, want a NotHolderError", holder, err)
		case other.Holder != holder:
			t.Errorf("held by %q: the error names %q", holder, other.Holder)
		case m.record.HolderIdentity != holder:
			t.Errorf("held by %q: the holder is %q afterward", holder, m.record.HolderIdentity)
		}
	}
}
