package provision

import (
	"context"
	"sync"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// Departures collects pods that have left nodes, until the provision loop takes them. The zero value is empty. A nil
// value stays empty.
type Departures struct {
	mu   sync.Mutex
	list []model.Departure
}

// mostDepartures bounds what is kept between two ticks. A missing departure delays the start of the launch limit
// (plan.Brake).
const mostDepartures = 10_000

// Add adds a pod that has ended or is being preempted. It is safe for concurrent use.
func (d *Departures) Add(departure model.Departure) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) < mostDepartures {
		d.list = append(d.list, departure)
	}
}

func (d *Departures) take() []model.Departure {
	if d == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.list
	d.list = nil
	return list
}

// restrain evaluates the results of earlier launches, and returns the plan without the claims that have to wait
// (plan.Brake).
func (p *Loop) restrain(ctx context.Context, snap *model.Snapshot, decided *plan.Provision) *plan.Provision {
	p.brake.Replanned(snap, decided)
	for _, pool := range snap.Pools { // the PromQL function increase() misses a counter's first value
		p.Metrics.SchedulerLaunchesHeld.WithLabelValues(pool.Name)
	}
	actions := p.brake.Look(snap, p.Left.take())
	if len(actions) > 0 {
		for _, o := range p.Writer.Do(ctx, actions) {
			p.tellHold(o)
		}
		snap = p.Snapshot()
	}
	p.tellUnwritten(p.brake.Unwritten(snap))
	return p.brake.Restrain(snap, decided)
}

// tellUnwritten logs how many pauses are in memory only, when the number changes.
func (p *Loop) tellUnwritten(now int) {
	before := p.unwritten
	p.unwritten = now
	switch {
	case now == before:
	case now == 0:
		p.Log.Info("the pauses of launches that were in memory only are on their NodePools, or over", "controllers", before)
	default:
		p.Log.Info("pauses of launches are in memory only: they could not be written, or their NodePool has no room for more", "controllers", now)
	}
}

// tellHold logs a pause that begins, once it is written to its pool, and pauses that could not be written or removed.
// plan.Brake retries those.
func (p *Loop) tellHold(o execute.Outcome) {
	hold, begins := o.Action.(plan.HoldLaunches)
	switch {
	case o.Err != nil && begins:
		p.Log.Error(o.Err, "noting on a NodePool that launches wait", "nodepool", hold.Pool, "controller", hold.Hold.Name)
	case o.Err != nil:
		p.Log.Error(o.Err, "taking a pause of launches that is over off its NodePool", "action", o.Action.String())
	case begins:
		p.Metrics.SchedulerLaunchesHeld.WithLabelValues(hold.Pool).Inc()
		p.Log.Info("launches for the pods of a controller wait: earlier nodes did not come to run them", "controller", hold.Hold.Name,
			"launches", hold.Hold.Failures, "until", hold.Hold.Until, "nodes", hold.Hold.Why)
	}
}

// created returns the claims of a plan that now exist in the API.
func created(done execute.Provisioned) []plan.NewClaim {
	var claims []plan.NewClaim
	for i, o := range done.Outcomes {
		if o.Err == nil {
			claims = append(claims, done.Plan.Claims[i])
		}
	}
	return claims
}
