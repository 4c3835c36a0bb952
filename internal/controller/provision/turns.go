package provision

import (
	"context"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// This file prevents pods of one namespace from waiting for pods of another. A batch ends when no new pods are
// created in some namespace, although they still are in others. The claims of a large plan are written in portions,
// alternating between namespaces. Writing stops when pods of a namespace are pending that the plan does not contain.
// The rest is planned again, with the written claims in flight.

// claimsAtOnce is the number of claims that are written before the loop checks whether other namespaces have pending
// pods.
const claimsAtOnce = 100

// write creates the claims of the plan, and reports whether all were written.
func (p *Loop) write(ctx context.Context, decided *plan.Provision) (done execute.Provisioned, all bool) {
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

// namespacesOf returns the namespaces of the pods in the plan.
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

// newcomers reports whether pods of an unknown namespace are pending.
func newcomers(snap *model.Snapshot, known map[string]bool) bool {
	for _, g := range snap.Groups {
		if !known[g.Namespace] {
			return true
		}
	}
	return false
}

// arrivals counts the pending pods of each namespace that no tick has seen, at the last call.
type arrivals struct{ waiting map[string]int }

// settled reports whether some namespace has unseen pods, and none more than at the previous call.
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
