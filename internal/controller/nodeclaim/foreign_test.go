package nodeclaim

import (
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// busyCloud cannot terminate machines now: it stores its records in a Kubernetes API, which responds with a conflict.
type busyCloud struct{ cloud.Provider }

func (busyCloud) Name() string                 { return "busy" }
func (busyCloud) NodeClasses() []client.Object { return []client.Object{&kwokv1alpha1.KWOKNodeClass{}} }
func (busyCloud) Terminate(context.Context, string) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "machine", nil)
}

// onlyKwok returns Classes that own kwok's classes only.
func onlyKwok(t *testing.T) (controller.Classes, *fake.ClientBuilder) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	classes, err := controller.ClassesOf(busyCloud{}, scheme)
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&karpv1.NodeClaim{}).
		WithIndex(&corev1.Node{}, controller.FieldNodeProviderID,
			func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithIndex(&karpv1.NodeClaim{}, controller.FieldClaimProviderID,
			func(o client.Object) []string { return []string{o.(*karpv1.NodeClaim).Status.ProviderID} })
	return classes, builder
}

func claimOfKind(kind string) *karpv1.NodeClaim {
	claim := claimWith("a", karpv1.ConditionLaunched)
	claim.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kind, Name: "default"}
	claim.Status.ProviderID = "id"
	return claim
}

// TestErrorsOfTheCloudAreNotStaleReads verifies that a conflict in the cloud is an error of the cloud, not a stale
// read of the controller: it causes backoff and is reported.
func TestErrorsOfTheCloudAreNotStaleReads(t *testing.T) {
	classes, builder := onlyKwok(t)
	claim := claimOfKind("KWOKNodeClass")
	claim.Finalizers, claim.DeletionTimestamp = []string{karpv1.FinalizerTermination}, &metav1.Time{Time: born.Time}
	r := &Reconciler{
		Client: builder.WithObjects(claim).Build(), Provider: busyCloud{}, Metrics: telemetry.New(prometheus.NewRegistry()),
		Timers: controller.Production(), Clock: clocktesting.NewFakePassiveClock(born.Time), classes: classes,
	}
	result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: claim.Name}})
	if err == nil {
		t.Errorf("no error, next check in %s", result.RequeueAfter)
	}
}

// TestPodEventsAreNotedOnOurClaimsOnly verifies that claims with classes of other providers are not written.
func TestPodEventsAreNotedOnOurClaimsOnly(t *testing.T) {
	for kind, want := range map[string]bool{"KWOKNodeClass": true, "EC2NodeClass": false} {
		classes, builder := onlyKwok(t)
		claim := claimOfKind(kind)
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: "id"}}
		c := builder.WithObjects(claim, node).WithStatusSubresource(claim).Build()
		p := &PodEvents{Client: c, Timers: controller.Production(), Clock: clocktesting.NewFakePassiveClock(may), classes: classes}
		if _, err := p.Reconcile(t.Context(), Moment{Node: "n", At: may}); err != nil {
			t.Fatal(err)
		}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
			t.Fatal(err)
		}
		if got := !claim.Status.LastPodEventTime.IsZero(); got != want {
			t.Errorf("%s: recorded %t, want %t", kind, got, want)
		}
	}
}

// TestClaimsOfClass verifies that a class triggers the claims of the pools that name it, and those that were created
// with it: the deletion of a class waits for the latter.
func TestClaimsOfClass(t *testing.T) {
	_, builder := onlyKwok(t)
	claim := func(name, pool, class string) *karpv1.NodeClaim {
		c := claimWith(name, karpv1.ConditionLaunched)
		c.Labels = map[string]string{karpv1.LabelNodePool: pool}
		c.Spec.NodeClassRef = ofKind("Class", class)
		return c
	}
	moved, other := poolNaming(ofKind("Class", "second")), poolNaming(ofKind("Class", "third"))
	moved.Name, other.Name = "moved", "other"
	api := builder.WithObjects(moved, other, claim("old", "moved", "first"), claim("new", "moved", "second"),
		claim("another", "other", "third")).
		WithIndex(&karpv1.NodePool{}, controller.FieldPoolClass, func(o client.Object) []string {
			return []string{controller.ClassKey(o.(*karpv1.NodePool).Spec.Template.Spec.NodeClassRef)}
		}).
		WithIndex(&karpv1.NodeClaim{}, controller.FieldClaimClass, func(o client.Object) []string {
			return []string{controller.ClassKey(o.(*karpv1.NodeClaim).Spec.NodeClassRef)}
		}).
		WithIndex(&karpv1.NodeClaim{}, controller.FieldPool,
			func(o client.Object) []string { return []string{o.GetLabels()[karpv1.LabelNodePool]} }).
		Build()
	a := &DriftReconciler{Client: api}
	for class, want := range map[string][]string{"first": {"old"}, "second": {"new", "old"}, "third": {"another"}, "fourth": {}} {
		woken := map[string]bool{}
		for _, request := range a.claimsOfClass(t.Context(), ofKind("Class", class)) {
			woken[request.Name] = true
		}
		if got := slices.Sorted(maps.Keys(woken)); !slices.Equal(got, want) {
			t.Errorf("class %s triggers %v, want %v", class, got, want)
		}
	}
}
