package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/semaphore"

	"github.com/karpenter-go/karpenter/cloud"
)

// fleetLaunch is a fleet launch: the requests that are sent with one token, and their result. Its states:
//
//	recorded, the request on the coordinator --send--> response: decided, instances or an error
//	             |--> throttled: the same request again
//	             |--> lost: the same request again, unless all instances are shown by now
//	             |--> no capacity: decided; if a response was lost before: as refused
//	             |--> refused: undecided; a request from the current class is sent as well
//	             `--> mismatched: the previous request; without one: search --complete, or Settle is over--> decided
//	no request is recorded, and none can be made, since no offering is available or a template cannot be created:
//	undecided until no process can be sending any more and Settle is over; then as mismatched
//	timeout: undecided; the next call continues
//
// Only EC2's response to the token shows that nothing was launched. A search that finds no instance proves nothing,
// because the instance may appear later. A search decides only if no request can be made, or if the token was used by a
// request that is no longer known. While a fleet launch is undecided, no claim gets the error after which it is
// deleted. A claim without a machine at its launch timeout is deleted in any case, without a call to this package; its
// instance is a leak then.
type fleetLaunch struct {
	record Record // Index is that of the claim that created the object

	mu    *semaphore.Weighted // held while the fleet launch is being decided
	order *Order              // of one of its claims
	plan  *plan               // plan of its request; nil if another process made the request
	// requests are those that may have been sent, and turn is the index of the next one to send. kept is their stored
	// form on the coordinator, empty if they are not stored.
	requests requests
	next     int
	stored   string
	// refused is set if EC2 has refused the request at turn. refusal is the last refusal, at refusedAt, and refusals
	// counts them.
	refused   bool
	refusal   error
	refusals  atomic.Int32
	refusedAt time.Time
	// sentAt is when a request was last sent. maybeSent is set when a response may have been lost.
	sentAt    time.Time
	maybeSent bool
	reserved  map[string]reservedAddresses // reserved addresses, by subnet
	outcome   *outcome
}

// selection returns the capacity type and tenancy of the launch, without the ways.
func (p *fleetLaunch) selection() *Selection {
	s := &Selection{CapacityType: p.requests[p.next].capacityType(),
		Tenancy: TenancyOf(cloud.NeedOf(p.order.Claim)), Placement: p.order.Placement}
	if p.plan != nil {
		s.Partition = p.plan.selection.Partition
	}
	return s
}

// outcome is the result of a fleet launch.
type outcome struct {
	instances []launched // sorted by ID
	indexes   indexSet   // the indexes that they are for
	refusals  []ec2types.CreateFleetError
	// err is set if EC2 reported that nothing of the request is available.
	err error
	// searched is set if the instances were found by their tag. The cause of missing instances is unknown then.
	searched bool
}

// instanceFor returns the instance of the claim at an index, or nil if there is none.
func (o *outcome) instanceFor(index int, claim string) *launched {
	for i := range o.instances {
		if o.instances[i].claim == claim {
			return &o.instances[i]
		}
	}
	i, wanted := o.indexes.index(index)
	if !wanted || i >= len(o.instances) || o.instances[i].claim != "" {
		return nil
	}
	return &o.instances[i]
}

// searchOutcome returns the outcome of a search.
func searchOutcome(instances []launched) *outcome {
	out := &outcome{instances: instances, searched: true}
	if len(instances) > 0 {
		out.indexes = indexSetOf(instances[0].indexes)
	}
	return out
}

// notRequested returns the outcome of a fleet launch that was not and will not be requested.
func notRequested() *outcome { return &outcome{indexes: indexSet{}} }

// complete reports whether there can be no further instances.
func (o *outcome) complete(size int) bool {
	if o.indexes != nil {
		size = len(o.indexes)
	}
	return len(o.instances) >= size
}

// maxAttempts is the maximum number of attempts of one batch. After that, its claims get an error and are retried.
const maxAttempts = 5

// launchBatch launches for claims with equal plans.
func (l *Launcher) launchBatch(_ string, pending []*pendingOrder) {
	ctx, cancel := context.WithTimeout(context.Background(), launchTimeout)
	defer cancel()
	slices.SortFunc(pending, func(a, b *pendingOrder) int { return cmp.Compare(a.name(), b.name()) })
	rec := Record{Batch: newBatch()}
	for rec.Attempt = 1; len(pending) > 0; rec.Attempt++ {
		if rec.Attempt > maxAttempts {
			for _, s := range pending {
				l.fail(s, fmt.Errorf("launching for NodeClaim %q: no instance after %d attempts", s.name(), maxAttempts))
			}
			return
		}
		pending = l.attempt(ctx, rec, pending)
	}
}

// attempt makes one fleet launch and returns the pending orders that need another one.
func (l *Launcher) attempt(ctx context.Context, rec Record, pending []*pendingOrder) []*pendingOrder {
	coordinator := pending[0]
	rec.Size, rec.RecordedAt = len(pending), l.opts.Clock.Now().UTC()
	rec.Coordinator = Coordinator{Claim: coordinator.name(), UID: coordinator.order.Claim.UID, PreviousToken: coordinator.record.Token()}
	p := &fleetLaunch{record: rec, plan: coordinator.plan, order: coordinator.order, sentAt: rec.RecordedAt, mu: semaphore.NewWeighted(1)}
	own, err := l.prepare(ctx, p, nil)
	if err != nil {
		l.failAll(pending, err)
		return nil
	}
	p.mu.TryAcquire(1) // held until the launch is recorded or abandoned; no other goroutine has the object yet
	l.mu.Lock()
	l.launches[rec.Token()] = p
	l.mu.Unlock()
	pending = l.commit(ctx, p, own, pending)
	p.mu.Release(1)
	if len(pending) == 0 {
		return nil
	}
	out, err := l.decide(ctx, p, pending[0])
	if err != nil {
		l.failAll(pending, err)
		return nil
	}
	return l.assign(out, l.withCurrentRecord(ctx, p, pending))
}

// withCurrentRecord returns the pending orders whose claims still have the fleet launch on record. It is called after a
// response was lost. Another process may have determined that nothing came of this fleet launch, and have started
// another one, whose instance the claim has.
func (l *Launcher) withCurrentRecord(ctx context.Context, p *fleetLaunch, pending []*pendingOrder) []*pendingOrder {
	if !p.maybeSent {
		return pending
	}
	return slices.DeleteFunc(pending, func(s *pendingOrder) bool {
		err := l.checkRecord(ctx, p, s.order)
		if err != nil {
			s.recordRead = false
			l.fail(s, err)
		}
		return err != nil
	})
}

// checkRecord checks that the claim of an order has the fleet launch on record. Errors: ErrChanged, those of the
// RecordStore.
func (l *Launcher) checkRecord(ctx context.Context, p *fleetLaunch, o *Order) error {
	now, err := l.opts.RecordStore.Read(ctx, o.Claim)
	if err == nil && now.Token() != p.record.Token() {
		err = fmt.Errorf("%w: NodeClaim %q is part of %s by now", ErrChanged, o.Claim.Name, now.Token())
	}
	return err
}

// resumeFor decides the fleet launch that the claim has on record, and returns the claim's instance, or nil if there is
// none.
func (l *Launcher) resumeFor(ctx context.Context, s *pendingOrder) (*launched, error) {
	l.mu.Lock()
	p := l.launches[s.record.Token()]
	if p == nil {
		p = &fleetLaunch{record: s.record, order: s.order, sentAt: s.record.RecordedAt, maybeSent: true, mu: semaphore.NewWeighted(1)}
		l.launches[s.record.Token()] = p
	}
	l.mu.Unlock()
	out, err := l.decide(ctx, p, s)
	if errors.Is(err, errExcluded) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := out.instanceFor(s.record.Index, s.name())
	if b == nil || b.terminating {
		return nil, nil
	}
	if p.maybeSent {
		if err := l.checkRecord(ctx, p, s.order); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// undecided returns the claims' error while the result is unknown. It is never a cloud.InsufficientCapacityError, after
// which the claim is deleted: then no process would use the token again, and a launched instance would be a leak.
func (p *fleetLaunch) undecided(err error) error {
	var soldOut *cloud.InsufficientCapacityError
	if errors.As(err, &soldOut) {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("launch %s is not decided yet: %w", p.record.Token(), err)
}

// decide determines the outcome of the fleet launch, once. If it has no request, because another process started it,
// the stored one is used, or else one is made from the order of one of its claims, at its index. A refusal is returned
// to all callers that waited for it, and to those that call during the pause after it.
func (l *Launcher) decide(ctx context.Context, p *fleetLaunch, of *pendingOrder) (*outcome, error) {
	refusals := p.refusals.Load()
	if err := acquire(ctx, p.mu); err != nil {
		return nil, err
	}
	defer p.mu.Release(1)
	switch {
	case p.outcome != nil:
		return p.outcome, nil
	case p.refusals.Load() != refusals, l.opts.Clock.Since(p.refusedAt) < p.refusalPause():
		return nil, p.undecided(p.refusal)
	}
	out, err := l.settle(ctx, p, of)
	if err != nil {
		return nil, p.undecided(err)
	}
	p.outcome = out
	// After a lost response it may repeat an old response of EC2.
	if !p.maybeSent && len(out.refusals) > 0 && !markReserved(&l.opts, p.requests[p.next].Holds, out.refusals, p.selection()) {
		markUnavailable(l.opts.Unavailable, out.refusals, p.order.Class.Name, p.selection())
	}
	l.releaseAddresses(p)
	l.reportRefusals(p, out)
	p.plan, p.order, p.requests, p.stored = nil, nil, nil, "" // frees memory
	return out, nil
}

// errExcluded means that the fleet launch has never been for the claim and never will be.
var errExcluded = errors.New("it is for other claims")

// excludes reports whether the requests leave out a claim that has the launch on record. Its record was written
// although the write returned an error.
func (p *fleetLaunch) excludes(of *pendingOrder) bool {
	return p.stored != "" && !slices.ContainsFunc(p.requests, func(r request) bool {
		_, wanted := r.indexes().index(of.record.Index)
		return wanted
	})
}

func (l *Launcher) settle(ctx context.Context, p *fleetLaunch, of *pendingOrder) (*outcome, error) {
	if p.requests == nil {
		if out, err := l.resume(ctx, p, of); out != nil || err != nil {
			return out, err
		}
	}
	if p.excludes(of) {
		return nil, errExcluded
	}
	if p.refused {
		if err := l.addCurrentRequest(ctx, p, of); err != nil {
			return nil, err
		}
		p.refused = false
	}
	if p.maybeSent {
		// The process that started it may have determined that nothing came of it, and have started another fleet
		// launch.
		if err := l.checkRecord(ctx, p, of.order); err != nil {
			return nil, err
		}
	}
	return l.sendRequest(ctx, p)
}

// lastSendBy returns when a request may last have been sent, by any process.
func (p *fleetLaunch) lastSendBy() time.Time {
	if begun := p.record.RecordedAt.Add(launchTimeout); begun.After(p.sentAt) {
		return begun
	}
	return p.sentAt
}

// sendRequest sends the request until there is a response. A request that does not match the token was not executed: an
// earlier one was.
func (l *Launcher) sendRequest(ctx context.Context, p *fleetLaunch) (*outcome, error) {
	const most = 5
	absences := 0
	for try := 1; ; try++ {
		p.sentAt = l.opts.Clock.Now()
		r := p.requests[p.next]
		out, err := send(ctx, l, "CreateFleet", l.opts.EC2.CreateFleet, r.Sent)
		switch callResultOf(err) {
		case executed:
			return &outcome{instances: launchedOf(out, r), indexes: r.indexes(), refusals: out.Errors}, nil
		case mismatched:
			if another, err := l.previousRequest(ctx, p); err != nil {
				return nil, err
			} else if !another {
				return l.search(ctx, p)
			}
			continue
		case lost:
			p.maybeSent = true
			if ctx.Err() == nil { // an endpoint without support for client tokens would launch again
				if out := l.shown(ctx, p); out != nil {
					return out, nil
				}
			}
		case templateMissing:
			if absences++; absences == most {
				return l.handleRefusal(ctx, p, err)
			}
			l.recreateTemplates(ctx, p)
		case refused:
			return l.handleRefusal(ctx, p, err)
		}
		if waited := backOff(ctx, l.opts.Clock, try); waited != nil {
			return nil, errors.Join(err, waited)
		}
	}
}

// handleRefusal handles a refused request. If EC2 reports that nothing of it is available, the fleet launch is decided,
// unless an earlier send may have launched it. No other refusal decides it, because another process may have succeeded,
// or may succeed, with the same token. So the request is sent again when a claim is retried, and also a request from
// the current class, which EC2 accepts only if nothing was launched.
func (l *Launcher) handleRefusal(ctx context.Context, p *fleetLaunch, err error) (*outcome, error) {
	l.reportRefused(p, err)
	failed := refusedError(err)
	var soldOut *cloud.InsufficientCapacityError
	if !p.maybeSent && errors.As(failed, &soldOut) {
		markRefused(l.opts.Reserved, p.requests[p.next])
		return &outcome{err: failed, indexes: p.requests[p.next].indexes()}, nil
	}
	if p.maybeSent {
		if out := l.shown(ctx, p); out != nil {
			return out, nil
		}
	}
	if p.refused = p.stored != ""; !p.refused {
		l.releaseAddresses(p)
		p.requests = nil
	}
	p.refusal, p.refusedAt = failed, l.opts.Clock.Now()
	p.refusals.Add(1)
	return nil, failed
}

// recreateTemplates creates the launch templates again that EC2 does not find, as far as their contents are known. An
// error shows with the next request.
func (l *Launcher) recreateTemplates(ctx context.Context, p *fleetLaunch) {
	plan := p.plan
	if plan == nil {
		var err error
		if plan, err = newPlan(p.order, l.opts.Region); err != nil {
			return
		}
	}
	needed := p.requests[p.next].templates()
	for _, v := range plan.variants {
		t := plan.templates[v]
		if !slices.Contains(needed, t.name) {
			continue
		}
		l.forget(ctx, t.name)
		_ = l.ensure(ctx, t)
	}
}

// assign assigns the instances to the claims, and returns the pending orders that need another attempt.
func (l *Launcher) assign(out *outcome, pending []*pendingOrder) []*pendingOrder {
	var rest []*pendingOrder
	for _, s := range pending {
		s.undecided = false
		b := out.instanceFor(s.record.Index, s.name())
		_, wanted := out.indexes.index(s.record.Index)
		switch {
		case b != nil && !b.terminating:
			l.succeed(s, *b)
		case !wanted:
			rest = append(rest, s)
		case out.err != nil:
			l.fail(s, out.err)
		case out.searched:
			rest = append(rest, s)
		default:
			l.fail(s, fleetError(out.refusals))
		}
	}
	return rest
}
