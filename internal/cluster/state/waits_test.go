package state

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// TestWaits checks what pods wait for that snapshots do not contain, the field and the beginning of the reason.
func TestWaits(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	volumes := []corev1.Volume{{Name: "plain"}, {Name: "tmp", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}}
	unschedulable := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	cutoff := int32(0)
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		claim  corev1.PersistentVolumeClaimPhase
		want   string
	}{
		"unschedulable": {func(p *corev1.Pod) { p.Status.Conditions = unschedulable }, "", ""},
		"on a node":     {func(p *corev1.Pod) { p.Spec.NodeName = "n" }, "", ""},
		"finished":      {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, "", ""},
		"not reported": {func(*corev1.Pod) {}, "",
			"status.conditions[PodScheduled]: kube-scheduler has not reported it as unschedulable"},
		"gated": {func(p *corev1.Pod) { p.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "g"}} }, "",
			"spec.schedulingGates: the pod has scheduling gates: g"},
		"delayed": {func(p *corev1.Pod) {
			p.Status.Conditions, p.CreationTimestamp = unschedulable, metav1.Time{Time: now.Add(-10 * time.Second)}
		}, "", ": no node is launched for it before 2026-03-01T12:00:50Z"},
		"expendable": {func(p *corev1.Pod) { p.Spec.Priority = new(int32(-1)) }, "",
			": its priority is below 0 (--expendable-pods-priority-cutoff): no node is launched for it"},
		"nominated, a claim is missing": {func(p *corev1.Pod) { p.Status.NominatedNodeName, p.Spec.Volumes = "n", volumes }, "",
			"status.nominatedNodeName: kube-scheduler has chosen node n for it and waits for PersistentVolumeClaim web-tmp, which is not bound yet"},
		"nominated, a claim is not bound": {func(p *corev1.Pod) { p.Status.NominatedNodeName, p.Spec.Volumes = "n", volumes }, corev1.ClaimPending,
			"status.nominatedNodeName: kube-scheduler has chosen node n for it and waits for PersistentVolumeClaim web-tmp, which is not bound yet"},
		"nominated": {func(p *corev1.Pod) { p.Status.NominatedNodeName, p.Spec.Volumes = "n", volumes }, corev1.ClaimBound,
			"status.nominatedNodeName: kube-scheduler has chosen node n for it: preempted pods have to terminate there first, or the pod is being bound"},
	} {
		t.Run(name, func(t *testing.T) {
			s := New(Config{Pods: convert.PodRules{PriorityCutoff: &cutoff, Delay: time.Minute}})
			s.Advance(now)
			if c.claim != "" {
				s.Saw(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web-tmp"},
					Status: corev1.PersistentVolumeClaimStatus{Phase: c.claim}})
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "web", UID: "u"}}
			c.change(pod)
			s.Saw(pod)
			got := ""
			if why := s.Waits(s.Pod(types.NamespacedName{Namespace: "a", Name: "web"})); why != nil {
				got = why.Field + ": " + why.Reason
			}
			if got != c.want {
				t.Errorf("waits for %q, want %q", got, c.want)
			}
		})
	}
}
