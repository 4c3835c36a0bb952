package convert

import (
	"math"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// evictionCost returns the eviction cost of a pod in thousandths: 1 + deletion cost / 2^27 + priority / 2^25, between
// -10 and 10, as in upstream Karpenter (pkg/utils/disruption, EvictionCost). It is rounded up, so that a positive
// cost stays positive. It measures how much a disruption hurts; whether a node is empty does not depend on it (see
// model.Node.Reschedulable).
func evictionCost(pod *corev1.Pod) int64 {
	const unit = 1 << 27
	sum := int64(unit) + deletionCost(pod)
	if pod.Spec.Priority != nil {
		sum += 4 * int64(*pod.Spec.Priority)
	}
	thousandths := sum * 1000
	cost := thousandths / unit
	if thousandths > 0 && thousandths%unit != 0 {
		cost++
	}
	return min(max(cost, -10_000), 10_000)
}

// deletionCost parses the annotation controller.kubernetes.io/pod-deletion-cost, an integer of 32 bits. Other numbers
// count as the nearest such integer, other values as zero.
func deletionCost(pod *corev1.Pod) int64 {
	text, ok := pod.Annotations[karpv1.AnnotationPodDeletionCost]
	if !ok {
		return 0
	}
	cost, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(cost) {
		return 0
	}
	return int64(min(max(cost, math.MinInt32), math.MaxInt32))
}

// protectedUntil returns the end of the pod's protection by karpenter.sh/do-not-disrupt
// (https://karpenter.sh/docs/concepts/disruption/#pod-level-controls). "true" protects forever. A positive duration
// protects for that time from the pod's start, and forever while the pod has not started. Other values do not
// protect, and neither does a pod that is being deleted. Other annotations protect according to the rules.
func protectedUntil(pod *corev1.Pod, rules karpv1.ProtectionRules) time.Time {
	p, _ := rules.Of(pod)
	switch {
	case pod.DeletionTimestamp != nil:
		return time.Time{}
	case p.Forever:
		return model.Forever
	case p.Until.IsZero():
		return time.Time{}
	}
	return p.Until.UTC()
}
