package execute_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestMovedPodsAreCounted verifies that the pods that the removal of a node moves are counted once, with the reason: not
// those of DaemonSets, static pods, and pods that have ended or are being deleted.
func TestMovedPodsAreCounted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c",
		Labels: map[string]string{karpv1.LabelNodePool: "p", karpv1.LabelCapacityType: "spot"}}}
	claim.Status.NodeName = "n"
	yes := true
	objects := []client.Object{claim}
	for name, change := range map[string]func(*corev1.Pod){
		"first":  func(*corev1.Pod) {},
		"second": func(*corev1.Pod) {},
		"daemon": func(p *corev1.Pod) {
			p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}
		},
		"static": func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} },
		"ended":  func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded },
		"leaving": func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: time.Unix(0, 0)}, []string{"example.com/f"}
		},
		"elsewhere": func(p *corev1.Pod) { p.Spec.NodeName = "other" },
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}, Spec: corev1.PodSpec{NodeName: "n"}}
		change(pod)
		objects = append(objects, pod)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&karpv1.NodePool{}).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).Build()
	x := &execute.Executor{Client: c, Live: c, Store: &written{}, Metrics: telemetry.New(prometheus.NewRegistry()),
		Recorder: telemetry.NewRecorder(events.NewFakeRecorder(10), clocktesting.NewFakePassiveClock(time.Unix(0, 0)))}
	for range 2 {
		if err := x.Do(t.Context(), []plan.Action{plan.DeleteClaim{Claim: "c", UID: "c", Reason: plan.Drifted}})[0].Err; err != nil {
			t.Fatal(err)
		}
	}
	if n := testutil.ToFloat64(x.Metrics.PodsDisruptionInitiated.WithLabelValues("drifted", "p", "spot", "", "graceful")); n != 2 {
		t.Errorf("counted %v pods, want 2", n)
	}
}
