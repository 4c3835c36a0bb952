package nodeclaim

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// ending is a cloud with machines that are terminated on request.
type ending struct {
	cloud.Provider
	machines map[string]bool
}

func (ending) NodeClasses() []client.Object { return []client.Object{&kwokv1alpha1.KWOKNodeClass{}} }

func (e ending) Terminate(_ context.Context, id string) error {
	if !e.machines[id] {
		return cloud.ErrNotFound
	}
	delete(e.machines, id)
	return nil
}

// TestLostFinalizerBesideAnother verifies that a claim that has lost the termination finalizer, and that another
// finalizer keeps for a while (kubectl delete --cascade=foreground), leaves no machine behind.
func TestLostFinalizerBesideAnother(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{karpv1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	provider := ending{machines: map[string]bool{"launched": true}}
	classes, err := controller.ClassesOf(provider, scheme)
	if err != nil {
		t.Fatal(err)
	}
	claim := &karpv1.NodeClaim{}
	claim.Name, claim.UID, claim.Finalizers = "c", "uid", []string{"foregroundDeletion"}
	claim.Spec.NodeClassRef = karpv1.NodeClassReference{Group: kwokv1alpha1.GroupVersion.Group, Kind: "KWOKNodeClass", Name: "default"}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim).Build()
	if err := api.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{Client: api, Live: api, Provider: provider, Timers: controller.Production(), Clock: clock.RealClock{}, classes: classes}
	r.launches.record(claim.UID, claim.Name, &launchResult{machine: &cloud.Machine{ProviderID: "launched"}}, time.Now())
	reconcile := func() {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: claim.Name}}); err != nil {
			t.Fatal(err)
		}
	}
	reconcile()
	if !provider.machines["launched"] {
		t.Error("the machine of an existing claim was terminated")
	}
	if err := api.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = nil
	if err := api.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	reconcile()
	reconcile()
	if provider.machines["launched"] || r.launches.result("uid") != nil {
		t.Errorf("the machine remains: %t, and is remembered: %t", provider.machines["launched"], r.launches.result("uid") != nil)
	}
}
