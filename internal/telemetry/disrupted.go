package telemetry

import (
	"strings"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Disrupted counts a claim that the controller deleted. policy is the consolidation policy of its pool if the
// deletion is a consolidation, otherwise empty.
func (m *Metrics) Disrupted(claim *karpv1.NodeClaim, reason string, policy karpv1.ConsolidationPolicy) {
	m.NodeClaimsDisrupted.WithLabelValues(DisruptedLabels(claim, reason, policy)...).Inc()
}

// Moving counts the pods that have to move because the claim of their node is deleted: those that run, are not of a DaemonSet
// and are not static. The labels are those of Disrupted.
func (m *Metrics) Moving(claim *karpv1.NodeClaim, reason string, policy karpv1.ConsolidationPolicy, pods []corev1.Pod) {
	count := 0
	for i := range pods {
		pod := &pods[i]
		static := pod.Annotations[corev1.MirrorPodAnnotationKey] != ""
		if pod.DeletionTimestamp == nil && !static && !karpv1.EndedPod(pod) && !karpv1.DaemonPod(pod) {
			count++
		}
	}
	m.PodsDisruptionInitiated.WithLabelValues(DisruptedLabels(claim, reason, policy)...).Add(float64(count))
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
