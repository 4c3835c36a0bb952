package launch

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// takeOver finds what a purchase without a request has bought, or has it ask for what stands with its lead. Only where that keeps
// nothing does it ask for what seems right today.
func (l *Launcher) takeOver(ctx context.Context, p *purchase, of *seat) (*outcome, error) {
	lead, noLead := l.kept(ctx, p)
	sealed := noLead == nil && lead.Token() == p.entry.Token()
	if sealed {
		noLead = l.adopt(ctx, p, lead)
	}
	switch {
	case errors.Is(noLead, errVoid):
		return nothing(), nil
	case noLead != nil && !errors.Is(noLead, ErrNoRecord):
		return nil, noLead
	}
	instances, err := l.tagged(ctx, p.entry.Token())
	if err != nil {
		return nil, err
	}
	if out := found(instances); out.complete(p.entry.Size) {
		p.credit(out)
		return out, nil
	}
	if sealed && noLead == nil {
		return nil, nil
	}
	return l.askAnew(ctx, p, of, noLead == nil)
}

// credit notes what the instances are made from, if that is known.
func (p *purchase) credit(out *outcome) {
	if len(p.requests) != 1 {
		return
	}
	for i := range out.instances {
		out.instances[i].made = p.requests[0].Made
	}
}

// askAnew makes the request of a purchase that has none on record, and puts it there if the lead takes it.
func (l *Launcher) askAnew(ctx context.Context, p *purchase, of *seat, withLead bool) (*outcome, error) {
	entries, err := l.opts.Recorder.Entries(ctx)
	if err != nil {
		return nil, err
	}
	// Claims that are gone, or on which it was never written, are not bought for.
	some := among(entries, of.entry)
	if withLead {
		some = among(entries, of.entry, 0)
	}
	var own request
	if p.plan, err = newPlan(of.order, l.opts.Region); err == nil {
		p.order = of.order
		own, err = l.prepare(ctx, p, some)
	}
	if err != nil {
		if until := p.last().Add(l.opts.Settle); l.opts.Clock.Now().Before(until) {
			return nil, fmt.Errorf("it may have been asked for until %s, and cannot be now: %w", p.last().Format(time.RFC3339), err)
		}
		return l.search(ctx, p)
	}
	if withLead {
		_, err = l.seal(ctx, p, own, nil)
	} else {
		p.requests, p.turn, p.kept = requests{own}, 0, ""
	}
	if err != nil {
		l.giveBack(p)
	}
	if errors.Is(err, errVoid) {
		return nothing(), nil
	}
	return nil, err
}
