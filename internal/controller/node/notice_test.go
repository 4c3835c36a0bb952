package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// on returns a node with a Ready condition and labels.
func on(name string, ready corev1.ConditionStatus, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

// holding returns a reconciler for a cluster with claims and nodes, ready or not, and a plan that assigns the pod
// "web" to the claim or node destination.
func holding(t *testing.T, destination string) *Reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(name string, initialized bool) *karpv1.NodeClaim {
		c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if initialized {
			c.StatusConditions().SetTrue(karpv1.ConditionInitialized)
		}
		return c
	}
	leaving := claim("claim-leaving", true)
	leaving.Finalizers, leaving.DeletionTimestamp = []string{karpv1.FinalizerTermination}, &metav1.Time{Time: now}
	ours := map[string]string{karpv1.LabelNodePool: "p", karpv1.LabelInitialized: "true"}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		claim("claim-in-flight", false), claim("claim-there", true), leaving,
		on("node-there", corev1.ConditionTrue, ours), on("node-silent", corev1.ConditionUnknown, ours),
		on("node-starting", corev1.ConditionTrue, map[string]string{karpv1.LabelNodePool: "p"}),
		on("node-foreign", corev1.ConditionTrue, nil)).Build()
	r := &Reconciler{Client: api, Timers: controller.Production()}
	r.Destination = func(uid types.UID) string {
		if uid == "web" {
			return destination
		}
		return ""
	}
	return r
}

// TestHold verifies that with a notice, a workload stays until its target is ready, or until the remaining time just
// suffices.
func TestHold(t *testing.T) {
	graced := func(seconds int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &seconds }
	}
	for _, test := range []struct {
		name, destination string
		after             time.Duration // since the notice
		change            func(*corev1.Pod)
		want              bool
	}{
		{"no plan yet, or no place", "", 0, nil, true},
		{"its claim is in flight", "claim-in-flight", 0, nil, true},
		{"its claim is there", "claim-there", 0, nil, false},
		{"its claim is to leave", "claim-leaving", 0, nil, true},
		{"its claim is gone", "claim-gone", 0, nil, true},
		{"there is room on a node", "node-there", 0, nil, false},
		{"there is room on a node that is not ours", "node-foreign", 0, nil, false},
		{"there is room on a node that does not report", "node-silent", 0, nil, true},
		{"there is room on a node that is not initialized", "node-starting", 0, nil, true},
		{"a second before the reserve", "claim-in-flight", 59 * time.Second, nil, true},
		{"when the reserve begins", "claim-in-flight", 60 * time.Second, nil, false},
		{"without a place when the reserve begins", "", 60 * time.Second, nil, false},
		{"one that needs 90 seconds, in time", "claim-in-flight", 14 * time.Second, graced(90), true},
		{"one that needs 90 seconds, at the last moment", "claim-in-flight", 15 * time.Second, graced(90), false},
		{"one that needs more than there is", "claim-in-flight", 0, graced(600), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := holding(t, test.destination)
			node := on("n", corev1.ConditionTrue, nil)
			node.DeletionTimestamp = &metav1.Time{Time: now}
			hold := r.holder(t.Context(), &termination{node: node, now: now.Add(test.after), deadline: now.Add(2 * time.Minute)})
			if hold == nil {
				t.Fatal("the node has no notice")
			}
			web := pod("web", func(p *corev1.Pod) { p.UID = "web" })
			if test.change != nil {
				test.change(&web)
			}
			if got := hold(&web); got != test.want {
				t.Errorf("held %v, want %v", got, test.want)
			}
		})
	}
}

// TestNotOnNotice verifies that a node is drained at once if its drain has no deadline or a distant one, or its
// kubelet is silent.
func TestNotOnNotice(t *testing.T) {
	node := on("n", corev1.ConditionTrue, nil)
	node.DeletionTimestamp = &metav1.Time{Time: now}
	silent := on("n", corev1.ConditionUnknown, nil)
	silent.DeletionTimestamp = node.DeletionTimestamp
	r := holding(t, "claim-in-flight")
	for name, l := range map[string]*termination{
		"no end":                        {node: node, now: now},
		"a grace period of ten minutes": {node: node, now: now, deadline: now.Add(10 * time.Minute)},
		"its kubelet is silent":         {node: silent, now: now, deadline: now.Add(2 * time.Minute)},
	} {
		if r.holder(t.Context(), l) != nil {
			t.Errorf("%s: pods are held", name)
		}
	}
	r.Destination = nil
	if r.holder(t.Context(), &termination{node: node, now: now, deadline: now.Add(2 * time.Minute)}) != nil {
		t.Error("pods are held although no plan says where they go")
	}
}

// TestHeldPods verifies that held pods are neither evicted nor deleted, delay daemons, and are reported. A pod that
// cannot stay that long is deleted anyway.
func TestHeldPods(t *testing.T) {
	policy := until(now.Add(2 * time.Minute))
	policy.hold = func(p *corev1.Pod) bool { return p.Name != "ready" }
	long := int64(300)
	pods := []corev1.Pod{pod("daemon", owned("apps/v1", "DaemonSet")), pod("held"), pod("ready"),
		pod("long", func(p *corev1.Pod) { p.Spec.TerminationGracePeriodSeconds = &long })}
	state := remaining(pods, policy)
	switch {
	case len(state.evict) != 1:
		t.Errorf("len(state.evict) is %v, want 1, evict %v", len(state.evict), state.evict)
	case state.evict[0].Name != "ready":
		t.Errorf(`state.evict[0].Name is %v, want "ready"`, state.evict[0].Name)
	case len(state.force) != 1:
		t.Errorf("len(state.force) is %v, want 1, force %v", len(state.force), state.force)
	case state.force[0].Name != "long":
		t.Errorf(`state.force[0].Name is %v, want "long"`, state.force[0].Name)
	case len(state.held) != 1:
		t.Errorf("len(state.held) is %v, want 1, held %v", len(state.held), state.held)
	}
	if want := "4 pods are waiting to be evicted, 1 of them until the nodes for them are ready"; state.describe() != want {
		t.Errorf("the message is %q, want %q", state.describe(), want)
	}
	state = remaining(pods[:1], policy)
	if len(state.evict) != 1 || len(state.held) != 0 {
		t.Errorf("a daemon is held: %v", state.held)
	}
}
