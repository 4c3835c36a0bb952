package launch

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// resume finds the instances of a fleet launch without a request, or loads the requests that its coordinator stores.
// Only if there are none does it make a request from the current class.
func (l *Launcher) resume(ctx context.Context, p *fleetLaunch, of *pendingOrder) (*outcome, error) {
	coordinator, noLead := l.coordinatorRecord(ctx, p)
	sealed := noLead == nil && coordinator.Token() == p.record.Token()
	if sealed {
		noLead = l.useStored(ctx, p, coordinator)
	}
	switch {
	case errors.Is(noLead, errNeverSent):
		return notRequested(), nil
	case noLead != nil && !errors.Is(noLead, ErrNoRecord):
		return nil, noLead
	}
	instances, err := l.tagged(ctx, p.record.Token())
	if err != nil {
		return nil, err
	}
	if out := searchOutcome(instances); out.complete(p.record.Size) {
		p.setOrigin(out)
		return out, nil
	}
	if sealed && noLead == nil {
		return nil, nil
	}
	return l.requestAnew(ctx, p, of, noLead == nil)
}

// setOrigin sets what the instances are made from, if it is known.
func (p *fleetLaunch) setOrigin(out *outcome) {
	if len(p.requests) != 1 {
		return
	}
	for i := range out.instances {
		out.instances[i].origin = p.requests[0].Made
	}
}

// requestAnew makes the request of a fleet launch that has none on record, and stores it on the coordinator if
// possible.
func (l *Launcher) requestAnew(ctx context.Context, p *fleetLaunch, of *pendingOrder, withLead bool) (*outcome, error) {
	records, err := l.opts.RecordStore.Records(ctx)
	if err != nil {
		return nil, err
	}
	// No machine is launched for claims that are gone, or on which the fleet launch was never recorded.
	some := indexesOf(records, of.record)
	if withLead {
		some = indexesOf(records, of.record, 0)
	}
	var own request
	if p.plan, err = newPlan(of.order, l.opts.Region); err == nil {
		p.order = of.order
		own, err = l.prepare(ctx, p, some)
	}
	if err != nil {
		if until := p.lastSendBy().Add(l.opts.Settle); l.opts.Clock.Now().Before(until) {
			return nil, fmt.Errorf("it may have been requested until %s, and cannot be requested now: %w",
				p.lastSendBy().Format(time.RFC3339), err)
		}
		return l.search(ctx, p)
	}
	if withLead {
		_, err = l.persistRequest(ctx, p, own, nil)
	} else {
		p.requests, p.next, p.stored = requests{own}, 0, ""
	}
	if err != nil {
		l.releaseAddresses(p)
	}
	if errors.Is(err, errNeverSent) {
		return notRequested(), nil
	}
	return nil, err
}
