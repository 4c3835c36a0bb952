package node

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// kwokClasses is a provider with the node classes of kwok. Repair calls none of its other methods.
type kwokClasses struct{ cloud.Provider }

func (kwokClasses) NodeClasses() []client.Object {
	return []client.Object{&kwokv1alpha1.KWOKNodeClass{}}
}

// noon is the reference time of the repair tests.
var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// sickNode returns a node of the NodePool general that has the condition Broken, with the given status, since before
// noon by the given duration.
func sickNode(status corev1.ConditionStatus, before time.Duration) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "node", Labels: map[string]string{
		karpv1.LabelNodePool: "general", karpv1.NodeClassLabel(kwokv1alpha1.Group, "KWOKNodeClass"): "default",
	}}}
	n.Spec.ProviderID = "memory:///n"
	n.Status.Conditions = []corev1.NodeCondition{{Type: "Broken", Status: status, LastTransitionTime: metav1.NewTime(noon.Add(-before))}}
	return n
}

// repairBeside returns a Repair with a cache that contains the given node, and with the API server live.
func repairBeside(t *testing.T, cached *corev1.Node, live client.Reader) *Repair {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), karpv1.AddToScheme(scheme), kwokv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	class := karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: "KWOKNodeClass", Name: "default"}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "general"}}
	pool.Spec.Template.Spec.NodeClassRef = class
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "claim", Labels: map[string]string{karpv1.LabelNodePool: "general"}}}
	claim.Spec.NodeClassRef = class
	claim.Status.ProviderID = cached.Spec.ProviderID
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(pool, claim, cached).
		WithIndex(&karpv1.NodeClaim{}, controller.FieldClaimProviderID, func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} }).
		WithIndex(&corev1.Node{}, controller.FieldPool, func(o client.Object) []string { return []string{o.GetLabels()[karpv1.LabelNodePool]} }).
		Build()
	sink, at := events.NewFakeRecorder(100), testclock.NewFakePassiveClock(noon)
	recorder, metrics := telemetry.NewRecorder(sink, at), telemetry.New(prometheus.NewRegistry())
	r := &Repair{
		Client: cache, Live: live, Provider: kwokClasses{}, Recorder: recorder, Metrics: metrics, Timers: controller.Production(), Clock: at,
		Policies: []cloud.RepairPolicy{{ConditionType: "Broken", ConditionStatus: "True", Toleration: 5 * time.Minute}},
	}
	if err := r.Recognize(scheme); err != nil {
		t.Fatal(err)
	}
	r.Limiter = &removal.Limiter{Client: cache, Live: cache, Provider: r.Provider, Classes: r.classes, Recorder: recorder,
		Metrics: metrics, Timers: r.Timers, Clock: at}
	return r
}

// answers is an API server that has one node, or none, or does not respond.
type answers struct {
	client.Reader
	node *corev1.Node
	err  error
}

func (a answers) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	switch {
	case a.err != nil:
		return a.err
	case a.node == nil:
		return apierrors.NewNotFound(corev1.Resource("nodes"), key.Name)
	}
	a.node.DeepCopyInto(o.(*corev1.Node))
	return nil
}

// TestRepairOfALaggingCache verifies that a node that the cache shows as unhealthy for longer than tolerated is
// replaced if the API server shows the same. Otherwise nothing is written: neither a deadline on the claim nor a
// removal that the Limiter counts.
func TestRepairOfALaggingCache(t *testing.T) {
	other := sickNode("True", time.Hour)
	other.UID = types.UID("registered again")
	away := errors.New("the API server is away")
	for _, test := range []struct {
		name string
		live answers
		want bool
	}{
		{"the same", answers{node: sickNode("True", time.Hour)}, true},
		{"well again", answers{node: sickNode("False", time.Second)}, false},
		{"well, and ill once more", answers{node: sickNode("True", time.Minute)}, false},
		{"another node of that name", answers{node: other}, false},
		{"no node", answers{}, false},
		{"no answer", answers{err: away}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := repairBeside(t, sickNode("True", time.Hour), test.live)
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "n"}})
			if !errors.Is(err, test.live.err) {
				t.Errorf("error %v, want %v", err, test.live.err)
			}
			var claim karpv1.NodeClaim
			left := r.Client.Get(t.Context(), client.ObjectKey{Name: "c"}, &claim)
			if replaced := apierrors.IsNotFound(left); replaced != test.want {
				t.Errorf("the claim is replaced: %t, want %t", replaced, test.want)
			}
			var pool karpv1.NodePool
			if err := r.Client.Get(t.Context(), client.ObjectKey{Name: "general"}, &pool); err != nil {
				t.Fatal(err)
			}
			if counted := pool.Annotations[karpv1.AnnotationPauses] != ""; counted != test.want {
				t.Errorf("the Limiter counts the removal: %t, want %t", counted, test.want)
			}
			if test.want {
				return
			}
			if diff := cmp.Diff(map[string]string(nil), claim.Annotations); diff != "" {
				t.Errorf("annotations of the claim (-want +got):\n%s", diff)
			}
			if err == nil && result.RequeueAfter != r.Timers.RepairRetry {
				t.Errorf("the next check is after %v, want %v", result.RequeueAfter, r.Timers.RepairRetry)
			}
		})
	}
}
