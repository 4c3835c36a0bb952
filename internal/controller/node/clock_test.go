package node

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestDeadlinesByTheServersClock verifies that deadlines are written and read by the API server's clock: a controller
// with a clock that is minutes off waits for volumes as long as any other, and the deadline of a repair is now.
func TestDeadlinesByTheServersClock(t *testing.T) {
	for _, ahead := range []time.Duration{0, 10 * time.Minute, -10 * time.Minute} {
		for left, waits := range map[time.Duration]bool{5 * time.Minute: true, time.Second: true, 0: false, -5 * time.Minute: false} {
			r, node := attached(t, now.Add(left))
			r.Clock, r.Ahead = testclock.NewFakePassiveClock(now.Add(ahead)), func() time.Duration { return ahead }
			l, err := r.gather(t.Context(), node)
			if err != nil {
				t.Fatal(err)
			}
			again, err := r.detach(t.Context(), l)
			if err != nil || (again > 0) != waits {
				t.Errorf("a clock that is %s ahead, %s before the deadline: next check in %s, error %v; want it to wait: %t",
					ahead, left, again, err, waits)
			}
		}
	}
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		r, _ := attached(t, time.Time{})
		claim := &karpv1.NodeClaim{}
		if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "c"}, claim); err != nil {
			t.Fatal(err)
		}
		repair := &Repair{Client: r.Client, Recorder: r.Recorder, Metrics: r.Metrics, Clock: testclock.NewFakePassiveClock(now.Add(ahead)),
			Ahead: func() time.Duration { return ahead }}
		if err := repair.replace(t.Context(), claim, unhealthyCondition{condition: corev1.NodeReady}, 0); err != nil {
			t.Fatal(err)
		}
		if ends, _ := claim.DrainEnds(); !ends.Equal(now) {
			t.Errorf("a clock that is %s ahead: the drain ends at %s, want %s", ahead, ends, now)
		}
	}
}

// attached returns a node with a volume and a claim whose drain ends at the deadline, if that is not zero.
func attached(t *testing.T, deadline time.Time) (*Reconciler, *corev1.Node) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: "memory:///c"}}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "c", Finalizers: []string{karpv1.FinalizerTermination}}}
	claim.Status.ProviderID = node.Spec.ProviderID
	if !deadline.IsZero() {
		claim.Annotations = map[string]string{karpv1.AnnotationTerminationTimestamp: deadline.UTC().Format(time.RFC3339)}
	}
	attachment := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: storagev1.VolumeAttachmentSpec{NodeName: "n"}}
	attachment.Spec.Source.PersistentVolumeName = new("data")
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node, claim, attachment).WithStatusSubresource(claim).
		WithIndex(&corev1.Pod{}, controller.FieldPodNode, func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} }).
		WithIndex(&storagev1.VolumeAttachment{}, controller.FieldAttachmentNode,
			func(o client.Object) []string { return []string{o.(*storagev1.VolumeAttachment).Spec.NodeName} }).
		WithIndex(&karpv1.NodeClaim{}, controller.FieldClaimProviderID,
			func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).Build()
	return &Reconciler{Client: api, Timers: controller.Production(), Metrics: telemetry.New(prometheus.NewRegistry()),
		Recorder: telemetry.NewRecorder(events.NewFakeRecorder(100), testclock.NewFakePassiveClock(now))}, node
}
