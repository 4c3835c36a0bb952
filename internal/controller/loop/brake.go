package loop

import (
	"context"
	"sync"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// Departures are pods that have left nodes, until the provision loop takes them. The zero value is empty; a nil one stays so.
type Departures struct {
	mu   sync.Mutex
	list []model.Departure
}

// mostDepartures bounds what is kept between two ticks. A departure that is missed makes the brake begin later.
const mostDepartures = 10_000

// Add takes a pod that has ended or is being preempted. It may be called from any goroutine.
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

// restrain looks at what became of earlier launches, and takes those out of the plan that have to wait (plan.Brake).
func (p *Provision) restrain(ctx context.Context, snap *model.Snapshot, decided *plan.Provision) *plan.Provision {
	p.brake.Replanned(snap, decided)
	for _, pool := range snap.Pools { // increase() misses a counter's first value
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

// tellUnwritten tells how many pauses are in memory only, when that changes.
func (p *Provision) tellUnwritten(now int) {
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

// tellHold tells of a pause that begins, once it stands on its pool, and of pauses that could not be noted or taken off. The
// brake asks again for those.
func (p *Provision) tellHold(o execute.Outcome) {
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

// created are the claims of a plan that stand in the API now.
func created(done execute.Provisioned) []plan.NewClaim {
	var claims []plan.NewClaim
	for i, o := range done.Outcomes {
		if o.Err == nil {
			claims = append(claims, done.Plan.Claims[i])
		}
	}
	return claims
}
