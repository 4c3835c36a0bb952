package provision

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// trace sends the spans of a pass that created claims, or tried to.
func (r *Reporter) trace(t *pass) {
	if r.Metrics.Traces == nil || len(t.plan.AllClaims()) == 0 {
		return
	}
	claims := names(created(t.done))
	missing := slices.DeleteFunc(names(t.plan.AllClaims()), func(name string) bool { return slices.Contains(claims, name) })
	r.Metrics.Traces.Unplanned(missing...)
	var creates []telemetry.Span
	for i, claim := range t.done.Plan.AllClaims() {
		o := t.done.Outcomes[i]
		creates = append(creates, telemetry.Span{Name: "create NodeClaim", Begin: o.Begin, End: o.End, Err: o.Err, Claim: claim.Name,
			Counts: map[string]int{"pods": len(claim.Pods)}})
	}
	r.Metrics.Traces.Pass(t.id, telemetry.Span{Name: "provision", Begin: t.since, End: t.nominated, Parts: []telemetry.Span{
		{Name: "batch", Begin: t.since, End: t.began},
		{Name: "snapshot", Begin: t.began, End: t.seen, Counts: map[string]int{"nodes": len(t.snap.Nodes), "pods": len(t.snap.PendingPods()),
			"pods.virtual": len(t.snap.VirtualPods())}},
		{Name: "plan", Begin: t.seen, End: t.decided, Counts: map[string]int{"nodeclaims": len(t.whole.AllClaims())}},
		{Name: "execute", Begin: t.decided, End: t.executed, Counts: map[string]int{"nodeclaims": len(claims)}, Parts: creates},
		{Name: "nominate", Begin: t.executed, End: t.nominated, Counts: map[string]int{"nominations": len(t.nominations)}},
	}})
}

// names returns the names of claims.
func names(claims []plan.NewClaim) []string {
	list := make([]string, len(claims))
	for i := range claims {
		list[i] = claims[i].Name
	}
	return list
}
