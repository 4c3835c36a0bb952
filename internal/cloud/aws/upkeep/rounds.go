package upkeep

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Round is something that is done again and again.
type Round struct {
	// Name for logs, such as "spot prices".
	Name   string
	Period time.Duration
	Do     func(context.Context) error
}

// The periods of production.
const (
	typesEvery     = 12 * time.Hour
	onDemandEvery  = 12 * time.Hour
	spotEvery      = 15 * time.Minute
	imagesEvery    = 30 * time.Minute
	templatesEvery = 5 * time.Minute
	profilesEvery  = 30 * time.Minute
	memoryEvery    = 12 * time.Hour
	firstRetry     = 10 * time.Second // after a failure; doubled each time, up to the period
)

// Parts are what the rounds of production are made of.
type Parts struct {
	// Types, OnDemand and Spot refresh the instance types, the prices on demand and the spot prices (Types.Refresh,
	// Prices.RefreshOnDemand, Prices.RefreshSpot).
	Types, OnDemand, Spot func(context.Context) error
	// RefreshImages has images that are deprecated looked up again.
	RefreshImages func(context.Context) error
	// AdoptTemplates learns once of launch templates that are there; SweepTemplates deletes those that are idle.
	AdoptTemplates func(context.Context) error
	SweepTemplates func(context.Context) error
	// ForgetMemory forgets the memory seen with images that are no longer in use.
	ForgetMemory func(context.Context) error
	// Profiles is nil where IAM cannot be reached (--isolated-vpc).
	Profiles *Profiles
}

// Standard are the rounds of production.
func Standard(p Parts) []Round {
	rounds := []Round{
		{"instance types", typesEvery, p.Types},
		{"prices on demand", onDemandEvery, p.OnDemand},
		{"spot prices", spotEvery, p.Spot},
		{"images of aliases", imagesEvery, p.RefreshImages},
		{"launch templates", templatesEvery, after(p.AdoptTemplates, p.SweepTemplates)},
		{"memory of nodes", memoryEvery, p.ForgetMemory},
	}
	if p.Profiles != nil {
		rounds = append(rounds, Round{"instance profiles", profilesEvery, p.Profiles.Collect})
	}
	return rounds
}

// after does first until it succeeds, once, and then each time.
func after(first, then func(context.Context) error) func(context.Context) error {
	done := false
	return func(ctx context.Context) error {
		if !done {
			if err := first(ctx); err != nil {
				return err
			}
			done = true
		}
		return then(ctx)
	}
}

// Rounds does rounds side by side, on the leader only. It is a Runnable of controller-runtime's manager.
type Rounds struct {
	List []Round
	// Clock is the real one when nil.
	Clock clock.Clock
	// Failed is told of each failure, and of nil when a round works again, by several goroutines. It may be nil.
	Failed func(round string, err error)
}

// NeedLeaderElection says that only the leader does them.
func (r *Rounds) NeedLeaderElection() bool { return true }

// Start does all rounds at once and then each after its period, until the context ends.
func (r *Rounds) Start(ctx context.Context) error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	var all sync.WaitGroup
	for _, round := range r.List {
		all.Go(func() { r.keep(ctx, round) })
	}
	all.Wait()
	return nil
}

func (r *Rounds) keep(ctx context.Context, round Round) {
	failures := 0
	for ctx.Err() == nil {
		err := round.Do(ctx)
		if ctx.Err() != nil {
			return
		}
		wait := round.Period
		if err != nil {
			wait = min(round.Period, firstRetry<<min(failures, 20))
			failures++
		}
		if r.Failed != nil && (err != nil || failures > 0) {
			r.Failed(round.Name, err)
		}
		if err == nil {
			failures = 0
		}
		r.pause(ctx, wait)
	}
}

func (r *Rounds) pause(ctx context.Context, d time.Duration) {
	timer := r.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	}
}
