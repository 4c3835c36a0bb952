package buffer

import (
	"fmt"
	"strings"
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

	"github.com/karpenter-go/karpenter/api"
	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cloud/kwok"
	"github.com/karpenter-go/karpenter/internal/cluster"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// cell is a loop over a store, and the API that it reads and writes.
type cell struct {
	*testing.T
	*Loop
	api   client.Client
	store *cluster.Store
	clock *clocktesting.FakeClock
	sink  *events.FakeRecorder
}

func newCell(t *testing.T, objects ...client.Object) *cell {
	t.Helper()
	scheme, err := api.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	c := &cell{T: t, Loop: NewLoop(), clock: clocktesting.NewFakeClock(noon), sink: events.NewFakeRecorder(100)}
	c.api = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.CapacityBuffer{}).WithObjects(objects...).Build()
	c.store, err = cluster.NewStore(cluster.Config{Provider: &kwok.Provider{}, Scheme: scheme, Live: c.api, Log: testr.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	c.Client, c.Live, c.Store = c.api, c.api, c.store
	c.Snapshot = func() *model.Snapshot { return c.store.Snapshot(c.clock.Now()) }
	c.Options, c.Why = placement.Options{}, explain.Refusal
	c.Provision = func() { t.Error("the provision loop is called, and there is no pool") }
	c.Metrics = telemetry.New(prometheus.NewRegistry())
	c.Recorder = telemetry.NewRecorder(c.sink, c.clock)
	c.Clock, c.Log = c.clock, testr.New(t)
	return c
}

// tick runs a pass, and returns the buffer after it.
func (c *cell) tick(name string) *v1beta1.CapacityBuffer {
	c.Helper()
	c.clock.Step(statusEvery)
	if err := c.Tick(c.Context()); err != nil {
		c.Fatal(err)
	}
	b := &v1beta1.CapacityBuffer{}
	if err := c.api.Get(c.Context(), client.ObjectKey{Namespace: "web", Name: name}, b); client.IgnoreNotFound(err) != nil {
		c.Fatal(err)
	}
	return b
}

// virtual returns the number of virtual pods in the store.
func (c *cell) virtual() (n int) {
	for _, g := range c.Snapshot().Virtual {
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

// TestLoopFollowsTheWorkload checks that what the buffer refers to may appear later, and that its number and its status
// follow it.
func TestLoopFollowsTheWorkload(t *testing.T) {
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

// TestLoopTemplate checks a PodTemplate: the generation in the status, and a shape that no node can have.
func TestLoopTemplate(t *testing.T) {
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

// TestLoopQuotas checks that the older of two buffers gets the quota of the namespace, and that the other says so.
func TestLoopQuotas(t *testing.T) {
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

// TestLoopForgets checks CB-11: of buffers that are created and deleted again, nothing is left, and the nodes that had their
// room are kept for a minute only.
func TestLoopForgets(t *testing.T) {
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
		if c.tick("spare"); c.virtual() != 0 || len(c.known) != 0 {
			t.Fatalf("round %d: %d virtual pods and %d buffers are left", i, c.virtual(), len(c.known))
		}
	}
	until := c.Snapshot().Node("n1").NominatedUntil
	if diff := cmp.Diff(c.clock.Now().Add(kept), until); diff != "" {
		t.Errorf("the node is kept until (-want +got):\n%s", diff)
	}
}

// TestLoopPaused checks that a buffer whose launches wait says so, in its status and in an event, and that the provision
// loop is called for it only when the pause is over.
func TestLoopPaused(t *testing.T) {
	c := newCell(t, deployment(1), spare("b", v1beta1.CapacityBufferSpec{ScalableRef: app, Replicas: new(int32(2))}))
	paused := pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: "b"}, Name: "launches for CapacityBuffer web/spare"}
	paused = paused.Fail(noon, noon, 0, "claim p-1: its node has the taint a:NoSchedule")
	amounts := []quantity.Amount{{Name: "cpu", Value: 4000}, {Name: "pods", Value: 1}}
	pool := model.PoolSpec{Name: "p", UID: "p", Pauses: pause.List{paused}, Catalog: &model.Catalog{Types: []model.InstanceType{{Name: "c-4x",
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"c-4x"}}},
		Capacity:     amounts, Allocatable: amounts,
		Offerings: []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: 1, Available: true}}}},
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}}
	c.Snapshot = func() *model.Snapshot { // what the store has, and a pool with a type
		b := model.NewBuilder()
		b.UpsertPool(pool)
		for _, g := range c.store.Snapshot(c.clock.Now()).Virtual {
			for _, pod := range g.Pods {
				b.UpsertPod(model.PodSpec{UID: pod.UID, Namespace: "web", Name: pod.Name, State: model.Pending, Virtual: pod.Virtual,
					Controller: pod.Controller, Requests: amounts})
			}
		}
		return b.Snapshot(c.clock.Now())
	}
	called := 0
	c.Provision = func() { called++ }
	b := c.tick("spare")
	got := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionProvisioning)
	want := "2 of 2 virtual pods have no room: launches for CapacityBuffer web/spare are paused until 2026-11-20T12:01:00Z, " +
		"after 1 failure: claim p-1: its node has the taint a:NoSchedule"
	if got.Status != metav1.ConditionFalse || got.Reason != v1beta1.ReasonPaused || !strings.HasPrefix(got.Message, want) || called > 0 {
		t.Errorf("the condition is %+v, want %q; %d calls of the provision loop", got, want, called)
	}
	if event := <-c.sink.Events; !strings.Contains(event, "NotTriggerScaleUp") || !strings.Contains(event, "are paused until") {
		t.Errorf("the event is %q", event)
	}
	c.clock.Step(time.Minute)
	got = meta.FindStatusCondition(c.tick("spare").Status.Conditions, v1beta1.ConditionProvisioning)
	if !strings.HasPrefix(got.Message, "1 of 2 virtual pods have no room: ") ||
		!strings.Contains(got.Message, "another attempt is in progress") || called != 1 {
		t.Errorf("after the pause: %+v and %d calls of the provision loop, want one for one of two nodes", got, called)
	}
}
