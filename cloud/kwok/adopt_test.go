package kwok

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// theirs is a Node as upstream's provider creates it, after its registration.
const theirs = `
metadata:
  name: kwok-general-x7k2p-silly-hopper-0-h3j9-2934712345
  annotations: {kwok.x-k8s.io/node: fake, node.alpha.kubernetes.io/ttl: "0"}
  finalizers: [karpenter.sh/termination]
  labels:
    karpenter.kwok.sh/kwoknodeclass: default
    karpenter.sh/nodepool: general
    karpenter.sh/capacity-type: spot
    karpenter.sh/registered: "true"
    karpenter.sh/initialized: "true"
    kubernetes.io/hostname: general-x7k2p
    kwok-partition: a
    kwok.x-k8s.io/node: fake
    node.kubernetes.io/instance-type: c-4x-amd64-linux
    topology.kubernetes.io/zone: test-zone-a
  ownerReferences: [{apiVersion: karpenter.sh/v1, kind: NodeClaim, name: general-x7k2p, uid: claim-uid, blockOwnerDeletion: true}]
spec: {providerID: "kwok://kwok-general-x7k2p-silly-hopper-0-h3j9-2934712345"}
status: {capacity: {cpu: "4", memory: 8Gi, pods: "64"}, allocatable: {cpu: 3900m, memory: 8182Mi, pods: "64"}}
`

// adopting returns a provider that has resumed the state of an earlier process.
func adopting(t *testing.T, nodes ...client.Object) (*Provider, client.Client) {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(nodes...).Build()
	p, err := New(Options{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p, c
}

func nodeFrom(t *testing.T, text string) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	if err := yaml.UnmarshalStrict([]byte(text), node); err != nil {
		t.Fatal(err)
	}
	return node
}

// A Node of upstream's provider is a machine from the start and can be terminated like any other.
func TestAdoption(t *testing.T) {
	node := nodeFrom(t, theirs)
	p, c := adopting(t, node)
	machines, err := p.Machines(t.Context())
	if err != nil || len(machines) != 1 {
		t.Fatalf("%d machines, %v", len(machines), err)
	}
	want := cloud.Machine{
		ProviderID: node.Spec.ProviderID, Claim: "general-x7k2p",
		Labels: map[string]string{
			"karpenter.kwok.sh/kwoknodeclass": "default", "karpenter.sh/nodepool": "general", "karpenter.sh/capacity-type": "spot",
			"node.kubernetes.io/instance-type": "c-4x-amd64-linux", "topology.kubernetes.io/zone": "test-zone-a",
		},
		Capacity:    map[string]int64{"cpu": 4000, "memory": 8 << 30, "pods": 64},
		Allocatable: map[string]int64{"cpu": 3900, "memory": 8182 << 20, "pods": 64},
	}
	machines[0].Created = want.Created
	if diff := cmp.Diff(want, machines[0]); diff != "" {
		t.Error(diff)
	}
	// A second start finds the record and changes nothing.
	before := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), before); err != nil {
		t.Fatal(err)
	}
	if err := p.resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), after); err != nil || before.ResourceVersion != after.ResourceVersion {
		t.Errorf("the node was written again or deleted: %v", err)
	}
	// The adopted machine terminates like any other.
	if err := p.Terminate(t.Context(), node.Spec.ProviderID); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("terminating it: %v", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), after); err != nil || after.DeletionTimestamp.IsZero() {
		t.Errorf("the node is not being deleted: %v", err)
	}
	if machines, err := p.Machines(t.Context()); err != nil || len(machines) != 0 {
		t.Errorf("%d machines after termination, %v", len(machines), err)
	}
}

// If the process crashes between the creation of the record and the annotation of the Node, the next start completes
// the adoption.
func TestAdoptionAfterACrash(t *testing.T) {
	node := nodeFrom(t, theirs)
	p, c := adopting(t, node)
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil {
		t.Fatal(err)
	}
	delete(node.Annotations, AnnotationRecord)
	if err := c.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := p.resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node); err != nil || !p.ownsNode(node) {
		t.Errorf("the provider does not own the node: %v, %v", node.Annotations, err)
	}
}

// An adoption that fails is retried. Until it succeeds, the Node is reported as an existing machine.
func TestAdoptionIsTriedAgain(t *testing.T) {
	node := nodeFrom(t, theirs)
	refuse := true
	_, stored := adopting(t)
	if err := stored.Create(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	c := interceptor.NewClient(stored.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, o ...client.CreateOption) error {
			if refuse {
				return errors.New("no")
			}
			return c.Create(ctx, object, o...)
		},
	})
	p, err := New(Options{Client: c})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.resume(t.Context()); err == nil {
		t.Error("resume does not report the pending adoption")
	}
	if machine, err := p.Machine(t.Context(), node.Spec.ProviderID); err != nil || machine.Claim != "general-x7k2p" {
		t.Errorf("the machine that has not been adopted yet: %+v, %v", machine, err)
	}
	refuse = false
	if err := p.resume(t.Context()); err != nil {
		t.Error(err)
	}
	if machines, err := p.Machines(t.Context()); err != nil || len(machines) != 1 {
		t.Errorf("%d machines, %v", len(machines), err)
	}
}

// Nodes that only resemble those of upstream's provider are not changed.
func TestNoAdoption(t *testing.T) {
	for name, spoil := range map[string]func(*corev1.Node){
		"of no class":           func(n *corev1.Node) { delete(n.Labels, "karpenter.kwok.sh/kwoknodeclass") },
		"of another provider":   func(n *corev1.Node) { n.Spec.ProviderID = "aws:///a/i-1" },
		"of another name":       func(n *corev1.Node) { n.Spec.ProviderID = "kwok://kwok-other" },
		"with a foreign record": func(n *corev1.Node) { n.Annotations[AnnotationRecord] = "elsewhere/x" },
	} {
		node := nodeFrom(t, theirs)
		spoil(node)
		p, _ := adopting(t, node)
		if machines, err := p.Machines(t.Context()); err != nil || len(machines) > 0 {
			t.Errorf("%s: %d machines, %v", name, len(machines), err)
		}
		if _, err := p.Machine(t.Context(), providerScheme+node.Name); !errors.Is(err, cloud.ErrNotFound) {
			t.Errorf("%s: reading its machine: %v", name, err)
		}
	}
}
