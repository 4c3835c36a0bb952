package convert

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// PodRules say for which pods no node is launched, or not at once. The zero value excludes none.
type PodRules struct {
	// PriorityCutoff makes pods with a lower priority expendable: they get no node, and keep none; nil for none.
	PriorityCutoff *int32
	// Delay is the least age of a pod for which a node is launched. Annotations of a pod increase it.
	Delay time.Duration
}

// Expendable reports whether the pod gets no node, and keeps none. Pods without a priority have the priority 0. The
// virtual pods of a CapacityBuffer are never expendable: their owner asks for nodes.
func (r PodRules) Expendable(pod *corev1.Pod) bool {
	if r.PriorityCutoff == nil || len(pod.OwnerReferences) > 0 && pod.OwnerReferences[0].Kind == autoscalingv1beta1.Kind {
		return false
	}
	var priority int32
	if pod.Spec.Priority != nil {
		priority = *pod.Spec.Priority
	}
	return priority < *r.PriorityCutoff
}

// PlannedFrom returns when a node may be launched for the pod; the zero time for at once.
func (r PodRules) PlannedFrom(pod *corev1.Pod) time.Time {
	delay := r.DelayOf(pod)
	if delay <= 0 || pod.CreationTimestamp.IsZero() {
		return time.Time{}
	}
	return pod.CreationTimestamp.Add(delay)
}

// DelayOf returns for how long after the creation of the pod no node is launched for it.
func (r PodRules) DelayOf(pod *corev1.Pod) time.Duration {
	delay := r.Delay
	for _, key := range []string{karpv1.AnnotationPodScaleUpDelay, karpv1.AnnotationProvisionAfter} {
		if own, err := delayOf(pod, key); err == nil {
			delay = max(delay, own)
		}
	}
	return delay
}

// DelayProblems returns what is wrong with the pod's annotations of a delay. They have no effect then.
func DelayProblems(pod *corev1.Pod) []error {
	var problems []error
	for _, key := range []string{karpv1.AnnotationPodScaleUpDelay, karpv1.AnnotationProvisionAfter} {
		if _, err := delayOf(pod, key); err != nil {
			problems = append(problems, err)
		}
	}
	return problems
}

func delayOf(pod *corev1.Pod, key string) (time.Duration, error) {
	text, there := pod.Annotations[key]
	if !there {
		return 0, nil
	}
	delay, err := time.ParseDuration(text)
	if err != nil || delay < 0 {
		return 0, fmt.Errorf("annotation %s is %q, want a duration such as 30s", key, text)
	}
	return delay, nil
}
