package offline

import (
	"io"
	"slices"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/gates"
)

// Answer is an answer of either kind.
type Answer interface {
	// Text returns the answer for readers. Tables fit a width in characters, 0 for unlimited.
	Text(width int) string
	WriteJSON(io.Writer) error
	// Brief returns the answer in one clause.
	Brief() string
}

// complete completes the objects that were read. It is called once.
func (o *Manifests) complete(now time.Time, p Policy) error {
	(&completion{o}).finish()
	o.now = o.newest
	if o.now.IsZero() {
		o.now = time.Unix(0, 0)
		if o.options == nil && now.IsZero() && slices.ContainsFunc(o.pools, hasSchedule) {
			o.assume("no object has a time, so the schedules of budgets are evaluated at 1970-01-01T00:00:00Z; --now sets another time")
		}
	}
	if o.options != nil {
		o.now = o.options.Now
	}
	if !now.IsZero() {
		o.now = now
	}
	o.now = o.now.UTC()
	var err error
	if o.defaultSpread, err = convert.ParseSchedulerConfig(p.SchedulerConfig); err != nil {
		return inputErrorf("--scheduler-config: %w", err)
	}
	on, notes, err := gates.Read(p.FeatureGates)
	if err != nil {
		return inputErrorf("%w", err)
	}
	for i := range o.sale.Catalogs {
		if c := &o.sale.Catalogs[i]; !on.On(gates.ReservedCapacity) {
			c.Types = cloud.WithoutReserved(c.Types)
		}
	}
	if on.On(gates.ReservedCapacity) {
		o.assumed = append(o.assumed, o.reserved...)
	}
	o.assumed = append(o.assumed, notes...)
	o.podRules, o.prices = p.PodRules, p.prices
	if o.options != nil && p.PriceFile == "" {
		o.prices = o.options.PriceRules
	}
	o.prepare()
	return nil
}

// hasSchedule reports whether the answer depends on the time of day.
func hasSchedule(pool sourced[*karpv1.NodePool]) bool {
	return slices.ContainsFunc(pool.object.Spec.Disruption.Budgets, func(b karpv1.Budget) bool { return b.Schedule != nil })
}

// Decision is a plan and its input.
type Decision struct {
	from  *mirror
	snap  *model.Snapshot
	plan  *plan.Provision
	opts  placement.Options
	stats *Stats
	// source is the source of the prices.
	source string
	gaps   Gaps
	// without is the plan without NodeOverlays, nil if there are none.
	without *OtherPlan
	// withoutQuotas plans without CapacityQuotas; nil if there are none or the plan is the same.
	withoutQuotas func() *OtherPlan
}

// Snapshot returns the snapshot that is decided on.
func (o *Manifests) Snapshot() *model.Snapshot { return o.mirror().Snapshot(o.now) }

// tell adds the problems of a mirror, once.
func (o *remarks) tell(problems []error) {
	if !o.told {
		o.Problems, o.told = append(o.Problems, problems...), true
	}
}

// Decide converts the objects and decides, rounds times. No state is kept between rounds.
func (o *Manifests) Decide(p *Policy, rounds int) *Decision {
	opts := p.options()
	var d *Decision
	for range rounds {
		d = &Decision{opts: opts, source: o.sale.Source, gaps: o.gaps()}
		d.stats = measure(func() {
			d.from = o.mirror()
			d.snap = d.from.Snapshot(o.now)
			d.plan = new(futile.Launches).Restrain(d.snap, placement.Schedule(d.snap, opts))
		})
	}
	o.tell(d.from.problems)
	d.without = o.withoutOverlays(opts)
	d.withoutQuotas = func() *OtherPlan {
		if len(o.quotas) == 0 {
			return nil
		}
		without := o.planWithout(opts, func(m *Manifests) { m.quotas = nil })
		if *without == *figuresOfPlan(d.snap, d.plan, opts) {
			return nil
		}
		return without
	}
	o.aside = d.snap.DaemonsAside
	return d
}
