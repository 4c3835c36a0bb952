package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/karpenter-go/karpenter/cloud"
)

// commit records the fleet launch on the other claims, and then on the coordinator, with the request. It returns the
// pending that take part and fails the others. The token is never replaced by another one because a write fails:
// another process may have read it on a claim and may have sent it already, and both must then result in one launch.
func (l *Launcher) commit(ctx context.Context, p *fleetLaunch, own request, pending []*pendingOrder) []*pendingOrder {
	coordinator, others := pending[0], l.record(ctx, p.record, pending[1:])
	var err error
	if len(others) < len(pending)-1 {
		own, err = l.requestFor(ctx, p, append([]*pendingOrder{coordinator}, others...))
	}
	var rec Record
	if err == nil {
		rec, err = l.persistRequest(ctx, p, own, &coordinator.record)
	}
	if err == nil {
		coordinator.record, coordinator.undecided = rec, true
		return append([]*pendingOrder{coordinator}, others...)
	}
	coordinator.recordRead = false // it may have been written in spite of the error, or another process wrote it
	l.fail(coordinator, p.undecided(err))
	p.maybeSent = true
	switch {
	case errors.Is(err, errNeverSent):
		l.releaseAddresses(p)
		p.outcome = notRequested()
		return others
	case errors.Is(err, ErrNoRecord):
		if others = l.withCurrentRecord(ctx, p, others); len(others) == 0 {
			break
		}
		if own, err = l.requestFor(ctx, p, others); err == nil {
			p.requests = requests{own}
			return others
		}
	}
	l.releaseAddresses(p)
	l.failAll(others, p.undecided(err))
	return nil
}

// requestFor makes the request for a subset of the claims: those on which the fleet launch is recorded, or is about to
// be.
func (l *Launcher) requestFor(ctx context.Context, p *fleetLaunch, pending []*pendingOrder) (request, error) {
	l.releaseAddresses(p)
	p.plan, p.order = pending[0].plan, pending[0].order // the plan names its claim, in case it is the only one
	var some indexSet
	for _, s := range pending {
		if s.order.Claim.UID == p.record.Coordinator.UID {
			some = append(some, 0)
			continue
		}
		some = append(some, s.record.Index)
	}
	slices.Sort(some)
	return l.prepare(ctx, p, some)
}

// record writes the record on all claims except the coordinator, and fails the pending orders whose claim cannot be
// written.
func (l *Launcher) record(ctx context.Context, rec Record, pending []*pendingOrder) []*pendingOrder {
	errs := make([]error, len(pending))
	var group errgroup.Group
	group.SetLimit(20)
	for i, s := range pending {
		mine := rec
		mine.Index, mine.Origin, mine.PreviousTokens = i+1, s.order.origin(), s.record.previousTokens()
		group.Go(func() error {
			if errs[i] = l.opts.RecordStore.Replace(ctx, s.order.Claim, s.record, mine); errs[i] == nil {
				s.record, s.undecided = mine, true
			}
			return nil
		})
	}
	_ = group.Wait() // errors are in errs
	var recorded []*pendingOrder
	for i, s := range pending {
		if errs[i] == nil {
			recorded = append(recorded, s)
			continue
		}
		s.recordRead = false // it may have been written in spite of the error, or another process wrote it
		l.fail(s, fmt.Errorf("recording the launch for NodeClaim %q: %w", s.name(), errs[i]))
	}
	return recorded
}

// prepare creates the launch templates and returns the request, for some indexes of the fleet launch or, if some is
// nil, for all.
func (l *Launcher) prepare(ctx context.Context, p *fleetLaunch, some indexSet) (request, error) {
	for _, v := range p.plan.variants {
		if err := l.ensure(ctx, p.plan.templates[v]); err != nil {
			return request{}, l.templateError(err)
		}
	}
	size := p.record.Size
	if some != nil {
		size = len(some)
	}
	subnets := l.chooseSubnets(p, size, l.opts.Subnets.Choose)
	if len(subnets) == 0 {
		subnets = l.chooseSubnets(p, size, l.opts.Subnets.ChooseCrowded)
	}
	sent := p.plan.request(p.record, some, subnets)
	if len(sent.LaunchTemplateConfigs) == 0 {
		l.markFull(p.plan)
		return request{}, &cloud.InsufficientCapacityError{Message: fmt.Sprintf("EC2NodeClass %q has no subnet with free addresses in %v",
			p.plan.order.Class.Name, p.plan.zones())}
	}
	return request{Made: p.plan.order.origin(), Sent: sent, Holds: p.plan.holds()}, nil
}

// templateError returns the claims' error for a launch template that cannot be created.
func (l *Launcher) templateError(err error) error {
	if f := callResultOf(err); f == throttled || f == lost {
		return err
	}
	return refusedError(err)
}
