package node

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// terms are what a drain is judged by, beside its pods.
type terms struct {
	now time.Time
	// deadline is when the claim's termination grace period ends; zero when it has none.
	deadline time.Time
	// slack is how much sooner than needed a pod is deleted, so that it has its grace period although it is looked at
	// only so often.
	slack time.Duration
	// stuck is how long after its deletion timestamp a terminating pod is no longer waited for.
	stuck time.Duration
	// hold says which workloads had better stay for now; nil for none.
	hold func(*corev1.Pod) bool
	// rules say which pods are protected.
	rules karpv1.ProtectionRules
}

// apiTime is what the API server's clock shows when ours, which is ahead of it, shows now.
func apiTime(now time.Time, ahead func() time.Duration) time.Time {
	if ahead == nil {
		return now
	}
	return now.Add(-ahead())
}

// action is what a drain does with one pod.
type action int

const (
	// settled pods have ended, or are on their way.
	settled action = iota
	// protected pods forbid it for now.
	protected
	// evict asks; a PodDisruptionBudget may say no.
	evict
	// force deletes.
	force
)

// step is an action; grace is what a pod that is deleted by force is given, in seconds.
type step struct {
	action action
	grace  int64
}

// next is what to do with a pod that has to leave, when its turn has come (core specification 6.2, 6.3):
//
//	deletion of the claim                                    deadline
//	      |---- asked, PDB and do-not-disrupt are respected ----|--------|
//	                             deadline - its grace period ---^ deleted
func next(pod *corev1.Pod, t terms) step {
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

// forced says whether the deadline leaves the pod no more than its grace period, and the seconds that it gets: all of
// it, or what is left, and never 0, which would take it out of the API while it still runs.
func forced(pod *corev1.Pod, t terms) (grace int64, due bool) {
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

// graceOf is the pod's own grace period in seconds.
func graceOf(pod *corev1.Pod) int64 {
	if s := pod.Spec.TerminationGracePeriodSeconds; s != nil {
		return *s
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// deadlineOf is when the drain of the claim's node ends by force, zero for never; a node without a claim has no such end.
func deadlineOf(claim *karpv1.NodeClaim) (deadline time.Time, readable bool) {
	if claim == nil {
		return time.Time{}, true
	}
	return claim.DrainEnds()
}

// earlier of two deadlines; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
