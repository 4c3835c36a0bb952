package convert

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Departed returns the departure of a pod on a node that has ended by itself or is being preempted, and false for all
// other pods. Pods that the kubelet evicts for lack of resources, or rejects, are neither. Source:
// https://kubernetes.io/docs/concepts/workloads/pods/disruptions/#pod-disruption-conditions.
func Departed(pod *corev1.Pod, now time.Time) (model.Departure, bool) {
	if pod.Spec.NodeName == "" || isDaemon(pod) {
		return model.Departure{}, false
	}
	var bound, at time.Time
	preempted, disrupted := pod.Status.Reason == "Preempting", false // by the kubelet, for a critical pod
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		switch {
		case c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue:
			bound = utc(c.LastTransitionTime)
		case c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue:
			disrupted, preempted = true, preempted || c.Reason == corev1.PodReasonPreemptionByScheduler
			at = utc(c.LastTransitionTime)
		}
	}
	// The kubelet reports a terminal phase for a pod that is being deleted, Succeeded if its containers exit with 0
	// (KEP-3329).
	ended := !disrupted && pod.DeletionTimestamp == nil &&
		(pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed && pod.Status.Reason == "")
	if !ended && !preempted {
		return model.Departure{}, false
	}
	d := model.Departure{UID: string(pod.UID), Namespace: pod.Namespace, Name: pod.Name, Controller: controllerOf(pod), Node: pod.Spec.NodeName,
		Preempted: preempted && !ended}
	if pod.Spec.Priority != nil {
		d.Priority = *pod.Spec.Priority
	}
	if at.IsZero() {
		at = now.UTC()
	}
	if !bound.IsZero() {
		d.Ran = max(0, at.Sub(bound))
	}
	return d, true
}
