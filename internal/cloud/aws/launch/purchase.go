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

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// purchase is a fleet launch: the requests that are sent with one token, and their result. Its states:
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
type purchase struct {
	entry Entry // Place is that of the claim that created the object

	gate  gate   // held while the fleet launch is being decided
	order *Order // of one of its claims
	plan  *plan  // plan of its request; nil if another process made the request
	// requests are those that may have been sent, and turn is the index of the next one to send. kept is their stored
	// form on the coordinator, empty if they are not stored.
	requests requests
	turn     int
	kept     string
	// refused is set if EC2 has refused the request at turn. refusal is the last refusal, at refusedAt, and refusals
	// counts them.
	refused   bool
	refusal   error
	refusals  atomic.Int32
	refusedAt time.Time
	// asked is when a request was last sent. unsure is set when a response may have been lost.
	asked   time.Time
	unsure  bool
	aside   map[string]held // reserved addresses, by subnet
	decided *outcome
}

// selection returns the capacity type and tenancy of the launch, without the ways.
func (p *purchase) selection() *Selection {
	return &Selection{CapacityType: string(p.requests[p.turn].Sent.TargetCapacitySpecification.DefaultTargetCapacityType),
		Tenancy: tenancyOf(cloud.NeedOf(p.order.Claim))}
}

// outcome is the result of a fleet launch.
type outcome struct {
	instances []bought // sorted by ID
	places    places   // the places that they are for
	refusals  []ec2types.CreateFleetError
	// err is set if EC2 reported that nothing of the request is available.
	err error
	// searched is set if the instances were found by their tag. The cause of missing instances is unknown then.
	searched bool
}

// at returns the instance of the claim at a place, or nil if there is none.
func (o *outcome) at(place int, claim string) *bought {
	for i := range o.instances {
		if o.instances[i].claim == claim {
			return &o.instances[i]
		}
	}
	i, wanted := o.places.index(place)
	if !wanted || i >= len(o.instances) || o.instances[i].claim != "" {
		return nil
	}
	return &o.instances[i]
}

// found returns the outcome of a search.
func found(instances []bought) *outcome {
	out := &outcome{instances: instances, searched: true}
	if len(instances) > 0 {
		out.places = placesOf(instances[0].places)
	}
	return out
}

// nothing returns the outcome of a fleet launch that was not and will not be requested.
func nothing() *outcome { return &outcome{places: places{}} }

// complete reports whether there can be no further instances.
func (o *outcome) complete(size int) bool {
	if o.places != nil {
		size = len(o.places)
	}
	return len(o.instances) >= size
}

// mostAttempts is the maximum number of attempts of one batch. After that, its claims get an error and are retried.
const mostAttempts = 5

// buy launches for claims with equal plans.
func (l *Launcher) buy(_ string, seats []*seat) {
	ctx, cancel := context.WithTimeout(context.Background(), purchaseFor)
	defer cancel()
	slices.SortFunc(seats, func(a, b *seat) int { return cmp.Compare(a.name(), b.name()) })
	entry := Entry{Batch: newBatch()}
	for entry.Attempt = 1; len(seats) > 0; entry.Attempt++ {
		if entry.Attempt > mostAttempts {
			for _, s := range seats {
				l.fail(s, fmt.Errorf("launching for NodeClaim %q: no instance after %d attempts", s.name(), mostAttempts))
			}
			return
		}
		seats = l.attempt(ctx, entry, seats)
	}
}

// attempt makes one fleet launch and returns the seats that need another one.
func (l *Launcher) attempt(ctx context.Context, entry Entry, seats []*seat) []*seat {
	lead := seats[0]
	entry.Size, entry.At = len(seats), l.opts.Clock.Now().UTC()
	entry.Lead = Lead{Claim: lead.name(), UID: lead.order.Claim.UID, Was: lead.entry.Token()}
	p := &purchase{entry: entry, plan: lead.plan, order: lead.order, asked: entry.At, gate: newGate()}
	own, err := l.prepare(ctx, p, nil)
	if err != nil {
		l.failAll(seats, err)
		return nil
	}
	p.gate.tryEnter() // held until the launch is recorded or abandoned; no other goroutine has the object yet
	l.mu.Lock()
	l.purchases[entry.Token()] = p
	l.mu.Unlock()
	seats = l.commit(ctx, p, own, seats)
	p.gate.leave()
	if len(seats) == 0 {
		return nil
	}
	out, err := l.decide(ctx, p, seats[0])
	if err != nil {
		l.failAll(seats, err)
		return nil
	}
	return l.deal(out, l.still(ctx, p, seats))
}

// still returns the seats whose claims still have the fleet launch on record. It is called after a response was lost.
// Another process may have determined that nothing came of this fleet launch, and have started another one, whose
// instance the claim has.
func (l *Launcher) still(ctx context.Context, p *purchase, seats []*seat) []*seat {
	if !p.unsure {
		return seats
	}
	return slices.DeleteFunc(seats, func(s *seat) bool {
		err := l.stands(ctx, p, s.order)
		if err != nil {
			s.known = false
			l.fail(s, err)
		}
		return err != nil
	})
}

// stands checks that the claim of an order has the fleet launch on record. Errors: ErrChanged, those of the Recorder.
func (l *Launcher) stands(ctx context.Context, p *purchase, o *Order) error {
	now, err := l.opts.Recorder.Recorded(ctx, o.Claim)
	if err == nil && now.Token() != p.entry.Token() {
		err = fmt.Errorf("%w: NodeClaim %q is part of %s by now", ErrChanged, o.Claim.Name, now.Token())
	}
	return err
}

// resume decides the fleet launch that the claim has on record, and returns the claim's instance, or nil if there is
// none.
func (l *Launcher) resume(ctx context.Context, s *seat) (*bought, error) {
	l.mu.Lock()
	p := l.purchases[s.entry.Token()]
	if p == nil {
		p = &purchase{entry: s.entry, order: s.order, asked: s.entry.At, unsure: true, gate: newGate()}
		l.purchases[s.entry.Token()] = p
	}
	l.mu.Unlock()
	out, err := l.decide(ctx, p, s)
	if errors.Is(err, errLeftOut) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	b := out.at(s.entry.Place, s.name())
	if b == nil || b.gone {
		return nil, nil
	}
	if p.unsure {
		if err := l.stands(ctx, p, s.order); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// undecided returns the claims' error while the result is unknown. It is never a cloud.InsufficientCapacityError, after
// which the claim is deleted: then no process would use the token again, and a launched instance would be a leak.
func (p *purchase) undecided(err error) error {
	var soldOut *cloud.InsufficientCapacityError
	if errors.As(err, &soldOut) {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("launch %s is not decided yet: %w", p.entry.Token(), err)
}

// decide determines the outcome of the fleet launch, once. If it has no request, because another process started it,
// the stored one is used, or else one is made from the order of one of its claims, at its place. A refusal is returned
// to all callers that waited for it, and to those that call during the pause after it.
func (l *Launcher) decide(ctx context.Context, p *purchase, of *seat) (*outcome, error) {
	refusals := p.refusals.Load()
	if err := p.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	switch {
	case p.decided != nil:
		return p.decided, nil
	case p.refusals.Load() != refusals, l.opts.Clock.Since(p.refusedAt) < p.pause():
		return nil, p.undecided(p.refusal)
	}
	out, err := l.settle(ctx, p, of)
	if err != nil {
		return nil, p.undecided(err)
	}
	p.decided = out
	if !p.unsure && len(out.refusals) > 0 { // otherwise it may repeat an old response of EC2
		marks(l.opts.Unavailable, out.refusals, p.order.Class.Name, p.selection())
	}
	l.giveBack(p)
	l.tellRefusals(p, out)
	p.plan, p.order, p.requests, p.kept = nil, nil, nil, "" // frees memory
	return out, nil
}

// errLeftOut means that the fleet launch has never been for the claim and never will be.
var errLeftOut = errors.New("it is for other claims")

// leavesOut reports whether the requests leave out a claim that has the launch on record. Its record was written
// although the write returned an error.
func (p *purchase) leavesOut(of *seat) bool {
	return p.kept != "" && !slices.ContainsFunc(p.requests, func(r request) bool {
		_, wanted := r.places().index(of.entry.Place)
		return wanted
	})
}

func (l *Launcher) settle(ctx context.Context, p *purchase, of *seat) (*outcome, error) {
	if p.requests == nil {
		if out, err := l.takeOver(ctx, p, of); out != nil || err != nil {
			return out, err
		}
	}
	if p.leavesOut(of) {
		return nil, errLeftOut
	}
	if p.refused {
		if err := l.another(ctx, p, of); err != nil {
			return nil, err
		}
		p.refused = false
	}
	if p.unsure {
		// The process that started it may have determined that nothing came of it, and have started another fleet
		// launch.
		if err := l.stands(ctx, p, of.order); err != nil {
			return nil, err
		}
	}
	return l.ask(ctx, p)
}

// last returns when a request may last have been sent, by any process.
func (p *purchase) last() time.Time {
	if begun := p.entry.At.Add(purchaseFor); begun.After(p.asked) {
		return begun
	}
	return p.asked
}

// ask sends the request until there is a response. A request that does not match the token was not executed: an earlier
// one was.
func (l *Launcher) ask(ctx context.Context, p *purchase) (*outcome, error) {
	const most = 5
	absences := 0
	for try := 1; ; try++ {
		p.asked = l.opts.Clock.Now()
		r := p.requests[p.turn]
		out, err := send(ctx, l, "CreateFleet", l.opts.EC2.CreateFleet, r.Sent)
		switch fateOf(err) {
		case passed:
			return &outcome{instances: boughtOf(out, r.Made), places: r.places(), refusals: out.Errors}, nil
		case mismatched:
			if another, err := l.turnBack(ctx, p); err != nil {
				return nil, err
			} else if !another {
				return l.search(ctx, p)
			}
			continue
		case lost:
			p.unsure = true
			if ctx.Err() == nil { // an endpoint without support for client tokens would launch again
				if out := l.shown(ctx, p); out != nil {
					return out, nil
				}
			}
		case untemplate:
			if absences++; absences == most {
				return l.refuse(ctx, p, err)
			}
			l.remake(ctx, p)
		case refused:
			return l.refuse(ctx, p, err)
		}
		if waited := backOff(ctx, l.opts.Clock, try); waited != nil {
			return nil, errors.Join(err, waited)
		}
	}
}

// refuse handles a refused request. If EC2 reports that nothing of it is available, the fleet launch is decided, unless
// an earlier send may have launched it. No other refusal decides it, because another process may have succeeded, or may
// succeed, with the same token. So the request is sent again when a claim is retried, and also a request from the
// current class, which EC2 accepts only if nothing was launched.
func (l *Launcher) refuse(ctx context.Context, p *purchase, err error) (*outcome, error) {
	l.tellRefused(p, err)
	failed := refusedError(err)
	var soldOut *cloud.InsufficientCapacityError
	if !p.unsure && errors.As(failed, &soldOut) {
		return &outcome{err: failed, places: p.requests[p.turn].places()}, nil
	}
	if p.unsure {
		if out := l.shown(ctx, p); out != nil {
			return out, nil
		}
	}
	if p.refused = p.kept != ""; !p.refused {
		l.giveBack(p)
		p.requests = nil
	}
	p.refusal, p.refusedAt = failed, l.opts.Clock.Now()
	p.refusals.Add(1)
	return nil, failed
}

// remake creates the launch templates again that EC2 does not find, as far as their contents are known. An error shows
// with the next request.
func (l *Launcher) remake(ctx context.Context, p *purchase) {
	plan := p.plan
	if plan == nil {
		var err error
		if plan, err = newPlan(p.order, l.opts.Region); err != nil {
			return
		}
	}
	needed := p.requests[p.turn].templates()
	for _, v := range plan.variants {
		t := plan.templates[v]
		if !slices.Contains(needed, t.name) {
			continue
		}
		l.forget(ctx, t.name)
		_ = l.ensure(ctx, t)
	}
}

// deal assigns the instances to the claims, and returns the seats that need another attempt.
func (l *Launcher) deal(out *outcome, seats []*seat) []*seat {
	var rest []*seat
	for _, s := range seats {
		s.open = false
		b := out.at(s.entry.Place, s.name())
		_, wanted := out.places.index(s.entry.Place)
		switch {
		case b != nil && !b.gone:
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
