package nodepool

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

func TestClassReadiness(t *testing.T) {
	for _, test := range []struct {
		name  string
		class class
		want  string
	}{
		{"missing", class{}, karpv1.ReasonNodeClassNotFound},
		{"missing for the provider", class{found: true, unready: fmt.Errorf("reading: %w", cloud.ErrNotFound)}, karpv1.ReasonNodeClassNotFound},
		{"terminating", class{found: true, terminating: true}, karpv1.ReasonNodeClassTerminating},
		{"not ready", class{found: true, unready: &cloud.NodeClassNotReadyError{Reason: "NoSubnets"}}, "NoSubnets"},
		{"not ready, no word why", class{found: true, unready: &cloud.NodeClassNotReadyError{}}, karpv1.ReasonNodeClassReadinessUnknown},
		{"unknown", class{found: true, unready: errors.New("timeout")}, karpv1.ReasonNodeClassReadinessUnknown},
		{"ready", class{found: true}, karpv1.ConditionNodeClassReady},
	} {
		got := classReadiness(test.class)
		if got.Reason != test.want || (got.Status == metav1.ConditionTrue) != (test.name == "ready") {
			t.Errorf("%s: %s %s, want reason %s", test.name, got.Status, got.Reason, test.want)
		}
	}
}

// TestUnreadableBudgetIsReported verifies that budgets that cannot be parsed are reported, and that the pool stays ready:
// nodes may still be launched from it.
func TestUnreadableBudgetIsReported(t *testing.T) {
	pool := &karpv1.NodePool{}
	pool.Spec.Disruption.Budgets = []karpv1.Budget{{Nodes: "10%"}, {Nodes: "0", Schedule: new("0 25 * * *"), Duration: &metav1.Duration{}}}
	for _, test := range []struct {
		schedule string
		told     bool
	}{{"0 25 * * *", true}, {"0 5 * * *", false}} {
		pool.Spec.Disruption.Budgets[1].Schedule = &test.schedule
		pool.StatusConditions().Set(validation(pool, karpv1.CoreRules(), ""))
		got := pool.Condition(karpv1.ConditionValidationSucceeded)
		told := strings.Contains(got.Message, "no node may be disrupted: spec.disruption.budgets[1].schedule") && strings.Contains(got.Message, "want five cron fields")
		if !got.IsTrue() || told != test.told {
			t.Errorf("schedule %q: %s %q, want True, and reported: %t", test.schedule, got.Status, got.Message, test.told)
		}
	}
}

// TestWrongRepairRulesAreReported verifies that annotations of node repair that have no effect are named, and that the
// pool stays valid.
func TestWrongRepairRulesAreReported(t *testing.T) {
	pool := &karpv1.NodePool{}
	pool.Annotations = map[string]string{karpv1.AnnotationRepairThreshold: "many", karpv1.AnnotationRepairGrace: "5m"}
	got := validation(pool, karpv1.LabelRules{}, "")
	want := "annotations without effect: metadata.annotations[" + karpv1.AnnotationRepairThreshold + "]"
	if !got.IsTrue() || !strings.Contains(got.Message, want) || strings.Contains(got.Message, karpv1.AnnotationRepairGrace) {
		t.Errorf("%s %q, want True and %q", got.Status, got.Message, want)
	}
}

// TestShortExpireAfterIsReported verifies that an expireAfter that ends nodes before pods run is reported, and that the
// pool stays ready.
func TestShortExpireAfterIsReported(t *testing.T) {
	for _, test := range []struct {
		age  karpv1.NillableDuration
		told bool
	}{{karpv1.DurationOf(0), true}, {karpv1.DurationOf(time.Second), true}, {karpv1.DurationOf(time.Hour), false},
		{karpv1.NillableDuration{}, false}} {
		pool := &karpv1.NodePool{}
		pool.Spec.Template.Spec.ExpireAfter = test.age
		pool.StatusConditions().Set(validation(pool, karpv1.CoreRules(), ""))
		got := pool.Condition(karpv1.ConditionValidationSucceeded)
		if told := strings.HasPrefix(got.Message, "spec.template.spec.expireAfter: "); !got.IsTrue() || told != test.told {
			t.Errorf("expireAfter %s: %s %q, want True, and reported: %t", test.age, got.Status, got.Message, test.told)
		}
	}
}

// TestHealth verifies that a condition changes only when the last launch and the last four agree.
func TestHealth(t *testing.T) {
	const good, bad = true, false
	for _, test := range []struct {
		name     string
		was      metav1.ConditionStatus // of the condition when this process started
		launches []bool
		want     string
	}{
		{"nothing known", "", nil, "stays"},
		{"one success", "", []bool{good}, "True"},
		{"one failure", "", []bool{bad}, "stays"},
		{"two failures", "", []bool{bad, bad}, "False"},
		{"a success after two failures", "", []bool{bad, bad, good}, "stays"},
		{"three successes after two failures", "", []bool{bad, bad, good, good, good}, "True"},
		{"a failure after a restart of a healthy pool", metav1.ConditionTrue, []bool{bad}, "stays"},
		{"a failure after a restart of an unhealthy pool", metav1.ConditionFalse, []bool{bad}, "False"},
		{"a success after a restart of an unhealthy pool", metav1.ConditionFalse, []bool{good}, "stays"},
	} {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{UID: "p"}}
		if test.was != "" {
			c := no(karpv1.ConditionNodeRegistrationHealthy, "Earlier", "")
			c.Status = test.was
			pool.StatusConditions().Set(c)
		}
		h := NewHealth()
		h.condition(pool, false)
		for _, registered := range test.launches {
			claim := &karpv1.NodeClaim{}
			claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", UID: pool.UID}}
			claim.StatusConditions().SetTrue(karpv1.ConditionLaunched)
			h.Record(claim, registered)
		}
		got := "stays"
		if c, known := h.condition(pool, false); known {
			got = string(c.Status)
		}
		if got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
		h.reset(pool.UID)
		if c, known := h.condition(pool, true); !known || c.Status != metav1.ConditionUnknown {
			t.Errorf("%s: after a change of the pool: %v, %t; want Unknown", test.name, c.Status, known)
		}
	}
}

// TestHealthRecord verifies that only claims that a pool owns count, and that failures to launch and to register have
// different reasons.
func TestHealthRecord(t *testing.T) {
	h := NewHealth()
	claim := &karpv1.NodeClaim{}
	h.Record(claim, false)
	if len(h.rings) != 0 {
		t.Errorf("a claim without a pool was recorded: %v", h.rings)
	}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodePool", Name: "general", UID: "p"}}
	claim.StatusConditions().SetUnknownWithReason(karpv1.ConditionLaunched, "ImageMissing", "image 7")
	h.Record(claim, false)
	const condition = karpv1.ConditionNodeRegistrationHealthy
	want := ring{no(condition, "ImageMissing", "image 7")}
	if diff := cmp.Diff(want, h.rings["p"]); diff != "" {
		t.Errorf("a failed launch (-want +got):\n%s", diff)
	}
	claim.StatusConditions().SetTrue(karpv1.ConditionLaunched)
	h.Record(claim, false)
	want = append(want, no(condition, karpv1.ReasonRegistrationFailed, "Failed to register node of claim "))
	if diff := cmp.Diff(want, h.rings["p"]); diff != "" {
		t.Errorf("a failed registration (-want +got):\n%s", diff)
	}
}

func TestCount(t *testing.T) {
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
	}
	claim := func(id string, capacity corev1.ResourceList) karpv1.NodeClaim {
		return karpv1.NodeClaim{Status: karpv1.NodeClaimStatus{ProviderID: id, Capacity: capacity}}
	}
	node := func(id string, capacity corev1.ResourceList) corev1.Node {
		return corev1.Node{Spec: corev1.NodeSpec{ProviderID: id}, Status: corev1.NodeStatus{Capacity: capacity}}
	}
	deletedClaim, deletedNode := claim("leaving", list("8", "8Gi")), node("deleted", list("8", "8Gi"))
	deletedClaim.DeletionTimestamp = new(metav1.Now())
	deletedNode.DeletionTimestamp = new(metav1.Now())
	nodes := []corev1.Node{
		node("running", list("4", "16Gi")),
		node("booting", corev1.ResourceList{"cpu": resource.MustParse("4")}), // memory not reported yet
		node("leaving", list("8", "8Gi")), deletedNode,
		node("standalone", list("1", "1Gi")),
	}
	claims := []karpv1.NodeClaim{
		claim("running", list("5", "20Gi")), claim("booting", list("5", "15Gi")), claim("flight", list("2", "2Gi")),
		claim("", list("64", "64Gi")), deletedClaim, claim("deleted", list("8", "8Gi")),
	}
	got := map[string]string{}
	for name, amount := range count(nodes, claims) {
		got[string(name)] = amount.String()
	}
	want := map[string]string{"cpu": "11", "memory": "34Gi", "nodes": "4", "pods": "0", "ephemeral-storage": "0"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestTypelessPoolIsNotReady verifies that a pool whose own requirements exclude every instance type is not ready, and
// that its condition names the requirement. If the node class is missing or not ready, types are not evaluated.
func TestTypelessPoolIsNotReady(t *testing.T) {
	const why = "the pool's own requirement leaves none"
	r := &Reconciler{Typeless: func(context.Context, *karpv1.NodePool) string { return why }}
	for _, test := range []struct {
		name  string
		class class
		ready bool
	}{
		{"the class is ready", class{found: true}, false},
		{"the class is missing", class{}, true},
		{"the class is not ready", class{found: true, unready: errors.New("no subnets")}, true},
	} {
		pool := &karpv1.NodePool{}
		c := validation(pool, karpv1.CoreRules(), r.typeless(t.Context(), pool, test.class))
		switch ready := c.Status == metav1.ConditionTrue; {
		case ready != test.ready:
			t.Errorf("%s: ready is %t, want %t: %+v", test.name, ready, test.ready, c)
		case ready:
		case c.Reason != karpv1.ReasonNoCompatibleInstanceTypes:
			t.Errorf("%s: the reason is %s, want %s", test.name, c.Reason, karpv1.ReasonNoCompatibleInstanceTypes)
		case c.Message != why:
			t.Errorf("%s: the message is %q, want %q", test.name, c.Message, why)
		}
	}
	if why := (&Reconciler{}).typeless(t.Context(), &karpv1.NodePool{}, class{found: true}); why != "" {
		t.Errorf("without types: %q", why)
	}
}
