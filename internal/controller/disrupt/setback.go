package disrupt

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// setback is a failed command for a node of a static pool. Whether its replacement is available is only known after
// the launch, and an immediate retry would have the same result. So it is not retried for Timers.StaticRetry, as a
// claim of such a pool is not created again (see Static).
type setback struct {
	at  time.Time
	why plan.Verdict
}

// setBack records that the command was dropped.
func (d *Loop) setBack(c plan.Command) {
	if d.setbacks == nil {
		d.setbacks = map[string]setback{}
	}
	for _, candidate := range c.Candidates {
		d.setbacks[candidate.Claim] = setback{at: d.Clock.Now(), why: c.Why}
	}
}

// holdBack removes the commands from the proposal that failed recently. Their nodes are reported as kept for the
// reason of the failure, and the proposal is repeated when the pause is over.
func (d *Loop) holdBack(snap *model.Snapshot, p *disruption.Proposal) {
	for claim, s := range d.setbacks {
		if !snap.Now.Before(s.at.Add(d.Timers.StaticRetry)) {
			delete(d.setbacks, claim)
		}
	}
	if len(d.setbacks) == 0 {
		return
	}
	p.Commands = slices.DeleteFunc(p.Commands, func(c plan.Command) bool {
		first := c.Candidates[0] // of a static pool: the only one
		s, just := d.setbacks[first.Claim]
		if pool := snap.Pool(first.Pool); !just || pool == nil || !pool.Static {
			return false
		}
		if again := s.at.Add(d.Timers.StaticRetry); p.Next.IsZero() || again.Before(p.Next) {
			p.Next = again
		}
		p.Kept = append(p.Kept, disruption.Kept{Node: first.Node, Pool: first.Pool, Reason: c.Reason, Verdict: s.why})
		return true
	})
	slices.SortStableFunc(p.Kept, func(a, b disruption.Kept) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(string(a.Reason), string(b.Reason)))
	})
}
