package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// commit records the fleet launch on the other claims, and then on the coordinator, with the request. It returns the
// seats that take part and fails the others. The token is never replaced by another one because a write fails: another
// process may have read it on a claim and may have sent it already, and both must then result in one launch.
func (l *Launcher) commit(ctx context.Context, p *purchase, own request, seats []*seat) []*seat {
	lead, others := seats[0], l.record(ctx, p.entry, seats[1:])
	var err error
	if len(others) < len(seats)-1 {
		own, err = l.narrow(ctx, p, append([]*seat{lead}, others...))
	}
	var entry Entry
	if err == nil {
		entry, err = l.seal(ctx, p, own, &lead.entry)
	}
	if err == nil {
		lead.entry, lead.open = entry, true
		return append([]*seat{lead}, others...)
	}
	lead.known = false // it may have been written in spite of the error, or another process wrote it
	l.fail(lead, p.undecided(err))
	p.unsure = true
	switch {
	case errors.Is(err, errVoid):
		l.giveBack(p)
		p.decided = nothing()
		return others
	case errors.Is(err, ErrNoRecord):
		if others = l.still(ctx, p, others); len(others) == 0 {
			break
		}
		if own, err = l.narrow(ctx, p, others); err == nil {
			p.requests = requests{own}
			return others
		}
	}
	l.giveBack(p)
	l.failAll(others, p.undecided(err))
	return nil
}

// narrow makes the request for a subset of the claims: those on which the fleet launch is recorded, or is about to be.
func (l *Launcher) narrow(ctx context.Context, p *purchase, seats []*seat) (request, error) {
	l.giveBack(p)
	p.plan, p.order = seats[0].plan, seats[0].order // the plan names its claim, in case it is the only one
	var some places
	for _, s := range seats {
		if s.order.Claim.UID == p.entry.Lead.UID {
			some = append(some, 0)
			continue
		}
		some = append(some, s.entry.Place)
	}
	slices.Sort(some)
	return l.prepare(ctx, p, some)
}

// record writes the entry on all claims except the coordinator, and fails the seats whose claim cannot be written.
func (l *Launcher) record(ctx context.Context, entry Entry, seats []*seat) []*seat {
	errs := make([]error, len(seats))
	var group errgroup.Group
	group.SetLimit(20)
	for i, s := range seats {
		mine := entry
		mine.Place, mine.Made, mine.Was = i+1, s.order.origin(), s.entry.past()
		group.Go(func() error {
			if errs[i] = l.opts.Recorder.Record(ctx, s.order.Claim, s.entry, mine); errs[i] == nil {
				s.entry, s.open = mine, true
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in errs
	var recorded []*seat
	for i, s := range seats {
		if errs[i] == nil {
			recorded = append(recorded, s)
			continue
		}
		s.known = false // it may have been written in spite of the error, or another process wrote it
		l.fail(s, fmt.Errorf("recording the launch for NodeClaim %q: %w", s.name(), errs[i]))
	}
	return recorded
}

// prepare creates the launch templates and returns the request, for some places of the fleet launch or, if some is nil,
// for all.
func (l *Launcher) prepare(ctx context.Context, p *purchase, some places) (request, error) {
	for _, v := range p.plan.variants {
		if err := l.ensure(ctx, p.plan.templates[v]); err != nil {
			return request{}, l.templateError(err)
		}
	}
	size := p.entry.Size
	if some != nil {
		size = len(some)
	}
	subnets := l.choose(p, size, l.opts.Subnets.Choose)
	if len(subnets) == 0 {
		subnets = l.choose(p, size, l.opts.Subnets.ChooseCrowded)
	}
	sent := p.plan.request(p.entry, some, subnets)
	if len(sent.LaunchTemplateConfigs) == 0 {
		l.markFull(p.plan)
		return request{}, &cloud.InsufficientCapacityError{Message: fmt.Sprintf("EC2NodeClass %q has no subnet with free addresses in %v",
			p.plan.order.Class.Name, p.plan.zones())}
	}
	return request{Made: p.plan.order.origin(), Sent: sent}, nil
}

// templateError returns the claims' error for a launch template that cannot be created.
func (l *Launcher) templateError(err error) error {
	if f := fateOf(err); f == throttled || f == lost {
		return err
	}
	return refusedError(err)
}
