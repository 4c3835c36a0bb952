package launch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"github.com/karpenter-go/karpenter/internal/cloud"
)

// purchase is what is asked for under one token. Its states:
//
//	recorded --ask--> answered                        decided: instances, or why not
//	             |--> throttled: ask again            the stored request
//	             |--> lost: ask again             the stored request; now and then look whether all instances are there
//	             |--> refused: decided, but if an answer was lost before: undecided, asked again with a request of the day
//	             `--> mismatched: search --complete, or Settle is over--> decided
//	there is no request to ask with, since nothing is on sale or a template cannot be made: undecided, until nobody can be
//	asking any more and Settle is over; then as mismatched
//	out of time: undecided; whoever asks next goes on
//
// That nothing was bought is for EC2 to say, by its answer to the token; that no search shows an instance proves nothing, it
// may come to light later. Only where nobody can ask, or the token was used by a request that nobody has any more, must a
// search do. As long as a purchase is undecided none of its claims is given up.
type purchase struct {
	entry Entry // Place is that of whoever made it

	gate    gate // held while it is being decided
	plan    *plan
	request *ec2.CreateFleetInput
	places  places // that the request is for
	// asked is when the request was last sent; unsure is set when an answer may have been lost.
	asked   time.Time
	unsure  bool
	aside   map[string]int64 // addresses set aside, by subnet
	decided *outcome
}

// outcome is what came of a purchase.
type outcome struct {
	instances []bought // by id
	places    places   // that they are for
	refusals  []ec2types.CreateFleetError
	// err is why EC2 refused the request as a whole.
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
	entry.Size, entry.At = len(seats), l.opts.Clock.Now().UTC()
	p := &purchase{entry: entry, plan: seats[0].plan, asked: entry.At, gate: newGate()}
	if err := l.prepare(ctx, p); err != nil {
		for _, s := range seats {
			l.fail(s, err)
		}
		return nil
	}
	p.gate.tryEnter() // until it is sent or given up; nobody else has it yet
	l.mu.Lock()
	l.purchases[entry.Token()] = p
	l.mu.Unlock()
	recorded := l.record(ctx, entry, seats)
	if len(recorded) < len(seats) && !l.narrow(ctx, p, recorded) {
		p.gate.leave()
		return nil
	}
	seats = recorded
	for _, s := range seats {
		s.open = true
	}
	p.gate.leave()
	out, err := l.decide(ctx, p, seats[0])
	if err != nil {
		for _, s := range seats {
			l.fail(s, err)
		}
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

// narrow has a purchase that is not on record on all of its claims ask for those only on which it is. The token is not
// given up for another one: whoever else reads it on a claim may be asking with it already, and then it is one purchase.
// False says that there is nothing to ask for now; who comes again goes on with what is on record.
func (l *Launcher) narrow(ctx context.Context, p *purchase, recorded []*seat) bool {
	l.giveBack(p)
	p.request, p.places, p.unsure = nil, nil, true
	if len(recorded) == 0 {
		return false
	}
	p.plan = recorded[0].plan // which names its claim, should it be the only one
	for _, s := range recorded {
		p.places = append(p.places, s.entry.Place)
	}
	slices.Sort(p.places)
	if err := l.prepare(ctx, p); err != nil {
		for _, s := range recorded {
			s.open = true
			l.fail(s, p.undecided(err))
		}
		return false
	}
	return true
}

// record writes the entry on all claims, and fails the seats of those on which it cannot be written.
func (l *Launcher) record(ctx context.Context, entry Entry, seats []*seat) []*seat {
	errs := make([]error, len(seats))
	var group errgroup.Group
	group.SetLimit(20)
	for i, s := range seats {
		mine := entry
		mine.Place, mine.Made = i, s.order.origin()
		group.Go(func() error {
			if errs[i] = l.opts.Recorder.Record(ctx, s.order.Claim, s.entry, mine); errs[i] == nil {
				s.entry = mine
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
		s.known = false // it may have been written all the same, or somebody else has written
		l.fail(s, fmt.Errorf("recording the purchase for NodeClaim %q: %w", s.name(), errs[i]))
	}
	return recorded
}

// prepare makes the launch templates and the request, which is not changed from then on.
func (l *Launcher) prepare(ctx context.Context, p *purchase) error {
	for _, v := range p.plan.variants {
		if err := l.ensure(ctx, p.plan.templates[v]); err != nil {
			return l.templateError(err)
		}
	}
	size := p.entry.Size
	if p.places != nil {
		size = len(p.places)
	}
	subnets := l.choose(p, size, l.opts.Subnets.Choose)
	if len(subnets) == 0 {
		subnets = l.choose(p, size, l.opts.Subnets.ChooseCrowded)
	}
	request := p.plan.request(p.entry, p.places, subnets)
	if len(request.LaunchTemplateConfigs) == 0 {
		l.markFull(p.plan)
		return &cloud.InsufficientCapacityError{Message: fmt.Sprintf("EC2NodeClass %q has no subnet with free addresses in %v", p.plan.order.Class.Name, p.plan.zones())}
	}
	p.request = request
	return nil
}

// templateError is the claims' error for a launch template that cannot be made.
func (l *Launcher) templateError(err error) error {
	if f := fateOf(err); f == throttled || f == lost {
		return err
	}
	return refusedError(err)
}

// resume decides the purchase that the claim has on record, and returns the claim's instance; nil if nothing came of it.
func (l *Launcher) resume(ctx context.Context, s *seat) (*bought, error) {
	l.mu.Lock()
	p := l.purchases[s.entry.Token()]
	if p == nil {
		p = &purchase{entry: s.entry, asked: s.entry.At, unsure: true, gate: newGate()}
		l.purchases[s.entry.Token()] = p
	}
	l.mu.Unlock()
	out, err := l.decide(ctx, p, s)
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

// decide finds out what comes of the purchase, once. A purchase that another process began has no request, nor has one that
// was refused after an answer was lost: the order of one of its claims, at its place, gives one.
func (l *Launcher) decide(ctx context.Context, p *purchase, of *seat) (*outcome, error) {
	if err := p.gate.enter(ctx); err != nil {
		return nil, err
	}
	defer p.gate.leave()
	if p.decided != nil {
		return p.decided, nil
	}
	out, err := l.settle(ctx, p, of)
	if err != nil {
		return nil, p.undecided(err)
	}
	p.decided = out
	if p.plan != nil {
		marks(l.opts.Unavailable, out.refusals, p.plan.order.Class.Name, &p.plan.selection)
	}
	l.giveBack(p)
	l.tellRefusals(p, out)
	return out, nil
}

func (l *Launcher) settle(ctx context.Context, p *purchase, of *seat) (*outcome, error) {
	if p.request != nil {
		return l.ask(ctx, p)
	}
	instances, err := l.tagged(ctx, p.entry.Token())
	if err != nil {
		return nil, err
	}
	if out := found(instances); out.complete(p.entry.Size) {
		return out, nil
	}
	entries, err := l.opts.Recorder.Entries(ctx)
	if err != nil {
		return nil, err
	}
	// Claims that are gone, or on which it was never written, are not bought for.
	p.places = among(entries, of.entry)
	if p.plan, err = newPlan(of.order, l.opts.Region); err == nil {
		err = l.prepare(ctx, p)
	}
	if err != nil {
		if until := p.last().Add(l.opts.Settle); l.opts.Clock.Now().Before(until) {
			return nil, fmt.Errorf("it may have been asked for until %s, and cannot be now: %w", p.last().Format(time.RFC3339), err)
		}
		return l.search(ctx, p)
	}
	// Whoever began it may have come to the end that nothing came of it, and have gone on to another purchase.
	if err := l.stands(ctx, p, of.order); err != nil {
		l.giveBack(p)
		p.request = nil
		return nil, err
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

// ask sends the request until it is answered.
func (l *Launcher) ask(ctx context.Context, p *purchase) (*outcome, error) {
	const most = 5
	losses, absences := 0, 0
	for try := 1; ; try++ {
		p.asked = l.opts.Clock.Now()
		out, err := send(ctx, l, "CreateFleet", l.opts.EC2.CreateFleet, p.request)
		switch fateOf(err) {
		case passed:
			return &outcome{instances: boughtOf(out, p.plan.order.origin()), places: p.places, refusals: out.Errors}, nil
		case mismatched:
			return l.search(ctx, p)
		case lost:
			p.unsure = true
			if losses++; losses%most == 0 && ctx.Err() == nil {
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

// refuse ends a purchase that EC2 will not make. If an earlier answer was lost, it may have made it before: then the token is
// asked with again, by a request of the day, when a claim comes again. EC2 takes that only if it has made nothing.
func (l *Launcher) refuse(ctx context.Context, p *purchase, err error) (*outcome, error) {
	if !p.unsure {
		return &outcome{err: err}, nil
	}
	if out := l.shown(ctx, p); out != nil {
		return out, nil
	}
	l.giveBack(p)
	p.request = nil
	return nil, refusedError(err)
}

// remake makes the launch templates again that EC2 does not see. A failure shows with the next request.
func (l *Launcher) remake(ctx context.Context, p *purchase) {
	for _, v := range p.plan.variants {
		l.forget(ctx, p.plan.templates[v].name)
		_ = l.ensure(ctx, p.plan.templates[v])
	}
}

// deal gives the instances to the claims, and returns the seats that need another attempt.
func (l *Launcher) deal(out *outcome, seats []*seat) []*seat {
	var rest []*seat
	for _, s := range seats {
		s.open = false
		b := out.at(s.entry.Place, s.name())
		switch {
		case b != nil && !b.gone:
			l.succeed(s, *b)
		case out.err != nil:
			l.fail(s, refusedError(out.err))
		case out.searched:
			rest = append(rest, s)
		default:
			l.fail(s, fleetError(out.refusals))
		}
	}
	return rest
}
