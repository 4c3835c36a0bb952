package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// What is asked for under a token is on record with one claim of the purchase, its lead, before it is sent: the lead's entry is
// written last, with the request, by whoever comes first, and everybody sends what stands there. So the states of a purchase are
// those of its lead's entry:
//
//	the one before (Lead.Was) --written--> this purchase: what stands with it may have been sent, and nothing else
//	         |                                       |
//	         |                                       `--after an hour, or nothing came of it: the requests are gone
//	         `--another purchase, and this one is not among those before it: it never was, and never will be
//
// Where the lead is gone, or can keep nothing, each process makes the request itself; see takeOver.

// errVoid says that nobody has sent anything under the token and nobody will.
var errVoid = fmt.Errorf("%w, its lead", ErrChanged)

// kept is the lead's entry: that of the purchase, with requests, or the one before. Errors: errVoid, ErrNoRecord, and those of the
// Recorder that pass.
func (l *Launcher) kept(ctx context.Context, p *purchase) (Entry, error) {
	lead, token := p.entry.Lead, p.entry.Token()
	if lead == (Lead{}) {
		return Entry{}, fmt.Errorf("purchase %s: %w: an earlier version began it", token, ErrNoRecord)
	}
	now, err := l.opts.Recorder.Recorded(ctx, lead.object())
	switch {
	case err != nil:
		return Entry{}, fmt.Errorf("reading what purchase %s asks for: %w", token, err)
	case now.Token() == token && now.Requests != "", now.Token() == lead.Was:
		return now, nil
	case now.never(token, lead.Was):
		return Entry{}, fmt.Errorf("purchase %s: %w: NodeClaim %q is part of %s", token, errVoid, lead.Claim, now.Token())
	}
	return Entry{}, fmt.Errorf("purchase %s: %w: NodeClaim %q no longer has it", token, ErrNoRecord, lead.Claim)
}

// seal has the lead keep our request, unless it keeps one already, which is ours then. It returns the lead's entry; known is that
// entry as it was last seen, nil if it has not been. Errors: those of kept; ErrNoRecord also if what the lead keeps cannot be read;
// ErrChanged if others go on writing it, and what else Record says at the third try; that of ctx if time runs out meanwhile.
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
		err = fmt.Errorf("recording what purchase %s asks for: %w", p.entry.Token(), err)
		if try == most || errors.Is(err, ErrNoRecord) {
			return Entry{}, err
		}
		if waited := backOff(ctx, l.opts.Clock, try); waited != nil {
			return Entry{}, errors.Join(err, waited)
		}
	}
}

// adopt makes the requests that the lead keeps those of the purchase, and notes that their launch templates are in use.
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

// turnBack has the request before the one that does not match the token asked for, or those that the lead has got meanwhile. False
// says that there are none.
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

// pause after a refusal: nobody asks before it is over, however many claims come again meanwhile. It doubles as the time does
// after which a claim comes again, so that one claim alone is not held up, and stays short of what a mended class may wait.
func (p *purchase) pause() time.Duration {
	const first, most, doublings = time.Second, 10 * time.Second, 4
	n := int(p.refusals.Load())
	if n == 0 {
		return 0
	}
	return min(first<<min(n-1, doublings), most)
}

// another has a request of the day asked for beside the one that EC2 has refused, for those of its claims that are still there.
// If the old one was, or is, carried out for somebody else, the new one does not match the token, and the old one's turn comes
// again. Without a new one the old one is asked for again, with the plan and the addresses that it has.
func (l *Launcher) another(ctx context.Context, p *purchase, of *seat) error {
	last := p.requests[p.turn]
	_, mine := last.places().index(of.entry.Place)
	if !mine || p.turn < len(p.requests)-1 || len(p.requests) >= mostRequests {
		return nil
	}
	plan, unsold := newPlan(of.order, l.opts.Region)
	if unsold != nil {
		return nil // the old one is as good as any
	}
	entries, err := l.opts.Recorder.Entries(ctx)
	if err != nil {
		return fmt.Errorf("looking for the claims of purchase %s: %w", p.entry.Token(), err)
	}
	day, before := &purchase{entry: p.entry, plan: plan, order: of.order}, p.aside
	l.giveBack(p) // else other subnets would seem better, for a request that is the same
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
	default: // somebody else's of the day
		l.giveBack(day)
		p.plan, p.order = day.plan, day.order
	}
	return err
}

// keepAnother has the lead keep our request beside the others, and makes it the one that is asked for; or else that which somebody
// else has put there first. None becomes that if the lead can keep nothing.
func (l *Launcher) keepAnother(ctx context.Context, p *purchase, own request) error {
	now, err := l.kept(ctx, p)
	switch {
	case errors.Is(err, ErrNoRecord):
		return nil
	case err == nil && now.Requests != p.kept: // somebody else was there first
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
		return fmt.Errorf("having another request for purchase %s: %w", p.entry.Token(), err)
	}
	return nil
}
