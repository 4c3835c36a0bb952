package telemetry

import (
	"strings"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Disrupted counts a claim that the controller deleted. policy is the consolidation policy of its pool if the
// deletion is a consolidation, otherwise empty.
func (m *Metrics) Disrupted(claim *karpv1.NodeClaim, reason string, policy karpv1.ConsolidationPolicy) {
	m.NodeClaimsDisrupted.WithLabelValues(DisruptedLabels(claim, reason, policy)...).Inc()
}

// DisruptedLabels returns the values of the labels of NodeClaimsDisrupted and PodsDisruptionInitiated.
func DisruptedLabels(claim *karpv1.NodeClaim, reason string, policy karpv1.ConsolidationPolicy) []string {
	return []string{reason, claim.Labels[karpv1.LabelNodePool], claim.Labels[karpv1.LabelCapacityType],
		PolicyLabel(policy), TerminationMode(claim)}
}

// TerminationMode returns how the claim's terminationGracePeriod affects its termination: graceful without one,
// eventual with one, forceful with a period of zero.
func TerminationMode(claim *karpv1.NodeClaim) string {
	switch grace := claim.Spec.TerminationGracePeriod; {
	case grace == nil:
		return "graceful"
	case grace.Duration <= 0:
		return "forceful"
	}
	return "eventual"
}

// PolicyLabel returns a policy as a label value: when_empty for WhenEmpty.
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
