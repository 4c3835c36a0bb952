package node

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// drainState is the remaining work of a drain.
type drainState struct {
	// waiting holds all pods that have to be gone before the drain is over.
	waiting []*corev1.Pod
	// evict holds the pods to evict now: those of the first group that is not empty.
	evict []*corev1.Pod
	// force holds the pods, of any group, to delete now, because the deadline leaves them no more than their grace
	// period.
	force []*corev1.Pod
	// protected holds the pods of the first group that forbid eviction, and elapsed those whose protection has ended.
	protected, protectionElapsed []*corev1.Pod
	// held holds the pods that stay until their replacement can run.
	held []*corev1.Pod
	// invalidAnnotation holds pods with a do-not-disrupt annotation that has no effect.
	invalidAnnotation []*corev1.Pod
	// rules are the rules for the protection of pods.
	rules karpv1.ProtectionRules
}

// group orders a drain: the pods of a group are evicted once those of earlier groups are gone.
type group int

const (
	workload group = iota
	daemon
	criticalWorkload
	criticalDaemon
	groups
)

// remaining returns the remaining work for a node with these pods. The groups count all pods for which the drain
// waits, also those that are deleted by force: they may need a daemon to end gracefully.
func remaining(pods []corev1.Pod, t drainPolicy) drainState {
	l := drainState{rules: t.rules}
	var byGroup [groups][]*corev1.Pod
	for i := range pods {
		pod := &pods[i]
		if karpv1.EndedPod(pod) || !drainable(pod, t) {
			continue
		}
		l.waiting = append(l.waiting, pod)
		byGroup[groupOf(pod)] = append(byGroup[groupOf(pod)], pod)
		if next(pod, t).action == force {
			l.force = append(l.force, pod)
		}
	}
	for _, first := range byGroup {
		if len(first) > 0 {
			l.classify(first, t)
			break
		}
	}
	return l
}

// classify decides what to do with the pods of the current group.
func (l *drainState) classify(first []*corev1.Pod, t drainPolicy) {
	for _, pod := range first {
		protection, valid := t.rules.Of(pod)
		if !valid {
			l.invalidAnnotation = append(l.invalidAnnotation, pod)
		}
		switch action := next(pod, t).action; {
		case action == evict && t.hold != nil && !karpv1.DaemonPod(pod) && t.hold(pod):
			l.held = append(l.held, pod)
		case action == evict:
			l.evict = append(l.evict, pod)
			if !protection.Until.IsZero() {
				l.protectionElapsed = append(l.protectionElapsed, pod)
			}
		case action == protected:
			l.protected = append(l.protected, pod)
		}
	}
}

// describe describes what the drain waits for: the number of pods, and the names of at most five pods that eviction
// does not remove.
func (l drainState) describe() string {
	const most = 5
	var named []string
	for _, pod := range l.protected {
		until := ""
		p, _ := l.rules.Of(pod)
		if !p.Until.IsZero() {
			until = " until " + p.Until.UTC().Format(time.RFC3339)
		}
		named = append(named, fmt.Sprintf("%s/%s forbids it by %s%s", pod.Namespace, pod.Name, p.By, until))
	}
	text := fmt.Sprintf("%d pods are waiting to be evicted", len(l.waiting))
	if len(l.waiting) == 1 {
		text = "1 pod is waiting to be evicted"
	}
	if len(l.held) > 0 {
		text += fmt.Sprintf(", %d of them until the nodes for them are ready", len(l.held))
	}
	if len(named) == 0 {
		return text
	}
	if more := len(named) - most; more > 0 {
		named = append(named[:most], fmt.Sprintf("and %d more", more))
	}
	return text + ": " + strings.Join(named, ", ")
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

// drainable reports whether the pod has to be gone before the node is removed. The other pods end with the machine,
// would be scheduled again at once, or are lost.
func drainable(pod *corev1.Pod, t drainPolicy) bool {
	return !karpv1.MirrorPod(pod) && !toleratesDisruption(pod) && !stuckTerminating(pod, t)
}

// toleratesDisruption reports whether the pod tolerates the disrupted taint: after an eviction it would be scheduled
// here again at once.
func toleratesDisruption(pod *corev1.Pod) bool {
	taint := karpv1.DisruptedTaint()
	return slices.ContainsFunc(pod.Spec.Tolerations, func(toleration corev1.Toleration) bool {
		return toleration.ToleratesTaint(logr.Discard(), &taint, false)
	})
}

// stuckTerminating reports whether the pod should have ended some time ago and its kubelet does not report its end.
// When a grace period is shortened, the API server counts it from the first deletion, so that its end may be in the
// past. The kubelet counts it from the time at which it sees the change, and at the latest to the deadline.
func stuckTerminating(pod *corev1.Pod, t drainPolicy) bool {
	if pod.DeletionTimestamp.IsZero() {
		return false
	}
	end := pod.DeletionTimestamp.Time
	given := pod.DeletionGracePeriodSeconds
	if given != nil && *given < graceOf(pod) && end.Before(t.deadline) {
		end = t.deadline
	}
	return t.now.Sub(end) > t.stuck
}
