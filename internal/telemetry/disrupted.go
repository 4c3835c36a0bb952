package telemetry

import (
	"strings"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Disrupted counts a claim that we deleted. policy is the consolidation policy of its pool where the claim goes to save
// money, else empty.
func (m *Metrics) Disrupted(claim *karpv1.NodeClaim, reason string, policy karpv1.ConsolidationPolicy) {
	m.NodeClaimsDisrupted.WithLabelValues(reason, claim.Labels[karpv1.LabelNodePool], claim.Labels[karpv1.LabelCapacityType],
		PolicyLabel(policy), TerminationMode(claim)).Inc()
}

// TerminationMode is what the claim's terminationGracePeriod makes of its end: graceful without one, eventual with one,
// forceful with one of nothing.
func TerminationMode(claim *karpv1.NodeClaim) string {
	switch grace := claim.Spec.TerminationGracePeriod; {
	case grace == nil:
		return "graceful"
	case grace.Duration <= 0:
		return "forceful"
	}
	return "eventual"
}

// PolicyLabel is a policy as labels have it: when_empty for WhenEmpty.
func PolicyLabel(policy karpv1.ConsolidationPolicy) string {
	var b strings.Builder
	for i, c := range string(policy) {
		if i > 0 && c >= 'A' && c <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}
