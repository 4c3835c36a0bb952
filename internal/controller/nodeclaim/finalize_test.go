package nodeclaim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// TestRemoveNodesBehindCache verifies that the deletion of a claim drains its node if the node is registered, even if
// the cache still shows it unregistered. A node that is not registered on the API server either is deleted with its
// machine.
func TestRemoveNodesBehindCache(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, karpv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	node := func(finalizers ...string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "uid", Finalizers: finalizers}, Spec: corev1.NodeSpec{ProviderID: "machine"}}
	}
	for _, test := range []struct {
		name    string
		live    *corev1.Node
		deleted bool
	}{
		{"registered since", node(karpv1.FinalizerTermination), true},
		{"not registered", node(), false},
		{"gone", nil, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(node()).
				WithIndex(&corev1.Node{}, controller.FieldNodeProviderID, func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).Build()
			live := fake.NewClientBuilder().WithScheme(scheme)
			if test.live != nil {
				live = live.WithObjects(test.live)
			}
			r := &Reconciler{Client: cached, Live: live.Build(), Timers: controller.Production()}
			claim := &karpv1.NodeClaim{}
			claim.Status.ProviderID = "machine"
			again, err := r.removeNodes(t.Context(), claim)
			if err != nil {
				t.Fatal(err)
			}
			left := &corev1.Node{}
			gone := cached.Get(t.Context(), client.ObjectKey{Name: "n"}, left) != nil
			if gone != test.deleted || (again > 0) != test.deleted {
				t.Errorf("deleted %t, next check after %v, want %t", gone, again, test.deleted)
			}
		})
	}
}
