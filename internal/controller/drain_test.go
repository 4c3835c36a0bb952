package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestDrain covers how nodes are drained, on a real API server. The test acts as the kubelets.
func TestDrain(t *testing.T) {
	s := startServer(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *apiServer)
	}{
		{"at the deadline everything goes", testForcedAtDeadline},
		{"no grace at all", testNoGrace},
		{"a deadline that is already written down", testDeadlineOfRepair},
		{"an unreadable deadline", testUnreadableDeadline},
		{"two budgets", testTwoBudgets},
		{"a pod already terminating with too long a grace period", testAlreadyTerminating},
		{"protection that ends", testProtectionEnds},
		{"volumes are waited for", testVolumesHoldMachine},
		{"volumes are not waited for past the deadline", testVolumesAtDeadline},
		{"a pod whose finalizer stays, without a deadline", testFinalizerWithoutDeadline},
		{"a pod whose finalizer stays, and that has ended", testFinalizerOfEndedPod},
		{"a pod whose finalizer stays, and a deadline", testFinalizerAtDeadline},
		{"a node that is less than promised", testConsistency},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, s) })
	}
}

// bounded creates a running claim with a termination grace period.
func (w *world) bounded(name string, grace time.Duration) (*karpv1.NodeClaim, *corev1.Node) {
	w.t.Helper()
	claim := newClaim(name)
	claim.Spec.TerminationGracePeriod = &metav1.Duration{Duration: grace}
	w.create(claim)
	node := w.boot(claim)
	w.report(node, corev1.ConditionTrue)
	w.untilCondition(claim, karpv1.ConditionInitialized, "True", "")
	w.read(node)
	return claim, node
}

// with returns a change of a pod: its grace period in seconds, and do-not-disrupt unless empty.
func with(grace int64, protection string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TerminationGracePeriodSeconds = &grace
		if protection != "" {
			p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: protection}
		}
	}
}

// told waits until the pod is terminating and returns it.
func (w *world) told(pod *corev1.Pod) *corev1.Pod {
	w.t.Helper()
	w.until(pod.Name+" is told to end", func() bool { return w.read(pod) && !pod.DeletionTimestamp.IsZero() })
	return pod
}

// end removes a terminating pod as its kubelet would.
func (w *world) end(pods ...*corev1.Pod) {
	w.t.Helper()
	for _, pod := range pods {
		w.must(client.IgnoreNotFound(w.client.Delete(w.t.Context(), pod, client.GracePeriodSeconds(0))))
	}
}

// untilAllSaid waits for events that contain the texts, in any order.
func (w *world) untilAllSaid(texts ...string) {
	w.t.Helper()
	left := slices.Clone(texts)
	w.until(fmt.Sprintf("events say %q", texts), func() bool {
		for _, e := range w.said() {
			left = slices.DeleteFunc(left, func(text string) bool { return strings.Contains(e, text) })
		}
		return len(left) == 0
	})
}

func (w *world) deadline(claim *karpv1.NodeClaim) time.Time {
	w.t.Helper()
	w.until("the deadline is noted", func() bool { return w.read(claim) && claim.Annotations[karpv1.AnnotationTerminationTimestamp] != "" })
	at, err := time.Parse(time.RFC3339, claim.Annotations[karpv1.AnnotationTerminationTimestamp])
	w.must(err)
	return at
}

// testForcedAtDeadline verifies that pods that a budget or do-not-disrupt protects stay until the deadline leaves
// them only their grace period. Then they are deleted, with the whole grace period or the remainder of it.
func testForcedAtDeadline(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.bounded("bounded", 5*time.Second)
	held := w.pod("held", node, with(1, ""))
	w.budget("held")
	precious, slow := w.pod("precious", node, with(1, "true")), w.pod("slow", node, with(3600, "true"))
	tolerant := w.pod("tolerant", node, func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} })
	w.remove(claim)
	deadline := w.deadline(claim)
	switch given := *w.told(slow).DeletionGracePeriodSeconds; {
	case given < 1:
		t.Errorf("given is %v, want at least 1", given)
	case given > 5:
		t.Errorf("given is %v, want at most 5", given)
	case slow.DeletionTimestamp.After(deadline):
		t.Errorf("the slow pod may run until %v, want %v at most", slow.DeletionTimestamp, deadline)
	}
	w.untilSaid("Deleted the pod because its node is removed at " + deadline.UTC().Format(time.RFC3339))
	for _, pod := range []*corev1.Pod{held, precious} {
		if given := *w.told(pod).DeletionGracePeriodSeconds; given != 1 {
			t.Errorf("%s has %d s, want its own grace period of 1", pod.Name, given)
		}
		if pod.DeletionTimestamp.Time.Before(deadline.Add(-time.Second)) {
			t.Errorf("%s has to end at %v, long before the deadline of %v", pod.Name, pod.DeletionTimestamp, deadline)
		}
	}
	w.end(held, precious, slow)
	w.gone(node)
	w.gone(claim)
	if w.podGone(tolerant) {
		t.Error("the pod that tolerates the taint was deleted")
	}
	if got := testutil.ToFloat64(w.metrics.PodsEvictionRequests.WithLabelValues("200")); got != 0 {
		t.Errorf("%v pods were evicted, want none", got)
	}
	w.counted("pods drained", 3, w.metrics.PodsDrained.WithLabelValues("Forceful Termination"))
}

func testNoGrace(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.bounded("hasty", 0)
	pod := w.pod("precious", node, with(600, "true"))
	w.budget("precious")
	w.remove(claim)
	if given := *w.told(pod).DeletionGracePeriodSeconds; given != 1 {
		t.Errorf("the pod has %d s, want 1", given)
	}
	w.end(pod)
	w.gone(node)
	w.gone(claim)
}

// testDeadlineOfRepair verifies that an unhealthy node gets its deadline before its claim is deleted. The deadline
// applies also without a grace period.
func testDeadlineOfRepair(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("ill")
	pod := w.pod("precious", node, with(600, "true"))
	base := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.AnnotationTerminationTimestamp, time.Now().UTC().Format(time.RFC3339))
	w.must(w.client.Patch(t.Context(), claim, client.MergeFrom(base)))
	w.remove(claim)
	if given := *w.told(pod).DeletionGracePeriodSeconds; given != 1 {
		t.Errorf("the pod has %d s, want 1", given)
	}
	w.untilSaid("TerminationGracePeriodExpiring")
	w.end(pod)
	w.gone(claim)
}

// testUnreadableDeadline verifies that without a grace period an unreadable deadline is reported and has no effect.
// With one, the correct time replaces it.
func testUnreadableDeadline(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("unclear")
	timed, _ := w.bounded("corrected", time.Hour)
	pod := w.pod("precious", node, with(0, "true"))
	for _, c := range []*karpv1.NodeClaim{claim, timed} {
		base := c.DeepCopy()
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, karpv1.AnnotationTerminationTimestamp, "tomorrow")
		w.must(w.client.Patch(t.Context(), c, client.MergeFrom(base)))
	}
	w.cloud.slow = 1 << 30 // so that the claim stays and can be examined
	w.remove(timed)
	w.remove(claim)
	w.untilSaid(`NodeClaim unclear is "tomorrow"; it should be a time`)
	if !w.read(pod) || !pod.DeletionTimestamp.IsZero() {
		t.Error("the pod was deleted for a deadline that cannot be parsed")
	}
	w.until("the deadline is corrected", func() bool {
		return w.read(timed) && timed.Annotations[karpv1.AnnotationTerminationTimestamp] == timed.DeletionTimestamp.Add(time.Hour).UTC().Format(time.RFC3339)
	})
}

// testTwoBudgets covers a pod that two budgets select. The API does not evict such a pod. One event reports the names
// of the budgets, and the drain continues when one budget is gone.
func testTwoBudgets(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("doubly")
	pod := w.pod("web", node, nil)
	first := w.budget("web")
	second := first.DeepCopy()
	second.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "another"}
	w.create(second)
	w.remove(claim)
	w.untilSaid("more than one PodDisruptionBudget, which the eviction subresource does not support. (PodDisruptionBudgets of the pod: another, web)")
	w.remove(second)
	w.untilSaid("The disruption budget web ")
	if w.podGone(pod) {
		t.Error("the pod was evicted although a budget forbids it")
	}
	w.remove(first)
	w.gone(node)
}

// testAlreadyTerminating verifies that a pod that a user deleted with more time than the node has left gets the remaining
// time, and is not deleted again.
func testAlreadyTerminating(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.WriteVisible = 10 * time.Millisecond
	w.start()
	claim, node := w.bounded("late", 10*time.Minute)
	pod := w.pod("slow", node, with(3600, ""))
	w.remove(pod)
	w.told(pod)
	w.remove(claim)
	w.until("its time is cut", func() bool { return w.read(pod) && *pod.DeletionGracePeriodSeconds <= 600 })
	given := *pod.DeletionGracePeriodSeconds
	w.untilSaid("FailedDraining")
	brief := w.pod("brief", node, nil) // once it is gone, the drain has examined the node again
	w.until("the next pod is gone", func() bool { return w.podGone(brief) })
	if w.read(pod); *pod.DeletionGracePeriodSeconds != given || given < 500 {
		t.Errorf("the pod was given %d s, then %d; want the remainder of ten minutes, once", given, *pod.DeletionGracePeriodSeconds)
	}
	w.end(pod)
	w.gone(claim)
}

func testProtectionEnds(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.start()
	claim, node := w.running("patient")
	pod := w.pod("batch", node, with(0, "1h"))
	pod.Status.StartTime = &metav1.Time{Time: time.Now()}
	w.must(w.client.Status().Update(t.Context(), pod))
	w.until("the cache has seen the pod", func() bool { return w.read(pod) && pod.Status.StartTime != nil })
	until := pod.Status.StartTime.Add(time.Hour).UTC().Format(time.RFC3339)
	w.remove(claim)
	w.untilAllSaid("DoNotDisruptUntil Pod must not be disrupted until "+until, "default/batch forbids it by karpenter.sh/do-not-disrupt")
	if w.podGone(pod) {
		t.Error("the pod was evicted before its time")
	}
	pod.Status.StartTime = &metav1.Time{Time: time.Now().Add(-2 * time.Hour)}
	w.must(w.client.Status().Update(t.Context(), pod))
	w.gone(node)
	w.untilSaid("DoNotDisruptGracePeriodElapsed")
}

// attach attaches a volume to a node, as the attach-detach controller would.
func (w *world) attach(volume string, node *corev1.Node) *storagev1.VolumeAttachment {
	w.t.Helper()
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "of-" + volume}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "csi.example", NodeName: node.Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
	w.create(a)
	return a
}

// claimOf returns a PersistentVolumeClaim that is bound to a volume.
func (w *world) claimOf(volume string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "claim-" + volume},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: volume, StorageClassName: new("none"),
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{"storage": resource.MustParse("1Gi")}},
		}}
	w.create(c)
	return c
}

func mounting(claim *corev1.PersistentVolumeClaim, change func(*corev1.Pod)) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim.Name}}}}
		if change != nil {
			change(p)
		}
	}
}

// testVolumesHoldMachine verifies that the machine waits for the volumes of the evicted pods, and for no others.
func testVolumesHoldMachine(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.cloud.slow = 3
	w.start()
	claim, node := w.running("attached")
	_, elsewhere := w.running("elsewhere")
	leaving := w.pod("db", node, mounting(w.claimOf("data"), nil))
	w.pod("cache", node, mounting(w.claimOf("kept"), func(p *corev1.Pod) {
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	}))
	held, orphan := w.attach("data", node), w.attach("orphan", node)
	w.attach("kept", node)
	w.attach("other", elsewhere)
	w.remove(claim)
	w.until("the pod is evicted", func() bool { return w.podGone(leaving) })
	w.untilCondition(claim, karpv1.ConditionVolumesDetached, "Unknown", karpv1.ReasonAwaitingVolumeDetachment)
	w.untilSaid("AwaitingVolumeDetachment Awaiting deletion of bound volumeattachments of-data, of-orphan")
	w.remove(held)
	if drained := claim.Condition(karpv1.ConditionDrained); !drained.IsTrue() || claim.Condition(karpv1.ConditionInstanceTerminating) != nil {
		t.Errorf("conditions %+v, want drained and not terminating", claim.Status.Conditions)
	}
	if !w.read(node) || !w.cloud.has(claim.Status.ProviderID) {
		t.Error("the node or its machine did not wait for the volumes")
	}
	w.remove(orphan)
	w.untilCondition(claim, karpv1.ConditionVolumesDetached, "True", "")
	w.gone(node)
	w.gone(claim)
}

func testVolumesAtDeadline(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.cloud.slow = 1 << 30 // so that the claim stays and can be examined
	w.start()
	claim, node := w.bounded("stuck", 2*time.Second)
	w.attach("stubborn", node)
	w.remove(claim)
	w.untilCondition(claim, karpv1.ConditionVolumesDetached, "Unknown", karpv1.ReasonAwaitingVolumeDetachment)
	w.untilCondition(claim, karpv1.ConditionInstanceTerminating, "True", "")
	w.untilCondition(claim, karpv1.ConditionVolumesDetached, "False", karpv1.ReasonTerminationGracePeriodElapsed)
}

func testConsistency(t *testing.T, s *apiServer) {
	w := in(t, s)
	w.timers.Consistency = 100 * time.Millisecond
	w.start()
	claim, node := w.running("shrunk")
	w.untilCondition(claim, karpv1.ConditionConsistentStateFound, "True", "")
	w.until("the node has lost a core", func() bool {
		w.read(node)
		node.Status.Capacity["cpu"] = resource.MustParse("3")
		return w.client.Status().Update(t.Context(), node) == nil
	})
	w.untilCondition(claim, karpv1.ConditionConsistentStateFound, "False", karpv1.ReasonConsistencyCheckFailed)
	const want = "expected 4 of resource cpu, but found 3 (75.0% of expected)"
	if got := claim.Condition(karpv1.ConditionConsistentStateFound).Message; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	w.untilSaid(fmt.Sprintf("FailedConsistencyCheck %s", want))
	if ready := claim.Condition("Ready"); !ready.IsTrue() {
		t.Errorf("Ready is %s; want the consistency check to have no effect on it", ready.Status)
	}
}
