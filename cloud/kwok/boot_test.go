package kwok

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/wait"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// claim returns a claim of the world's class that requires a certain type in a certain zone, on demand.
func (w *world) claim() *karpv1.NodeClaim {
	in := func(key, value string) karpv1.Requirement {
		return karpv1.Requirement{Key: key, Operator: karpv1.OperatorIn, Values: []string{value}}
	}
	return &karpv1.NodeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.namespace + "-claim", UID: uuid.NewUUID(),
			Labels: map[string]string{karpv1.LabelNodePool: "general", "team": "a"},
		},
		Spec: karpv1.NodeClaimSpec{
			NodeClassRef: karpv1.NodeClassReference{Group: kwokv1alpha1.Group, Kind: kwokv1alpha1.Kind, Name: w.namespace},
			Requirements: []karpv1.Requirement{
				in(corev1.LabelInstanceTypeStable, "m-4x-arm64-linux"), in(corev1.LabelTopologyZone, "test-zone-b"),
				in(karpv1.LabelCapacityType, "on-demand"), in("example.com/tier", "gold"),
			},
		},
	}
}

func (w *world) launch(t *testing.T, p *Provider, claim *karpv1.NodeClaim) *cloud.Machine {
	t.Helper()
	machine, err := p.Launch(t.Context(), claim)
	if err != nil {
		t.Fatalf("Launch: %v", err)
	}
	return machine
}

func nodeName(m *cloud.Machine) string { return strings.TrimPrefix(m.ProviderID, providerScheme) }

// node returns the machine's Node, or nil if there is none.
func (w *world) node(t *testing.T, m *cloud.Machine) *corev1.Node {
	t.Helper()
	node := &corev1.Node{}
	err := w.cluster.Get(t.Context(), client.ObjectKey{Name: nodeName(m)}, node)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	return node
}

func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true,
		func(context.Context) (bool, error) { return done(), nil })
	if err != nil {
		t.Fatalf("waiting until %s: %v", what, err)
	}
}

func (w *world) waitForNode(t *testing.T, m *cloud.Machine) *corev1.Node {
	t.Helper()
	var node *corev1.Node
	eventually(t, "node "+nodeName(m)+" is there", func() bool { node = w.node(t, m); return node != nil })
	return node
}

func advance(t *testing.T, p *Provider, m *cloud.Machine) {
	t.Helper()
	if err := p.advance(t.Context(), nodeName(m)); err != nil {
		t.Fatalf("advance: %v", err)
	}
}

// A node has the full capacity of its type and everything that registration requires. kwok's controller sets it to
// Ready and does not change the capacity.
func testNode(t *testing.T, w *world) {
	p := w.provider(t)
	start(t, p)
	claim := w.claim()
	m := w.launch(t, p, claim)
	var node *corev1.Node
	eventually(t, "kwok's controller has made the node Ready", func() bool {
		node = w.node(t, m)
		return node != nil && isReady(node)
	})
	wantLabels := map[string]string{
		karpv1.LabelNodePool: "general", "team": "a", "example.com/tier": "gold",
		corev1.LabelInstanceTypeStable: "m-4x-arm64-linux", corev1.LabelTopologyZone: "test-zone-b", karpv1.LabelCapacityType: "on-demand",
		corev1.LabelArchStable: "arm64", corev1.LabelOSStable: "linux", corev1.LabelHostname: claim.Name,
		LabelCPU: "4", LabelFamily: "m", LabelMemory: "32768", LabelSize: "4",
		"kwok.x-k8s.io/node": "fake", "kwok-partition": "a", "eks-node-viewer/instance-price": "0.134359738",
	}
	for key, value := range wantLabels {
		if node.Labels[key] != value {
			t.Errorf("label %s is %q, want %q", key, node.Labels[key], value)
		}
	}
	if node.Spec.ProviderID != m.ProviderID || node.Annotations["kwok.x-k8s.io/node"] != "fake" {
		t.Errorf("node has provider ID %q and annotations %v", node.Spec.ProviderID, node.Annotations)
	}
	unregistered := karpv1.UnregisteredTaint()
	if len(node.Spec.Taints) == 0 || !containsTaint(node.Spec.Taints, unregistered) {
		t.Errorf("taints are %v, want %s among them", node.Spec.Taints, unregistered.ToString())
	}
	if diff := cmp.Diff(map[string]int64{"cpu": 4000, "memory": 32 << 30, "ephemeral-storage": 20 << 30, "pods": 64},
		cloud.Amounts(node.Status.Capacity)); diff != "" {
		t.Errorf("capacity (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(m.Allocatable, cloud.Amounts(node.Status.Allocatable)); diff != "" {
		t.Errorf("allocatable (-machine +node):\n%s", diff)
	}
	if info := node.Status.NodeInfo; info.Architecture != "arm64" || info.OperatingSystem != "linux" {
		t.Errorf("node info is %s %s, want arm64 linux", info.Architecture, info.OperatingSystem)
	}
}

func isReady(node *corev1.Node) bool {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

func containsTaint(taints []corev1.Taint, wanted corev1.Taint) bool {
	for _, taint := range taints {
		if taint.MatchTaint(&wanted) {
			return true
		}
	}
	return false
}

func testRegistrationDelay(t *testing.T, w *world) {
	class := &kwokv1alpha1.KWOKNodeClass{}
	if err := w.cluster.Get(t.Context(), client.ObjectKey{Name: w.namespace}, class); err != nil {
		t.Fatal(err)
	}
	class.Spec.NodeRegistrationDelay = &metav1.Duration{Duration: time.Minute}
	if err := w.cluster.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	clock := clocktesting.NewFakeClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	p := w.provider(t, func(o *Options) { o.Clock = clock })
	m := w.launch(t, p, w.claim())
	clock.Step(59 * time.Second)
	advance(t, p, m)
	if w.node(t, m) != nil {
		t.Error("the node exists after 59 seconds, want it after a minute")
	}
	clock.Step(time.Second)
	advance(t, p, m)
	if w.node(t, m) == nil {
		t.Error("there is no node after a minute")
	}
}

func testResume(t *testing.T, w *world) {
	m := w.launch(t, w.provider(t), w.claim()) // a process that crashes before it creates the node
	if w.node(t, m) != nil {
		t.Fatal("the node exists before any provider was started")
	}
	start(t, w.provider(t))
	w.waitForNode(t, m)
}

// failing makes requests of one kind fail without reaching the server.
func failing(verb string, object runtime.Object) fault {
	return func(_ context.Context, v string, o runtime.Object, send func() error) error {
		if v == verb && cmp.Equal(typeName(o), typeName(object)) {
			return errLost
		}
		return send()
	}
}

func typeName(o runtime.Object) string {
	switch o.(type) {
	case *corev1.Node:
		return "Node"
	case *corev1.ConfigMap:
		return "ConfigMap"
	}
	return ""
}

func testCrashAtRegistration(t *testing.T, w *world) {
	p := w.provider(t)
	m := w.launch(t, p, w.claim())
	restore := w.faults.set(failing("update", &corev1.ConfigMap{}))
	if err := p.advance(t.Context(), nodeName(m)); !errors.Is(err, errLost) {
		t.Fatalf("advance: %v, want the record not to be written", err)
	}
	restore()
	before := w.node(t, m)
	next := w.provider(t)
	advance(t, next, m)
	if after := w.node(t, m); before == nil || after.UID != before.UID {
		t.Errorf("the node was created again")
	}
	if err := w.cluster.Delete(t.Context(), before); err != nil { // by a user: the machine does not register again
		t.Fatal(err)
	}
	advance(t, next, m)
	if w.node(t, m) != nil {
		t.Error("a node that was registered is created again after its deletion")
	}
}

func testCrashAtTermination(t *testing.T, w *world) {
	p := w.provider(t)
	m := w.launch(t, p, w.claim())
	advance(t, p, m)
	restore := w.faults.set(failing("delete", &corev1.ConfigMap{}))
	if err := p.Terminate(t.Context(), m.ProviderID); !errors.Is(err, errLost) {
		t.Fatalf("Terminate: %v, want the record not to be deleted", err)
	}
	restore()
	if w.node(t, m) != nil {
		t.Error("the node exists after the first call")
	}
	next := w.provider(t)
	if machines, err := next.Machines(t.Context()); err != nil || len(machines) != 1 {
		t.Errorf("Machines: %v, %v, want the machine until its record is deleted", machines, err)
	}
	wantGone(t, next, m)
}

func wantGone(t *testing.T, p *Provider, m *cloud.Machine) {
	t.Helper()
	if err := p.Terminate(t.Context(), m.ProviderID); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("Terminate: %v, want ErrNotFound", err)
	}
	if machines, err := p.Machines(t.Context()); err != nil || len(machines) != 0 {
		t.Errorf("Machines: %v, %v, want none", machines, err)
	}
}

func testFinalizer(t *testing.T, w *world) {
	p := w.provider(t)
	m := w.launch(t, p, w.claim())
	advance(t, p, m)
	w.setFinalizers(t, w.node(t, m), karpv1.FinalizerTermination)
	wantGone(t, p, m)
	node := w.node(t, m)
	switch {
	case node == nil:
		t.Fatalf("node is nil")
	case node.DeletionTimestamp == nil:
		t.Fatalf("node.DeletionTimestamp is nil, the node is %+v", node)
	case len(node.Finalizers) != 1:
		t.Fatalf("len(node.Finalizers) is %v, want 1, the node is %+v", len(node.Finalizers), node)
	}
	wantGone(t, p, m)
	w.setFinalizers(t, node)
	eventually(t, "the node is gone", func() bool { return w.node(t, m) == nil })
}

// setFinalizers replaces a node's finalizers, even if another client writes the node at the same time.
func (w *world) setFinalizers(t *testing.T, node *corev1.Node, finalizers ...string) {
	t.Helper()
	before := client.MergeFrom(node.DeepCopy())
	node.Finalizers = finalizers
	if err := w.cluster.Patch(t.Context(), node, before); err != nil {
		t.Fatal(err)
	}
}

// A Node whose machine has no record is deleted at the next start. Nodes of other providers are kept.
func testForeignNodes(t *testing.T, w *world) {
	p := w.provider(t)
	orphan := w.launch(t, p, w.claim())
	advance(t, p, orphan)
	record := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: recordName(nodeName(orphan))}}
	if err := w.cluster.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	other := w.provider(t, func(o *Options) { o.Namespace = "default" })
	neighbor := w.launch(t, other, w.claim())
	advance(t, other, neighbor)
	fromUpstream := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "kwok-" + w.namespace, Labels: map[string]string{fakeNode: "fake"}},
		Spec:       corev1.NodeSpec{ProviderID: providerScheme + "kwok-" + w.namespace},
	}
	w.create(t, fromUpstream)
	start(t, w.provider(t))
	eventually(t, "the node without a machine is gone", func() bool { return w.node(t, orphan) == nil })
	if err := p.Terminate(t.Context(), fromUpstream.Spec.ProviderID); !errors.Is(err, cloud.ErrNotFound) {
		t.Errorf("Terminate of a foreign machine: %v, want ErrNotFound", err)
	}
	if w.node(t, neighbor) == nil || w.node(t, &cloud.Machine{ProviderID: fromUpstream.Spec.ProviderID}) == nil {
		t.Error("a node of another provider was deleted")
	}
	wantGone(t, other, neighbor)
}
