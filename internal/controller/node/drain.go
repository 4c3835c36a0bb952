package node

import (
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

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
		if karpv1.EndedPod(pod) || karpv1.MirrorPod(pod) || staying(pod) || lost(pod, now, stuck) {
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
			protection, valid := karpv1.ProtectionOf(pod)
			if !valid {
				l.mistaken = append(l.mistaken, pod)
			}
			if !protection.Holds(now) && pod.DeletionTimestamp.IsZero() {
				l.evict = append(l.evict, pod)
			}
		}
		break
	}
	return l
}

func groupOf(pod *corev1.Pod) group {
	ofDaemonSet := karpv1.DaemonPod(pod)
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
