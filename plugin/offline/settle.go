package offline

import (
	"slices"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Some nodes are kept for a time only: until consolidateAfter or a minimum stay has passed, or until the window of a
// budget opens. With --until-stable, the time of the model advances to the first such moment whenever no step is left,
// so that the answer is the state at which the fleet remains, and how long the rules take to reach it.

// longestWait is how far the time advances in all: each window of a week opens within it.
const longestWait = 7 * 24 * time.Hour

// Wait is a time during which no step was possible.
type Wait struct {
	// Seconds is how long it is.
	Seconds int64 `json:"seconds"`
	// Codes are those of the verdicts that end with it.
	Codes []string `json:"codes"`
	until time.Time
}

// next makes the next steps. If the last proposal has none, time passes before. It returns false if time alone changes
// nothing any more.
func (d *DisruptDecision) next() bool {
	if d.proposed && len(d.proposal.Commands) == 0 {
		next := d.proposal.Next
		if next.IsZero() || next.Sub(d.first.Now) > longestWait {
			return false
		}
		d.waits = append(d.waits, Wait{Seconds: seconds(next.Sub(d.last.Now)), Codes: d.endingAt(next), until: next})
		d.last = at(d.last, next, d.pools)
	}
	d.step()
	return true
}

// waitsForSteps returns the waits without those after the last step, which changed nothing.
func (d *DisruptDecision) waitsForSteps() []Wait {
	var last time.Time
	if len(d.steps) > 0 {
		last = d.steps[len(d.steps)-1].at
	}
	var waits []Wait
	for _, w := range d.waits {
		if !w.until.After(last) {
			waits = append(waits, w)
		}
	}
	return waits
}

// endingAt returns the codes of the verdicts of the last proposal that end at a time.
func (d *DisruptDecision) endingAt(next time.Time) []string {
	var codes []string
	for _, k := range d.proposal.Kept {
		if disruption.ChangesAt(d.last, d.opts, k).Equal(next) {
			codes = append(codes, explain.Code(k.Verdict.Code))
		}
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// at returns the snapshot at a later time, at which other windows of budgets may be open.
func at(snap *model.Snapshot, now time.Time, pools []*karpv1.NodePool) *model.Snapshot {
	later := *snap
	later.Now = now
	later.Pools = slices.Clone(snap.Pools)
	for i, p := range later.Pools {
		k := slices.IndexFunc(pools, func(object *karpv1.NodePool) bool { return object.Name == p.Name })
		if k < 0 || !convert.Scheduled(pools[k]) {
			continue
		}
		pool, spec := *p, *p.PoolSpec
		spec.Budgets, spec.BudgetError = convert.Budgets(pools[k], now)
		pool.PoolSpec = &spec
		later.Pools[i] = &pool
	}
	return &later
}

// seconds rounds up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// waited sums the waits up to a time.
func (d *DisruptDecision) waited(until time.Time) int64 {
	var sum int64
	for _, w := range d.waits {
		if !w.until.After(until) {
			sum += w.Seconds
		}
	}
	return sum
}
