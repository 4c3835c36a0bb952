package loop

import (
	"context"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// What keeps the pods of one namespace from waiting for those of another: a batch ends when the pods of some namespace
// have all come, though others still come; and the claims of a large plan are written some at a time, the namespaces in
// turn, and no further once pods of a namespace wait that the plan knows nothing of. What is left is planned again, with
// what was written in flight.

// claimsAtOnce are written before the loop looks whether other namespaces wait.
const claimsAtOnce = 100

// write creates the claims of the plan, and reports whether all had their turn.
func (p *Provision) write(ctx context.Context, decided *plan.Provision) (done execute.Provisioned, all bool) {
	if len(decided.Claims) <= claimsAtOnce {
		return p.Writer.Provision(ctx, p.Snapshot, decided), true
	}
	claims, known := decided.ClaimsInTurns(), namespacesOf(decided)
	done.Plan = &plan.Provision{}
	for len(claims) > 0 && ctx.Err() == nil {
		n := min(claimsAtOnce, len(claims))
		part := p.Writer.Provision(ctx, p.Snapshot, &plan.Provision{Claims: claims[:n:n], Placed: decided.Placed, Refused: decided.Refused})
		claims = claims[n:]
		done.Plan.Claims = append(done.Plan.Claims, part.Plan.Claims...)
		done.Plan.Placed, done.Plan.Refused = part.Plan.Placed, part.Plan.Refused
		done.Dropped = append(done.Dropped, part.Dropped...)
		done.Outcomes = append(done.Outcomes, part.Outcomes...)
		done.Reserved = append(done.Reserved, part.Reserved...)
		if len(claims) > 0 && newcomers(p.Snapshot(), known) {
			break
		}
	}
	return done, len(claims) == 0
}

// namespacesOf are those of the pods that the plan says something of.
func namespacesOf(decided *plan.Provision) map[string]bool {
	known := map[string]bool{}
	for _, pod := range decided.Order {
		known[pod.Namespace] = true
	}
	for _, r := range decided.Refused {
		for _, pod := range r.Pods {
			known[pod.Namespace] = true
		}
	}
	return known
}

// newcomers reports whether pods of a namespace wait that is not known.
func newcomers(snap *model.Snapshot, known map[string]bool) bool {
	for _, g := range snap.Groups {
		if !known[g.Namespace] {
			return true
		}
	}
	return false
}

// arrivals are how many pods waited in each namespace, of those that no tick has seen, when that was asked last.
type arrivals struct{ waiting map[string]int }

// settled reports whether the pods of some namespace have all come: it has some that were not seen, and none more than
// when this was asked before.
func (a *arrivals) settled(snap *model.Snapshot, seen map[string]bool) bool {
	now := map[string]int{}
	for _, g := range snap.Groups {
		for _, pod := range g.Pods {
			if !seen[pod.UID] {
				now[g.Namespace]++
			}
		}
	}
	settled := false
	for namespace, n := range now {
		settled = settled || a.waiting[namespace] == n
	}
	a.waiting = now
	return settled
}
