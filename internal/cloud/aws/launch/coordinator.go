package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The request that belongs to a token is recorded on one claim of the fleet launch, the coordinator, before it is sent.
// The first process that writes the coordinator's record writes it last, with the request, and every process sends the
// recorded request. So the states of a fleet launch are those of its coordinator's record:
//
//	the one before (Coordinator.PreviousToken) --written--> this fleet launch: its requests may have been sent, and no others
//	         |                                       |
//	         |                                       `--after an hour, or nothing came of it: the requests are gone
//	         `--another fleet launch, whose history does not have this one: it never was recorded, and never will be
//
// If the coordinator is gone, or cannot store anything, each process makes the request itself (see resume).

// errNeverSent means that no process has sent anything with the token, and none will.
var errNeverSent = fmt.Errorf("%w, its coordinator", ErrChanged)

// coordinatorRecord returns the coordinator's record: that of this fleet launch, with requests, or the one before.
// Errors: errNeverSent, ErrNoRecord, and temporary errors of the RecordStore.
func (l *Launcher) coordinatorRecord(ctx context.Context, p *fleetLaunch) (Record, error) {
	coordinator, token := p.record.Coordinator, p.record.Token()
	if coordinator == (Coordinator{}) {
		return Record{}, fmt.Errorf("launch %s: %w: an earlier version began it", token, ErrNoRecord)
	}
	now, err := l.opts.RecordStore.Read(ctx, coordinator.object())
	switch {
	case err != nil:
		return Record{}, fmt.Errorf("reading the request of launch %s: %w", token, err)
	case now.Token() == token && now.Requests != "", now.Token() == coordinator.PreviousToken:
		return now, nil
	case now.neverHad(token, coordinator.PreviousToken):
		return Record{}, fmt.Errorf("launch %s: %w: NodeClaim %q is part of %s", token, errNeverSent, coordinator.Claim, now.Token())
	}
	return Record{}, fmt.Errorf("launch %s: %w: NodeClaim %q no longer has it", token, ErrNoRecord, coordinator.Claim)
}

// persistRequest stores the given request on the coordinator, unless one is stored already, which then becomes the one
// of this process. It returns the coordinator's record. known is that record as last read, or nil. Errors: those of
// kept; ErrNoRecord also if the stored requests are invalid; ErrChanged if other processes keep writing the record, and
// any other error of Replace at the third try; the error of ctx if it ends meanwhile.
func (l *Launcher) persistRequest(ctx context.Context, p *fleetLaunch, own request, known *Record) (Record, error) {
	const most = 3
	for try := 1; ; try++ {
		var now Record
		var err error
		if known != nil && try == 1 {
			now = *known
		} else if now, err = l.coordinatorRecord(ctx, p); err != nil {
			return Record{}, err
		}
		if now.Token() == p.record.Token() {
			return now, l.useStored(ctx, p, now)
		}
		after := p.record
		after.Index, after.Origin, after.PreviousTokens, after.Requests = 0, own.Made, now.previousTokens(), requests{own}.text()
		if err = l.opts.RecordStore.Replace(ctx, p.record.Coordinator.object(), now, after); err == nil {
			p.requests, p.next, p.stored = requests{own}, 0, after.Requests
			return after, nil
		}
		err = fmt.Errorf("recording the request of launch %s: %w", p.record.Token(), err)
		if try == most || errors.Is(err, ErrNoRecord) {
			return Record{}, err
		}
		if waited := backOff(ctx, l.opts.Clock, try); waited != nil {
			return Record{}, errors.Join(err, waited)
		}
	}
}

// useStored makes the requests that are stored on the coordinator those of the fleet launch, and marks their launch
// templates as used.
func (l *Launcher) useStored(ctx context.Context, p *fleetLaunch, coordinator Record) error {
	kept, err := requestsOf(coordinator.Requests)
	if err != nil {
		return fmt.Errorf("NodeClaim %q: %w: %w", p.record.Coordinator.Claim, ErrNoRecord, err)
	}
	l.releaseAddresses(p)
	p.requests, p.next, p.stored, p.maybeSent = kept, len(kept)-1, coordinator.Requests, true
	for _, r := range kept {
		for _, name := range r.templates() {
			if err := l.touch(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// previousRequest selects the request before the one that does not match the token, or the requests that were stored on
// the coordinator meanwhile. It returns false if there are none.
func (l *Launcher) previousRequest(ctx context.Context, p *fleetLaunch) (bool, error) {
	if p.next > 0 {
		p.next--
		return true, nil
	}
	if p.stored == "" {
		return false, nil
	}
	now, err := l.coordinatorRecord(ctx, p)
	switch {
	case errors.Is(err, ErrNoRecord):
		return false, nil
	case err != nil:
		return false, err
	case now.Requests == p.stored:
		return false, nil
	}
	return true, l.useStored(ctx, p, now)
}

// refusalPause returns how long no call is made after a refusal, however many claims are retried meanwhile. It doubles
// like the retry interval of a claim, so that a single claim is not delayed, and is limited so that a corrected class
// does not wait long.
func (p *fleetLaunch) refusalPause() time.Duration {
	const first, most, doublings = time.Second, 10 * time.Second, 4
	n := int(p.refusals.Load())
	if n == 0 {
		return 0
	}
	return min(first<<min(n-1, doublings), most)
}

// addCurrentRequest sends a request from the current class beside the one that EC2 has refused, for those of its claims
// that still exist. If EC2 has executed the old request for another process, the new one does not match the token, and
// the old one is sent again. If there is no new request, the old one is sent again, with its plan and its addresses.
func (l *Launcher) addCurrentRequest(ctx context.Context, p *fleetLaunch, of *pendingOrder) error {
	last := p.requests[p.next]
	_, mine := last.indexes().index(of.record.Index)
	if !mine || p.next < len(p.requests)-1 || len(p.requests) >= maxRequests {
		return nil
	}
	plan, unsold := newPlan(of.order, l.opts.Region)
	if unsold != nil {
		return nil // the old request is as good as any
	}
	records, err := l.opts.RecordStore.Records(ctx)
	if err != nil {
		return fmt.Errorf("listing the claims of launch %s: %w", p.record.Token(), err)
	}
	day, before := &fleetLaunch{record: p.record, plan: plan, order: of.order}, p.reserved
	l.releaseAddresses(p) // otherwise other subnets would seem better for an equal request
	own, err := l.prepare(ctx, day, last.indexes().intersect(indexesOf(records, of.record), p.record.Size))
	if err != nil || own.equal(last) {
		err = nil
	} else {
		err = l.persistAdditional(ctx, p, own)
	}
	switch asked := p.requests[p.next]; {
	case asked.Sent == last.Sent:
		l.releaseAddresses(day)
		p.reserved = l.reserveAgain(before)
	case asked.Sent == own.Sent:
		p.plan, p.order, p.reserved = day.plan, day.order, day.reserved
	default: // a current request of another process
		l.releaseAddresses(day)
		p.plan, p.order = day.plan, day.order
	}
	return err
}

// persistAdditional stores the given request on the coordinator beside the others, and makes it the one that is sent.
// If another process has stored one first, that one is sent. If the coordinator cannot store anything, nothing changes.
func (l *Launcher) persistAdditional(ctx context.Context, p *fleetLaunch, own request) error {
	now, err := l.coordinatorRecord(ctx, p)
	switch {
	case errors.Is(err, ErrNoRecord):
		return nil
	case err == nil && now.Requests != p.stored: // another process was first
		err = l.useStored(ctx, p, now)
	case err == nil:
		both := append(slices.Clone(p.requests), own)
		after := now
		after.Requests = both.text()
		if err = l.opts.RecordStore.Replace(ctx, p.record.Coordinator.object(), now, after); err == nil {
			p.requests, p.next, p.stored = both, len(both)-1, after.Requests
		}
	}
	if err != nil {
		return fmt.Errorf("creating another request for launch %s: %w", p.record.Token(), err)
	}
	return nil
}
