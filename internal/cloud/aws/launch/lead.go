package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The request that belongs to a token is recorded on one claim of the fleet launch, the coordinator, before it is sent.
// The first process that writes the coordinator's entry writes it last, with the request, and every process sends the
// recorded request. So the states of a fleet launch are those of its coordinator's entry:
//
//	the one before (Lead.Was) --written--> this fleet launch: its requests may have been sent, and no others
//	         |                                       |
//	         |                                       `--after an hour, or nothing came of it: the requests are gone
//	         `--another fleet launch, whose history does not have this one: it never was recorded, and never will be
//
// If the coordinator is gone, or cannot store anything, each process makes the request itself (see takeOver).

// errVoid means that no process has sent anything with the token, and none will.
var errVoid = fmt.Errorf("%w, its coordinator", ErrChanged)

// kept returns the coordinator's entry: that of this fleet launch, with requests, or the one before. Errors: errVoid,
// ErrNoRecord, and temporary errors of the Recorder.
func (l *Launcher) kept(ctx context.Context, p *purchase) (Entry, error) {
	lead, token := p.entry.Lead, p.entry.Token()
	if lead == (Lead{}) {
		return Entry{}, fmt.Errorf("launch %s: %w: an earlier version began it", token, ErrNoRecord)
	}
	now, err := l.opts.Recorder.Recorded(ctx, lead.object())
	switch {
	case err != nil:
		return Entry{}, fmt.Errorf("reading the request of launch %s: %w", token, err)
	case now.Token() == token && now.Requests != "", now.Token() == lead.Was:
		return now, nil
	case now.never(token, lead.Was):
		return Entry{}, fmt.Errorf("launch %s: %w: NodeClaim %q is part of %s", token, errVoid, lead.Claim, now.Token())
	}
	return Entry{}, fmt.Errorf("launch %s: %w: NodeClaim %q no longer has it", token, ErrNoRecord, lead.Claim)
}

// seal stores the given request on the coordinator, unless one is stored already, which then becomes the one of this
// process. It returns the coordinator's entry. known is that entry as last read, or nil. Errors: those of kept;
// ErrNoRecord also if the stored requests are invalid; ErrChanged if other processes keep writing the entry, and any
// other error of Record at the third try; the error of ctx if it ends meanwhile.
func (l *Launcher) seal(ctx context.Context, p *purchase, own request, known *Entry) (Entry, error) {
	const most = 3
	for try := 1; ; try++ {
		var now Entry
		var err error
		if known != nil && try == 1 {
			now = *known
		} else if now, err = l.kept(ctx, p); err != nil {
			return Entry{}, err
		}
		if now.Token() == p.entry.Token() {
			return now, l.adopt(ctx, p, now)
		}
		after := p.entry
		after.Place, after.Made, after.Was, after.Requests = 0, own.Made, now.past(), requests{own}.text()
		if err = l.opts.Recorder.Record(ctx, p.entry.Lead.object(), now, after); err == nil {
			p.requests, p.turn, p.kept = requests{own}, 0, after.Requests
			return after, nil
		}
		err = fmt.Errorf("recording the request of launch %s: %w", p.entry.Token(), err)
		if try == most || errors.Is(err, ErrNoRecord) {
			return Entry{}, err
		}
		if waited := backOff(ctx, l.opts.Clock, try); waited != nil {
			return Entry{}, errors.Join(err, waited)
		}
	}
}

// adopt makes the requests that are stored on the coordinator those of the fleet launch, and marks their launch
// templates as used.
func (l *Launcher) adopt(ctx context.Context, p *purchase, lead Entry) error {
	kept, err := requestsOf(lead.Requests)
	if err != nil {
		return fmt.Errorf("NodeClaim %q: %w: %w", p.entry.Lead.Claim, ErrNoRecord, err)
	}
	l.giveBack(p)
	p.requests, p.turn, p.kept, p.unsure = kept, len(kept)-1, lead.Requests, true
	for _, r := range kept {
		for _, name := range r.templates() {
			if err := l.touch(ctx, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// turnBack selects the request before the one that does not match the token, or the requests that were stored on the
// coordinator meanwhile. It returns false if there are none.
func (l *Launcher) turnBack(ctx context.Context, p *purchase) (bool, error) {
	if p.turn > 0 {
		p.turn--
		return true, nil
	}
	if p.kept == "" {
		return false, nil
	}
	now, err := l.kept(ctx, p)
	switch {
	case errors.Is(err, ErrNoRecord):
		return false, nil
	case err != nil:
		return false, err
	case now.Requests == p.kept:
		return false, nil
	}
	return true, l.adopt(ctx, p, now)
}

// pause returns how long no call is made after a refusal, however many claims are retried meanwhile. It doubles like
// the retry interval of a claim, so that a single claim is not delayed, and is limited so that a corrected class does
// not wait long.
func (p *purchase) pause() time.Duration {
	const first, most, doublings = time.Second, 10 * time.Second, 4
	n := int(p.refusals.Load())
	if n == 0 {
		return 0
	}
	return min(first<<min(n-1, doublings), most)
}

// another sends a request from the current class beside the one that EC2 has refused, for those of its claims that
// still exist. If EC2 has executed the old request for another process, the new one does not match the token, and the
// old one is sent again. If there is no new request, the old one is sent again, with its plan and its addresses.
func (l *Launcher) another(ctx context.Context, p *purchase, of *seat) error {
	last := p.requests[p.turn]
	_, mine := last.places().index(of.entry.Place)
	if !mine || p.turn < len(p.requests)-1 || len(p.requests) >= mostRequests {
		return nil
	}
	plan, unsold := newPlan(of.order, l.opts.Region)
	if unsold != nil {
		return nil // the old request is as good as any
	}
	entries, err := l.opts.Recorder.Entries(ctx)
	if err != nil {
		return fmt.Errorf("looking for the claims of launch %s: %w", p.entry.Token(), err)
	}
	day, before := &purchase{entry: p.entry, plan: plan, order: of.order}, p.aside
	l.giveBack(p) // otherwise other subnets would seem better for an equal request
	own, err := l.prepare(ctx, day, last.places().and(among(entries, of.entry), p.entry.Size))
	if err != nil || own.is(last) {
		err = nil
	} else {
		err = l.keepAnother(ctx, p, own)
	}
	switch asked := p.requests[p.turn]; {
	case asked.Sent == last.Sent:
		l.giveBack(day)
		p.aside = l.setAside(before)
	case asked.Sent == own.Sent:
		p.plan, p.order, p.aside = day.plan, day.order, day.aside
	default: // a current request of another process
		l.giveBack(day)
		p.plan, p.order = day.plan, day.order
	}
	return err
}

// keepAnother stores the given request on the coordinator beside the others, and makes it the one that is sent. If
// another process has stored one first, that one is sent. If the coordinator cannot store anything, nothing changes.
func (l *Launcher) keepAnother(ctx context.Context, p *purchase, own request) error {
	now, err := l.kept(ctx, p)
	switch {
	case errors.Is(err, ErrNoRecord):
		return nil
	case err == nil && now.Requests != p.kept: // another process was first
		err = l.adopt(ctx, p, now)
	case err == nil:
		both := append(slices.Clone(p.requests), own)
		after := now
		after.Requests = both.text()
		if err = l.opts.Recorder.Record(ctx, p.entry.Lead.object(), now, after); err == nil {
			p.requests, p.turn, p.kept = both, len(both)-1, after.Requests
		}
	}
	if err != nil {
		return fmt.Errorf("creating another request for launch %s: %w", p.entry.Token(), err)
	}
	return nil
}
