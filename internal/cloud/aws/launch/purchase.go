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

// purchase is what is asked for under one token. Its states:
//
//	recorded, the request with its lead --ask--> answered                        decided: instances, or why not
//	             |--> throttled: ask again            the same request
//	             |--> lost: ask again             the same request, unless all instances are there by now
//	             |--> sold out: decided, but if an answer was lost before: as refused
//	             |--> refused: undecided, asked again with a request of the day as well
//	             `--> mismatched: the request before it; where there is none: search --complete, or Settle is over--> decided
//	no request is on record, and there is none to ask with, since nothing is on sale or a template cannot be made: undecided,
//	until nobody can be asking any more and Settle is over; then as mismatched
//	out of time: undecided; whoever asks next goes on
//
// That nothing was bought is for EC2 to say, by its answer to the token; that no search shows an instance proves nothing, it
// may come to light later. Only where nobody can ask, or the token was used by a request that nobody has any more, must a
// search do. As long as a purchase is undecided no claim is told the error after which it is given up. One that has no machine at
// its launch timeout is deleted all the same, which nobody asks this package about; what was bought for it is a leak then.
type purchase struct {
	entry Entry // Place is that of whoever made it

	gate  gate   // held while it is being decided
	order *Order // of one of its claims
	plan  *plan  // that its request is from; none if another process made that
	// requests that may have been sent, turn the one that is sent next. kept is how they stand with the lead, empty if they
	// do not.
	requests requests
	turn     int
	kept     string
	// refused is set if EC2 has refused the one whose turn it is; refusal is the last one, at refusedAt, refusals counts them.
	refused   bool
	refusal   error
	refusals  atomic.Int32
	refusedAt time.Time
	// asked is when a request was last sent; unsure is set when an answer may have been lost.
	asked   time.Time
	unsure  bool
	aside   map[string]held // addresses set aside, by subnet
	decided *outcome
}

// selection is what is bought, without the ways.
func (p *purchase) selection() *Selection {
	return &Selection{CapacityType: string(p.requests[p.turn].Sent.TargetCapacitySpecification.DefaultTargetCapacityType), Tenancy: tenancyOf(cloud.NeedOf(p.order.Claim))}
}

// outcome is what came of a purchase.
type outcome struct {
	instances []bought // by id
	places    places   // that they are for
	refusals  []ec2types.CreateFleetError
	// err is why nothing of what was asked for is left.
	err error
	// searched is set if the instances were found by their tag: why there are not more is not known.
	searched bool
}

// at is the instance of the claim at a place, nil if there is none.
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

// found is the outcome of a search.
func found(instances []bought) *outcome {
	out := &outcome{instances: instances, searched: true}
	if len(instances) > 0 {
		out.places = placesOf(instances[0].places)
	}
	return out
}

// nothing is the outcome of a purchase that nobody has made or will make.
func nothing() *outcome { return &outcome{places: places{}} }

// complete says that there can be no more instances.
func (o *outcome) complete(size int) bool {
	if o.places != nil {
		size = len(o.places)
	}
	return len(o.instances) >= size
}

// mostAttempts that one batch makes before its claims are told to come again.
const mostAttempts = 5

// buy is called with claims whose plans are alike.
func (l *Launcher) buy(_ string, seats []*seat) {
	ctx, cancel := context.WithTimeout(context.Background(), purchaseFor)
	defer cancel()
	slices.SortFunc(seats, func(a, b *seat) int { return cmp.Compare(a.name(), b.name()) })
	entry := Entry{Batch: newBatch()}
	for entry.Attempt = 1; len(seats) > 0; entry.Attempt++ {
		if entry.Attempt > mostAttempts {
			for _, s := range seats {
				l.fail(s, fmt.Errorf("buying for NodeClaim %q: no instance after %d attempts", s.name(), mostAttempts))
			}
			return
		}
		seats = l.attempt(ctx, entry, seats)
	}
}

// attempt makes one purchase and returns the seats that need another one.
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
	p.gate.tryEnter() // until it is on record or given up; nobody else has it yet
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

// still are the seats whose claims have the purchase on record. It is asked when an answer was lost: another process may
// have come to the end that nothing came of the purchase, and have gone on to another one, whose instance the claim has.
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

// stands checks that the claim of an order has the purchase on record. Errors: ErrChanged, those of the Recorder.
func (l *Launcher) stands(ctx context.Context, p *purchase, o *Order) error {
	now, err := l.opts.Recorder.Recorded(ctx, o.Claim)
	if err == nil && now.Token() != p.entry.Token() {
		err = fmt.Errorf("%w: NodeClaim %q is part of %s by now", ErrChanged, o.Claim.Name, now.Token())
	}
	return err
}

// resume decides the purchase that the claim has on record, and returns the claim's instance; nil if nothing came of it.
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

// undecided is the claims' error while it is not known what comes of the purchase. It is never the one after which a claim is
// given up, cloud.InsufficientCapacityError: then nobody would ask with the token again, and what was bought would be a leak.
func (p *purchase) undecided(err error) error {
	var soldOut *cloud.InsufficientCapacityError
	if errors.As(err, &soldOut) {
		err = errors.New(err.Error())
	}
	return fmt.Errorf("purchase %s is not decided yet: %w", p.entry.Token(), err)
}

// decide finds out what comes of the purchase, once. Where it has no request, since another process began it, the lead keeps
// one, or else the order of one of its claims, at its place, gives one. A refusal is shared by all who waited for it, and by those
// who come in the pause after it.
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
	if !p.unsure && len(out.refusals) > 0 { // else it may be EC2's answer of long ago, repeated
		marks(l.opts.Unavailable, out.refusals, p.order.Class.Name, p.selection())
	}
	l.giveBack(p)
	l.tellRefusals(p, out)
	p.plan, p.order, p.requests, p.kept = nil, nil, nil, "" // they are large, and no longer needed
	return out, nil
}

// errLeftOut says that the purchase has never been for the claim and never will be.
var errLeftOut = errors.New("it is for other claims")

// leavesOut says so of a claim that has it on record: its record was written without a sign of it.
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
		// Whoever began it may have come to the end that nothing came of it, and have gone on to another purchase.
		if err := l.stands(ctx, p, of.order); err != nil {
			return nil, err
		}
	}
	return l.ask(ctx, p)
}

// last is when its request may last have been sent, by whomever.
func (p *purchase) last() time.Time {
	if begun := p.entry.At.Add(purchaseFor); begun.After(p.asked) {
		return begun
	}
	return p.asked
}

// ask sends the request until it is answered. One that does not match the token was not carried out: an earlier one was.
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
			if ctx.Err() == nil { // an endpoint that does not know client tokens would launch again
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

// refuse ends a purchase of which EC2 says that nothing of it is left, unless it may have made it before. Another refusal ends
// nothing: somebody else may have got, or get, through with the same token. So it is asked with again, when a claim comes again,
// and by a request of the day as well, which EC2 takes only if it has made nothing.
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

// remake makes the launch templates again that EC2 does not see, as far as they are known. A failure shows with the next request.
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

// deal gives the instances to the claims, and returns the seats that need another attempt.
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
