package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

var born = metav1.NewTime(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))

// claimWith returns a claim created at born with these conditions true.
func claimWith(name string, conditions ...string) *karpv1.NodeClaim {
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u", CreationTimestamp: born}}
	claim.StatusConditions()
	for i := range claim.Status.Conditions {
		claim.Status.Conditions[i].LastTransitionTime = born
	}
	for _, c := range conditions {
		claim.StatusConditions().SetTrue(c)
	}
	return claim
}

func TestOverdue(t *testing.T) {
	timers := controller.Production()
	for _, test := range []struct {
		name       string
		conditions []string
		age        time.Duration
		want       string
		left       time.Duration
	}{
		{"launching", nil, time.Minute, "", 4 * time.Minute},
		{"launch limit", nil, 5 * time.Minute, telemetry.DisruptedLaunchTimeout, 0},
		{"registering", []string{karpv1.ConditionLaunched}, 14 * time.Minute, "", time.Minute},
		{"registration limit", []string{karpv1.ConditionLaunched}, 15 * time.Minute, telemetry.DisruptedRegistrationTimeout, 0},
		{"initializing has no limit", []string{karpv1.ConditionLaunched, karpv1.ConditionRegistered}, 24 * time.Hour, "", 0},
	} {
		claim := claimWith("a", test.conditions...)
		for i := range claim.Status.Conditions {
			claim.Status.Conditions[i].LastTransitionTime = born
		}
		reason, left := overdue(claim, born.Add(test.age), timers)
		if reason != test.want || left != test.left {
			t.Errorf("%s: %q with %s left, want %q with %s", test.name, reason, left, test.want, test.left)
		}
	}
}

// TestOverdueCountsFromTheLaunch verifies that a claim that was launched late has the whole time to register.
func TestOverdueCountsFromTheLaunch(t *testing.T) {
	claim := claimWith("a", karpv1.ConditionLaunched)
	for i := range claim.Status.Conditions {
		if claim.Status.Conditions[i].Type == karpv1.ConditionLaunched {
			claim.Status.Conditions[i].LastTransitionTime = metav1.NewTime(born.Add(time.Hour))
		}
	}
	if reason, left := overdue(claim, born.Add(time.Hour+time.Minute), controller.Production()); reason != "" || left != 14*time.Minute {
		t.Errorf("%q with %s left, want none with 14m", reason, left)
	}
}

func TestInitialized(t *testing.T) {
	claim := claimWith("a")
	claim.Spec.StartupTaints = []corev1.Taint{{Key: "warming", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	claim.Spec.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("1"), "example.com/gpu": resource.MustParse("1"),
		"hugepages-2Mi": resource.MustParse("0")}
	for _, test := range []struct {
		name   string
		change func(*corev1.Node)
		want   string
	}{
		{"all there", func(*corev1.Node) {}, ""},
		{"not ready", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }, karpv1.ReasonNodeNotReady},
		{"never reported", func(n *corev1.Node) { n.Status.Conditions = nil }, karpv1.ReasonNodeNotReady},
		{"startup taint, whatever its value", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "warming", Effect: corev1.TaintEffectNoSchedule}}
		}, karpv1.ReasonStartupTaintsExist},
		{"same key, other effect", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "warming", Effect: corev1.TaintEffectNoExecute}}
		}, ""},
		{"ephemeral taint", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
		}, karpv1.ReasonKnownEphemeralTaintsExist},
		{"readiness taint", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: karpv1.ReadinessTaintPrefix + "network", Effect: corev1.TaintEffectNoSchedule}}
		}, karpv1.ReasonKnownEphemeralTaintsExist},
		{"device not there yet", func(n *corev1.Node) { delete(n.Status.Allocatable, "example.com/gpu") }, karpv1.ReasonResourceNotRegistered},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{
			Conditions:  []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
			Allocatable: corev1.ResourceList{"cpu": resource.MustParse("2"), "example.com/gpu": resource.MustParse("1")},
		}}
		test.change(node)
		if got := initialized(claim, node); got.reason != test.want {
			t.Errorf("%s: %q (%s), want %q", test.name, got.reason, got.message, test.want)
		}
	}
}

// TestRegistered verifies that a second registration changes nothing, that existing taints are kept, and that taints
// are not copied if the node's label forbids it.
func TestRegistered(t *testing.T) {
	claim := claimWith("a")
	claim.Spec.Taints = []corev1.Taint{{Key: "a", Value: "claim", Effect: corev1.TaintEffectNoSchedule},
		{Key: "b", Effect: corev1.TaintEffectNoSchedule}}
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{
		karpv1.UnregisteredTaint(), {Key: "a", Value: "node", Effect: corev1.TaintEffectNoSchedule},
	}}}
	once := registered(claim, node)
	if diff := cmp.Diff(once, registered(claim, once)); diff != "" {
		t.Error("registered again: " + diff)
	}
	want := []corev1.Taint{{Key: "a", Value: "node", Effect: corev1.TaintEffectNoSchedule}, {Key: "b", Effect: corev1.TaintEffectNoSchedule}}
	if diff := cmp.Diff(want, once.Spec.Taints); diff != "" {
		t.Error(diff)
	}
	node.Labels = map[string]string{karpv1.LabelDoNotSyncTaints: "true"}
	if diff := cmp.Diff(want[:1], registered(claim, node).Spec.Taints); diff != "" {
		t.Error("do-not-sync-taints: " + diff)
	}
	if len(node.Spec.Taints) != 2 || node.Spec.Taints[0].Key != karpv1.TaintKeyUnregistered {
		t.Errorf("the input node was changed: %v", node.Spec.Taints)
	}
}

// A claim whose node has registered stays registered while a node that the kubelet has created again waits: the time limit
// for the registration does not begin again.
func TestWaitingKeepsRegistered(t *testing.T) {
	fails := errors.New("EC2 does not show it")
	r := &Reconciler{Clock: clocktesting.NewFakePassiveClock(may),
		Registering: func(context.Context, *karpv1.NodeClaim) (map[string]string, error) { return nil, fails },
		BeforeReady: func(context.Context, *karpv1.NodeClaim, *corev1.Node) error { return fails }}
	for name, wait := range map[string]func(*karpv1.NodeClaim){
		"labels": func(claim *karpv1.NodeClaim) { _ = r.completeLabels(t.Context(), claim) },
		"hook":   func(claim *karpv1.NodeClaim) { r.beforeReady(t.Context(), claim, &corev1.Node{}) },
	} {
		known, fresh := claimWith("known", karpv1.ConditionRegistered), claimWith("fresh")
		wait(known)
		wait(fresh)
		if got := known.StatusConditions().Get(karpv1.ConditionRegistered); !got.IsTrue() {
			t.Errorf("%s: the condition of a registered claim is %+v", name, got)
		}
		if got := fresh.StatusConditions().Get(karpv1.ConditionRegistered); got.Reason != karpv1.ReasonRegistrationHookPending {
			t.Errorf("%s: the condition of a new claim is %+v", name, got)
		}
	}
}

func TestLeaks(t *testing.T) {
	old, limit, young := born.Add(-time.Hour), born.Time, born.Add(time.Second)
	shown := claimWith("shown", karpv1.ConditionLaunched)
	shown.Status.ProviderID = "m-shown"
	claims := []karpv1.NodeClaim{*shown, *claimWith("launching")}
	older := born.Add(-2 * time.Hour)
	machines := []cloud.Machine{
		{ProviderID: "m-shown", Claim: "shown", Created: old},
		{ProviderID: "m-launching", Claim: "launching", Created: old}, // its write may be pending
		{ProviderID: "m-second", Claim: "shown", Created: old},        // the claim shows another one
		{ProviderID: "m-orphan", Claim: "gone", Created: old},
		{ProviderID: "m-unnamed", Created: older.Add(-1)},
		{ProviderID: "m-unnamed-young", Created: older}, // its owner is unknown
		{ProviderID: "m-noted", Noted: true, Created: old},
		{ProviderID: "m-under-way", Noted: true, Claimants: []string{"shown", "launching"}, Created: older.Add(-1)},
		{ProviderID: "m-dealt", Noted: true, Claim: "gone", Claimants: []string{"gone", "launching"}, Created: old}, // not all of them are shown yet
		{ProviderID: "m-too-many", Noted: true, Claim: "shown", Claimants: []string{"shown"}, Created: old},
		{ProviderID: "m-young", Claim: "gone", Created: young},
		{ProviderID: "m-ageless", Claim: "gone"},
		{ProviderID: "m-ending", Claim: "gone", Created: old, Terminating: true},
	}
	var got []string
	for _, m := range leakedMachines(machines, claims, ages{noted: limit, others: older}) {
		got = append(got, m.ProviderID)
	}
	if diff := cmp.Diff([]string{"m-second", "m-orphan", "m-unnamed", "m-noted", "m-too-many"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestMistakenClaims verifies that a claim that shows the machine of another claim, or a machine that does not exist,
// is identified by the machine that was launched for it. A second machine of a claim, one that is terminating, and
// one that was launched for an earlier claim of the name do not identify a claim.
func TestMistakenClaims(t *testing.T) {
	claim := func(name, id string) karpv1.NodeClaim {
		c := claimWith(name, karpv1.ConditionLaunched)
		c.Status.ProviderID = id
		return *c
	}
	claims := []karpv1.NodeClaim{claim("edited", "m-other"), claim("other", "m-other"), claim("wrong", "none"), claim("twice", "m-first"),
		claim("unlaunched", ""), claim("ending", "none"), claim("again", "none")}
	machines := []cloud.Machine{
		{ProviderID: "m-edited", Claim: "edited", Created: born.Time},
		{ProviderID: "m-other", Claim: "other", Created: born.Time},
		{ProviderID: "m-wrong", Claim: "wrong", Created: born.Time},
		{ProviderID: "m-first", Claim: "twice", Created: born.Time},
		{ProviderID: "m-second", Claim: "twice", Created: born.Time},
		{ProviderID: "m-unlaunched", Claim: "unlaunched", Created: born.Time},
		{ProviderID: "m-ending", Claim: "ending", Created: born.Time, Terminating: true},
		{ProviderID: "m-earlier", Claim: "again", Created: born.Add(-time.Hour)},
		{ProviderID: "m-orphan", Claim: "gone", Created: born.Time},
	}
	got := map[string]string{}
	for id, c := range mistakenClaims(machines, claims) {
		got[id] = c.Name
	}
	if diff := cmp.Diff(map[string]string{"m-edited": "edited", "m-wrong": "wrong"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMachinelesss(t *testing.T) {
	claim := func(name string, conditions ...string) karpv1.NodeClaim {
		c := claimWith(name, conditions...)
		c.Status.ProviderID = "m-" + name
		return *c
	}
	deleted := claim("deleted", karpv1.ConditionLaunched, karpv1.ConditionRegistered)
	deleted.DeletionTimestamp = &born
	claims := []karpv1.NodeClaim{
		claim("alive", karpv1.ConditionLaunched, karpv1.ConditionRegistered),
		claim("lost", karpv1.ConditionLaunched, karpv1.ConditionRegistered),
		claim("ending", karpv1.ConditionLaunched, karpv1.ConditionRegistered),
		claim("unregistered", karpv1.ConditionLaunched), // the time limit to register decides
		deleted,
	}
	machines := []cloud.Machine{{ProviderID: "m-alive"}, {ProviderID: "m-ending", Terminating: true}}
	var got []string
	for _, c := range machineless(machines, claims) {
		got = append(got, c.Name)
	}
	if diff := cmp.Diff([]string{"lost", "ending"}, got); diff != "" {
		t.Error(diff)
	}
}

// TestMemory verifies that the provider's response is kept until the claim shows it, and that failures of the hook
// are counted separately.
func TestMemory(t *testing.T) {
	var m launchResults
	m.record("a", "claim", &launchResult{refusal: "x"}, born.Time)
	m.hookFailed("a", born.Time)
	if n := m.hookFailed("a", born.Time); n != 2 || m.result("a") == nil {
		t.Errorf("%d failures, response %v", n, m.result("a"))
	}
	m.dropShown("a")
	m.dropShown("unknown")
	if n := m.hookFailed("a", born.Time); n != 3 || m.result("a") != nil {
		t.Errorf("after it was shown: %d failures, response %v", n, m.result("a"))
	}
	m.forget("a")
	if n := m.hookFailed("a", born.Time); n != 1 {
		t.Errorf("after forget: %d failures", n)
	}
}

// TestMemoryByName verifies that machines of claims are known by the claims' names until the claims show them, for
// all claims of a name.
func TestMemoryByName(t *testing.T) {
	m := launchResults{life: time.Hour}
	has := func(id string) *launchResult { return &launchResult{machine: &cloud.Machine{ProviderID: id}} }
	m.hookFailed("old", born.Time) // an entry without a response
	m.record("old", "web", has("m-old"), born.Time)
	m.record("old", "web", has("m-old"), born.Time)
	m.record("new", "web", has("m-new"), born.Time)
	m.record("refused", "web", &launchResult{refusal: "x"}, born.Time)
	m.record("other", "db", has("m-other"), born.Time)
	for _, step := range []struct {
		do   func()
		want map[types.UID]string
	}{
		{func() {}, map[types.UID]string{"old": "m-old", "new": "m-new"}},
		{func() { m.dropShown("new") }, map[types.UID]string{"old": "m-old"}},
		{func() { m.forget("old") }, nil},
		{func() { m.forget("new"); m.forget("refused"); m.forget("unknown") }, nil},
	} {
		step.do()
		if diff := cmp.Diff(step.want, m.machinesOf("web")); diff != "" {
			t.Error(diff)
		}
	}
	if len(m.byClaim) != 1 || len(m.entries) != 1 {
		t.Errorf("%d names and %d entries remain, want those of the other claim", len(m.byClaim), len(m.entries))
	}
	for i := range entrySweep + 1 {
		name := fmt.Sprint(i)
		m.record(types.UID(name), name, has(name), born.Add(2*time.Hour*time.Duration(i/entrySweep)))
	}
	if len(m.byClaim) != len(m.entries) || len(m.entries) > 2 {
		t.Errorf("%d names and %d entries remain after a sweep", len(m.byClaim), len(m.entries))
	}
}

func TestRefusal(t *testing.T) {
	unready, soldOut := &cloud.NodeClassNotReadyError{Message: "it has not been checked yet"},
		&cloud.InsufficientCapacityError{Message: "none"}
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"sold out", fmt.Errorf("launching: %w", soldOut), telemetry.DisruptedInsufficientCapacity},
		{"class that cannot be used", fmt.Errorf("launching: %w", unready), telemetry.DisruptedNodeClassNotReady},
		{"class that is waited for", &cloud.CreateError{Reason: karpv1.ReasonNodeClassReadinessUnknown, Err: unready}, ""},
		{"types of a class that is waited for", fmt.Errorf("launching: %w",
			&cloud.CreateError{Reason: "InstanceTypeResolutionFailed", Err: unready}), ""},
		{"anything else", errors.New("timeout"), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := refusal(test.err); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
