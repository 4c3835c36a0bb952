package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// drainPolicy are the parameters of a drain, except its pods.
type drainPolicy struct {
	now time.Time
	// deadline is when the claim's termination grace period ends, or zero if there is none.
	deadline time.Time
	// slack is how much earlier than necessary a pod is deleted, so that it gets its whole grace period although it
	// is examined only periodically.
	slack time.Duration
	// stuck is the time after its deletion timestamp for which the drain waits for a terminating pod.
	stuck time.Duration
	// hold reports whether a workload should stay for now. Nil means that none should.
	hold func(*corev1.Pod) bool
	// rules define which pods are protected.
	rules karpv1.ProtectionRules
}

// apiTime returns the time on the API server's clock, given the time on this process's clock, which is ahead of it by
// ahead.
func apiTime(now time.Time, ahead func() time.Duration) time.Time {
	if ahead == nil {
		return now
	}
	return now.Add(-ahead())
}

// action is what a drain does with one pod.
type action int

const (
	// settled means that the pod has ended or is terminating.
	settled action = iota
	// protected means that the pod currently forbids eviction.
	protected
	// evict requests an eviction, which a PodDisruptionBudget may refuse.
	evict
	// force deletes.
	force
)

// step is an action. grace is the grace period, in seconds, of a pod that is deleted by force.
type step struct {
	action action
	grace  int64
}

// next returns what to do with a pod of the current group that has to be removed:
//
//	deletion of the claim                                        deadline
//	      |---- evictions; PDB and do-not-disrupt are respected ----|--------|
//	                                 deadline - its grace period ---^ deleted
func next(pod *corev1.Pod, t drainPolicy) step {
	if karpv1.EndedPod(pod) {
		return step{action: settled}
	}
	if grace, due := forced(pod, t); due {
		return step{action: force, grace: grace}
	}
	if !pod.DeletionTimestamp.IsZero() {
		return step{action: settled}
	}
	if protection, _ := t.rules.Of(pod); protection.Holds(t.now) {
		return step{action: protected}
	}
	return step{action: evict}
}

// forced reports whether the deadline leaves the pod no more than its grace period, and returns the grace period that
// it gets in seconds: all of it, or the remaining time, and never 0, which would remove the pod from the API while it
// still runs.
func forced(pod *corev1.Pod, t drainPolicy) (grace int64, due bool) {
	if t.deadline.IsZero() {
		return 0, false
	}
	left := t.deadline.Sub(t.now)
	grace = max(int64(left/time.Second), 1)
	if !pod.DeletionTimestamp.IsZero() {
		given := pod.DeletionGracePeriodSeconds
		return grace, pod.DeletionTimestamp.After(t.deadline) && (given == nil || *given > grace)
	}
	own := graceOf(pod)
	return max(min(grace, own), 1), left <= time.Duration(own)*time.Second+t.slack
}

// graceOf returns the pod's own grace period in seconds.
func graceOf(pod *corev1.Pod) int64 {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return *s
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// deadlineOf returns when the drain of the claim's node ends by force, or zero for never. A node without a claim has
// no deadline.
func deadlineOf(claim *karpv1.NodeClaim) (deadline time.Time, readable bool) {
	if claim == nil {
		return time.Time{}, true
	}
	return claim.DrainEnds()
}

// earlier returns the earlier of two deadlines. Zero means none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
