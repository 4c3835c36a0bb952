package world_test

import (
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/testing/world"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// sells is a small and a large type of spot capacity, for 0.1 and 0.4 USD per hour.
func sells() []cloud.InstanceType {
	var all []cloud.InstanceType
	for i, name := range []string{"small", "large"} {
		cpus := int64(2 + 6*i)
		all = append(all, cloud.InstanceType{Name: name, Capacity: map[string]int64{"cpu": cpus * 1000, "memory": cpus << 30, "pods": 50},
			Requirements: []cloud.Requirement{{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: []string{name}}},
			Offerings:    []cloud.Offering{{Zone: "a", CapacityType: karpv1.CapacityTypeSpot, Price: float64(cpus) / 20, Available: true}}})
	}
	return all
}

func pool() *karpv1.NodePool {
	p := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "pool"}}
	p.Spec.Template.Spec.NodeClassRef = world.Class
	spot := karpv1.Requirement{Key: karpv1.LabelCapacityType, Operator: "In", Values: []string{karpv1.CapacityTypeSpot}}
	p.Spec.Template.Spec.Requirements = []karpv1.Requirement{spot}
	p.Spec.Disruption.ConsolidationPolicy = karpv1.ConsolidateWhenEmptyOrUnderutilized
	p.Spec.Disruption.ConsolidateAfter = karpv1.DurationOf(0)
	p.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "100%"}}
	return p
}

// podOf returns the template of the pods of a ReplicaSet.
func podOf(app string, milli int64) *corev1.Pod {
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: app, UID: types.UID("uid-" + app), Controller: new(true)}
	requests := corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(milli, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(milli<<20, resource.BinarySI)}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": app},
			OwnerReferences: []metav1.OwnerReference{owner}},
		Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending},
	}
}

func start(t *testing.T, config world.Config) *world.World {
	t.Helper()
	w, err := world.New(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// TestWorld scales up and down and interrupts a node: the pods move to a new one, and the meter has what that cost.
func TestWorld(t *testing.T) {
	w := start(t, world.Config{Seed: 1, Now: noon, Types: sells(), Objects: []client.Object{pool()}})
	template := podOf("app", 1000)
	advance := func(d time.Duration) {
		t.Helper()
		w.Advance(d)
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
	}
	w.Scale(template, 2)
	advance(2 * time.Minute)
	if all, bound := w.Count("uid-app"); all != 2 || bound != 2 || len(w.Spot()) != 1 {
		t.Fatalf("%d pods, %d on nodes %v; want 2, 2 and one node", all, bound, w.Spot())
	}
	first := w.Spot()[0]
	fresh, err := w.Fresh()
	if err != nil || math.Abs(fresh-w.Cost()) > 1e-9 {
		t.Errorf("costs %v, fresh %v, %v", w.Cost(), fresh, err)
	}
	if w.Meter.Longest < 30*time.Second || w.Meter.Longest > 35*time.Second {
		t.Errorf("longest pending %v; want the time of a machine", w.Meter.Longest)
	}
	w.Interrupt(first)
	advance(5 * time.Minute)
	if names := w.Spot(); len(names) != 1 || names[0] == first || w.Tally.Interrupted != 2 || w.Tally.Moved != 0 {
		t.Errorf("after an interruption: nodes %v, %+v", names, w.Tally)
	}
	w.Scale(template, 8)
	advance(5 * time.Minute)
	w.Scale(template, 1)
	advance(time.Hour)
	if all, bound := w.Count("uid-app"); all != 1 || bound != 1 || math.Abs(w.Cost()-fresh) > 1e-9 {
		t.Errorf("%d pods, %d on nodes, %v USD per hour; want 1, 1 and %v", all, bound, w.Cost(), fresh)
	}
	w.Scale(template, 0)
	advance(time.Hour)
	if w.Cost() != 0 {
		t.Errorf("without pods, costs %v USD per hour", w.Cost())
	}
}
