package launch

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// takeOver finds the instances of a fleet launch without a request, or loads the requests that its coordinator stores.
// Only if there are none does it make a request from the current class.
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

// credit sets what the instances are made from, if it is known.
func (p *purchase) credit(out *outcome) {
	if len(p.requests) != 1 {
		return
	}
	for i := range out.instances {
		out.instances[i].made = p.requests[0].Made
	}
}

// askAnew makes the request of a fleet launch that has none on record, and stores it on the coordinator if possible.
func (l *Launcher) askAnew(ctx context.Context, p *purchase, of *seat, withLead bool) (*outcome, error) {
	entries, err := l.opts.Recorder.Entries(ctx)
	if err != nil {
		return nil, err
	}
	// No machine is launched for claims that are gone, or on which the fleet launch was never recorded.
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
			return nil, fmt.Errorf("it may have been requested until %s, and cannot be requested now: %w", p.last().Format(time.RFC3339), err)
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
