package node

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// left is what a drain has still to do.
type left struct {
	// waiting are all pods that have to be gone before the drain is over.
	waiting []*corev1.Pod
	// evict are those of them to ask to leave now: the first group that is not empty.
	evict []*corev1.Pod
	// mistaken pods have a do-not-disrupt that means nothing.
	mistaken []*corev1.Pod
}

// group orders a drain: the pods of a group are asked once those before it are gone (core specification 6.2).
type group int

const (
	workload group = iota
	daemon
	criticalWorkload
	criticalDaemon
	groups
)

// remaining is what is left to do for a node with these pods. A terminating pod that is stuck for longer than that
// after its deletion timestamp is no longer waited for.
func remaining(pods []corev1.Pod, now time.Time, stuck time.Duration) left {
	var l left
	var byGroup [groups][]*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if terminal(pod) || mirror(pod) || staying(pod) || lost(pod, now, stuck) {
			continue
		}
		l.waiting = append(l.waiting, pod)
		byGroup[groupOf(pod)] = append(byGroup[groupOf(pod)], pod)
	}
	for _, first := range byGroup {
		if len(first) == 0 {
			continue
		}
		for _, pod := range first {
			holds, valid := doNotDisrupt(pod, now)
			if !valid {
				l.mistaken = append(l.mistaken, pod)
			}
			if !holds && pod.DeletionTimestamp.IsZero() {
				l.evict = append(l.evict, pod)
			}
		}
		break
	}
	return l
}

func groupOf(pod *corev1.Pod) group {
	ofDaemonSet := slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "DaemonSet" && o.APIVersion == "apps/v1"
	})
	critical := pod.Spec.PriorityClassName == "system-cluster-critical" || pod.Spec.PriorityClassName == "system-node-critical"
	switch {
	case critical && ofDaemonSet:
		return criticalDaemon
	case critical:
		return criticalWorkload
	case ofDaemonSet:
		return daemon
	}
	return workload
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// mirror pods are made by the kubelet from files on the machine; they go with it.
func mirror(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "Node" && o.APIVersion == "v1"
	})
}

// staying pods tolerate the disrupted taint: they would be back at once.
func staying(pod *corev1.Pod) bool {
	taint := karpv1.DisruptedTaint()
	return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool {
		return t.ToleratesTaint(logr.Discard(), &taint, false)
	})
}

// lost pods should have ended some time ago; their kubelet does not say so.
func lost(pod *corev1.Pod, now time.Time, stuck time.Duration) bool {
	return !pod.DeletionTimestamp.IsZero() && now.Sub(pod.DeletionTimestamp.Time) > stuck
}

// doNotDisrupt says whether the pod's annotation holds now, and whether its value means anything: "true", or a
// positive duration from the pod's start (core specification 5.2).
func doNotDisrupt(pod *corev1.Pod, now time.Time) (holds, valid bool) {
	value, there := pod.Annotations[karpv1.AnnotationDoNotDisrupt]
	if !there {
		return false, true
	}
	if value == "true" {
		return true, true
	}
	d, err := time.ParseDuration(value)
	if err != nil || d <= 0 {
		return false, false
	}
	return pod.Status.StartTime == nil || now.Before(pod.Status.StartTime.Add(d)), true
}
