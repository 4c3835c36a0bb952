package upkeep

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Round is a periodic operation.
type Round struct {
	// Name is for logs, such as "spot prices".
	Name   string
	Period time.Duration
	Do     func(context.Context) error
}

// Periods in production.
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

// Parts are the operations of the production rounds.
type Parts struct {
	// Types, OnDemand and Spot refresh the instance types, the on-demand prices and the spot prices (Types.Refresh,
	// Prices.RefreshOnDemand, Prices.RefreshSpot).
	Types, OnDemand, Spot func(context.Context) error
	// WindowsOnDemand and WindowsSpot refresh the prices of Windows. Their failures do not hold back the others.
	WindowsOnDemand, WindowsSpot func(context.Context) error
	// RefreshImages reads deprecated images again.
	RefreshImages func(context.Context) error
	// AdoptTemplates loads existing launch templates once. SweepTemplates deletes idle ones.
	AdoptTemplates func(context.Context) error
	SweepTemplates func(context.Context) error
	// ForgetMemory drops memory observations for unused images.
	ForgetMemory func(context.Context) error
	// Profiles is nil if IAM cannot be reached (--isolated-vpc).
	Profiles *Profiles
}

// Standard returns the production rounds.
func Standard(p Parts) []Round {
	rounds := []Round{
		{"instance types", typesEvery, p.Types},
		{"prices on demand", onDemandEvery, p.OnDemand},
		{"spot prices", spotEvery, p.Spot},
		{"prices on demand of Windows", onDemandEvery, p.WindowsOnDemand},
		{"spot prices of Windows", spotEvery, p.WindowsSpot},
		{"images of aliases", imagesEvery, p.RefreshImages},
		{"launch templates", templatesEvery, after(p.AdoptTemplates, p.SweepTemplates)},
		{"memory of nodes", memoryEvery, p.ForgetMemory},
	}
	if p.Profiles != nil {
		rounds = append(rounds, Round{"instance profiles", profilesEvery, p.Profiles.Collect})
	}
	return rounds
}

// after returns a function that runs first until it succeeds once, and then runs then each time.
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

// Rounds runs rounds concurrently, on the leader only. It is a Runnable of controller-runtime's manager.
type Rounds struct {
	List []Round
	// Clock is the real clock when nil.
	Clock clock.Clock
	// Failed receives each failure, and nil when a round succeeds again. It is called concurrently and may be nil.
	Failed func(round string, err error)
}

// NeedLeaderElection returns true: only the leader runs the rounds.
func (r *Rounds) NeedLeaderElection() bool { return true }

// Start runs all rounds immediately and then each after its period, until the context ends.
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
