package buffer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// cell is a reconciler over a store, and the API that it reads and writes.
type cell struct {
	*testing.T
	*Reconciler
	api   client.Client
	store *cluster.Store
	clock *clocktesting.FakeClock
	sink  *events.FakeRecorder
	// last is the last plan of virtual pods.
	last *plan.Provision
}

func newCell(t *testing.T, objects ...client.Object) *cell {
	t.Helper()
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := &cell{T: t, Reconciler: NewReconciler(), last: &plan.Provision{}, clock: clocktesting.NewFakeClock(noon),
		sink: events.NewFakeRecorder(100)}
	c.api = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.CapacityBuffer{}).WithObjects(objects...).Build()
	c.store, err = cluster.NewStore(cluster.Config{Provider: &kwok.Provider{}, Scheme: scheme, Live: c.api, Log: testr.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	c.Client, c.Live, c.Store = c.api, c.api, c.store
	c.Destination = func(pod types.UID) string {
		for _, placed := range c.last.Placed {
			if slices.ContainsFunc(placed.Pods, func(p *model.Pod) bool { return p.UID == string(pod) }) {
				return placed.Node
			}
		}
		return ""
	}
	c.Metrics = telemetry.New(prometheus.NewRegistry())
	c.Recorder = telemetry.NewRecorder(c.sink, c.clock)
	c.Clock, c.Log = c.clock, testr.New(t)
	return c
}

func (c *cell) snapshot() *model.Snapshot { return c.store.Snapshot(c.clock.Now()) }

// plan plans as the provision loop does, and reports the room.
func (c *cell) plan() {
	c.clock.Step(time.Second)
	snap := c.snapshot()
	if c.last = placement.Schedule(snap, placement.Options{}).Virtual; c.last == nil {
		c.last = &plan.Provision{}
	}
	c.SetRoom(room.Rooms(snap, c.last, explain.Refusal), snap.Now)
}

// tick runs a pass, a plan and another pass, and returns the buffer after it.
func (c *cell) tick(name string) *v1beta1.CapacityBuffer {
	c.Helper()
	c.clock.Step(statusEvery)
	c.reconcile()
	c.plan()
	c.reconcile()
	return c.buffer(name)
}

func (c *cell) reconcile() {
	c.Helper()
	if err := c.Reconcile(c.Context()); err != nil {
		c.Fatal(err)
	}
}

// buffer returns the buffer as the API has it.
func (c *cell) buffer(name string) *v1beta1.CapacityBuffer {
	c.Helper()
	b := &v1beta1.CapacityBuffer{}
	if err := c.api.Get(c.Context(), client.ObjectKey{Namespace: "web", Name: name}, b); client.IgnoreNotFound(err) != nil {
		c.Fatal(err)
	}
	return b
}

// virtual returns the number of virtual pods in the store.
func (c *cell) virtual() (n int) {
	for _, g := range c.snapshot().Virtual {
		n += len(g.Pods)
	}
	return n
}

func (c *cell) create(o client.Object) {
	c.Helper()
	if err := c.api.Create(c.Context(), o); err != nil {
		c.Fatal(err)
	}
}

func (c *cell) remove(o client.Object) {
	c.Helper()
	if err := c.api.Delete(c.Context(), o); err != nil {
		c.Fatal(err)
	}
}

func template(cpu string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
}

func spare(uid string, spec v1beta1.CapacityBufferSpec) *v1beta1.CapacityBuffer {
	about := metav1.ObjectMeta{Namespace: "web", Name: "spare", UID: types.UID(uid), CreationTimestamp: metav1.Time{Time: noon}}
	return &v1beta1.CapacityBuffer{ObjectMeta: about, Spec: spec}
}

// app refers to the Deployment.
var app = &v1beta1.ScalableRef{APIGroup: "apps", Kind: "Deployment", Name: "app"}

func deployment(replicas int32) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "app"},
		Spec: appsv1.DeploymentSpec{Replicas: &replicas, Selector: &metav1.LabelSelector{}, Template: template("1")}}
}

// reasonOf returns the reason of a condition.
func reasonOf(b *v1beta1.CapacityBuffer, kind string) string {
	if c := meta.FindStatusCondition(b.Status.Conditions, kind); c != nil {
		return c.Reason
	}
	return ""
}

// addNode adds a node that is ready, with so many CPUs.
func (c *cell) addNode(name, cpu string) {
	amounts := corev1.ResourceList{"cpu": resource.MustParse(cpu), "pods": resource.MustParse("110")}
	c.store.Saw(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{corev1.LabelHostname: name}},
		Status: corev1.NodeStatus{Capacity: amounts, Allocatable: amounts,
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
}

// TestReconcilerFollowsTheWorkload checks that what the buffer refers to may appear later, and that its number and its status
// follow it.
func TestReconcilerFollowsTheWorkload(t *testing.T) {
	c := newCell(t, spare("b", v1beta1.CapacityBufferSpec{ScalableRef: app, Percentage: new(int32(20))}))
	c.addNode("n1", "2")
	if got := reasonOf(c.tick("spare"), v1beta1.ConditionReadyForProvisioning); got != v1beta1.ReasonScalableRefNotFound {
		t.Errorf("without the workload: %s", got)
	}
	d := deployment(5)
	c.create(d)
	c.clock.Step(reread)
	b := c.tick("spare")
	if c.virtual() != 1 || *b.Status.Replicas != 1 || *b.Status.ReadyReplicas != 1 ||
		reasonOf(b, v1beta1.ConditionProvisioning) != v1beta1.ReasonFitsExistingCapacity {
		t.Errorf("of 5 replicas: %d virtual pods, status %+v, want one with room", c.virtual(), b.Status)
	}
	d.Spec.Replicas = new(int32(20))
	if err := c.api.Update(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	c.clock.Step(reread)
	b = c.tick("spare")
	if c.virtual() != 4 || *b.Status.Replicas != 4 || *b.Status.ReadyReplicas != 2 {
		t.Errorf("of 20 replicas: %d virtual pods, status %+v, want four, two with room", c.virtual(), b.Status)
	}
	if got := reasonOf(b, v1beta1.ConditionProvisioning); got != v1beta1.ReasonRequiresNewCapacity {
		t.Errorf("the condition is %s, want %s", got, v1beta1.ReasonRequiresNewCapacity)
	}
}

// TestReconcilerTemplate checks a PodTemplate: the generation in the status, and a shape that no node can have.
func TestReconcilerTemplate(t *testing.T) {
	shape := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "shape", Generation: 3}, Template: template("1")}
	spec := v1beta1.CapacityBufferSpec{PodTemplateRef: &v1beta1.LocalObjectRef{Name: "shape"}, Replicas: new(int32(2))}
	c := newCell(t, shape, spare("b", spec))
	c.addNode("n1", "8")
	b := c.tick("spare")
	if b.Status.PodTemplateGeneration == nil || *b.Status.PodTemplateGeneration != 3 || *b.Status.ReadyReplicas != 2 {
		t.Errorf("the status is %+v, want generation 3 and two pods with room", b.Status)
	}
	shape.Template.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: new("gpu")}}
	if err := c.api.Update(t.Context(), shape); err != nil {
		t.Fatal(err)
	}
	c.clock.Step(reread)
	b = c.tick("spare")
	if got := reasonOf(b, v1beta1.ConditionReadyForProvisioning); got != v1beta1.ReasonResolutionFailed || c.virtual() != 0 {
		t.Errorf("with a device: %s and %d virtual pods, want %s and none", got, c.virtual(), v1beta1.ReasonResolutionFailed)
	}
}

// TestReconcilerQuotas checks that the older of two buffers gets the quota of the namespace, and that the other says so.
func TestReconcilerQuotas(t *testing.T) {
	young := spare("young", v1beta1.CapacityBufferSpec{ScalableRef: app, Replicas: new(int32(3))})
	young.Name, young.CreationTimestamp = "young", metav1.Time{Time: noon.Add(time.Hour)}
	c := newCell(t, deployment(1), young, spare("old", v1beta1.CapacityBufferSpec{ScalableRef: app, Replicas: new(int32(3))}),
		&corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "team"}, Status: corev1.ResourceQuotaStatus{
			Hard: corev1.ResourceList{"pods": resource.MustParse("5")}, Used: corev1.ResourceList{"pods": resource.MustParse("1")}}})
	b := c.tick("young")
	if *b.Status.Replicas != 1 || reasonOf(b, v1beta1.ConditionLimitedByQuotas) != v1beta1.ReasonResourceQuotasAllocated {
		t.Errorf("the younger has the status %+v, want one pod", b.Status)
	}
	if b = c.tick("spare"); *b.Status.Replicas != 3 || reasonOf(b, v1beta1.ConditionLimitedByQuotas) != v1beta1.ReasonNotLimited {
		t.Errorf("the older has the status %+v, want three pods", b.Status)
	}
}

// TestReconcilerForgets checks CB-11: of buffers that are created and deleted again, nothing is left, and the nodes that had their
// room are kept for a minute only.
func TestReconcilerForgets(t *testing.T) {
	c := newCell(t, deployment(1))
	c.addNode("n1", "4")
	spec := v1beta1.CapacityBufferSpec{ScalableRef: app, Replicas: new(int32(2))}
	for i := range 5 {
		b := spare(fmt.Sprint("b", i), spec)
		c.create(b)
		if c.tick("spare"); c.virtual() != 2 {
			t.Fatalf("round %d: %d virtual pods, want two", i, c.virtual())
		}
		c.remove(b)
		if c.reconcile(); c.virtual() != 0 || len(c.known) != 0 {
			t.Fatalf("round %d: %d virtual pods and %d buffers are left", i, c.virtual(), len(c.known))
		}
	}
	until := c.snapshot().Node("n1").NominatedUntil
	if diff := cmp.Diff(c.clock.Now().Add(kept), until); diff != "" {
		t.Errorf("the node is kept until (-want +got):\n%s", diff)
	}
}

// TestReconcilerAwaitsThePlan checks that a status never joins a number with the room of another number, and that a buffer
// without pods needs no plan.
func TestReconcilerAwaitsThePlan(t *testing.T) {
	b := spare("b", v1beta1.CapacityBufferSpec{ScalableRef: app, Replicas: new(int32(2))})
	c := newCell(t, deployment(1), b)
	c.addNode("n1", "4")
	c.reconcile()
	if got := c.buffer("spare").Status; len(got.Conditions) > 0 {
		t.Errorf("before the first plan, the status is %+v, want none", got)
	}
	if got := c.tick("spare").Status; *got.Replicas != 2 || *got.ReadyReplicas != 2 {
		t.Errorf("the status is %+v, want two pods with room", got)
	}
	change := func(replicas int32) {
		b := c.buffer("spare")
		b.Generation++
		b.Spec.Replicas = &replicas
		if err := c.api.Update(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		c.clock.Step(statusEvery)
		c.reconcile()
	}
	change(3)
	if got := c.buffer("spare").Status; *got.Replicas != 2 {
		t.Errorf("before three pods are planned, the status is %+v, want that of two", got)
	}
	c.plan()
	c.reconcile()
	if got := c.buffer("spare").Status; *got.Replicas != 3 || *got.ReadyReplicas != 3 {
		t.Errorf("the status is %+v, want three pods with room", got)
	}
	change(0)
	if got := reasonOf(c.buffer("spare"), v1beta1.ConditionProvisioning); got != v1beta1.ReasonBufferEmpty {
		t.Errorf("without pods the condition is %s, want %s", got, v1beta1.ReasonBufferEmpty)
	}
}

// TestReconcilerReportsRefusals checks the event of a buffer whose launches wait, and its condition.
func TestReconcilerReportsRefusals(t *testing.T) {
	c := newCell(t, deployment(1), spare("b", v1beta1.CapacityBufferSpec{ScalableRef: app, Replicas: new(int32(2))}))
	c.reconcile()
	c.clock.Step(time.Second)
	c.SetRoom(map[string]*room.Room{"b": {Failed: 2, Paused: true, Why: "launches are paused"}}, c.clock.Now())
	c.reconcile()
	got := meta.FindStatusCondition(c.buffer("spare").Status.Conditions, v1beta1.ConditionProvisioning)
	if got.Status != metav1.ConditionFalse || got.Reason != v1beta1.ReasonPaused ||
		got.Message != "2 of 2 virtual pods have no room: launches are paused" {
		t.Errorf("the condition is %+v", got)
	}
	if event := <-c.sink.Events; event != "Warning NotTriggerScaleUp No node is launched for the room of this buffer: launches are paused" {
		t.Errorf("the event is %q", event)
	}
}

// TestReconcilerGivesUpOnWrites checks that a write of a status that hangs ends.
func TestReconcilerGivesUpOnWrites(t *testing.T) {
	c := newCell(t, spare("b", v1beta1.CapacityBufferSpec{ScalableRef: app, Replicas: new(int32(2))}))
	bounded := false
	c.Client = interceptor.NewClient(c.api.(client.WithWatch), interceptor.Funcs{SubResourcePatch: func(ctx context.Context,
		_ client.Client, _ string, _ client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
		_, bounded = ctx.Deadline()
		return context.DeadlineExceeded
	}})
	if err := c.Reconcile(t.Context()); !errors.Is(err, context.DeadlineExceeded) || !bounded {
		t.Errorf("%v, want that of the write, which ends: %t", err, bounded)
	}
}
