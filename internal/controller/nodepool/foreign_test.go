package nodepool

import (
	"strings"
	"testing"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// foreignPool returns a pool of another provider, which that provider's controller marked ready.
func foreignPool() *karpv1.NodePool {
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "u"}}
	pool.Spec.Template.Spec.NodeClassRef = karpv1.NodeClassReference{Group: "karpenter.other.sh", Kind: "OtherNodeClass", Name: "default"}
	pool.StatusConditions().Set(yes(karpv1.ConditionValidationSucceeded))
	pool.StatusConditions().Set(yes(karpv1.ConditionNodeClassReady))
	return pool
}

func stateOf(pool *karpv1.NodePool) (served, ready string) {
	c := pool.Condition(karpv1.ConditionNodeClassReady)
	ready = string(c.Status) + " " + c.Reason
	if c = pool.Condition(karpv1.ConditionServed); c != nil {
		served = string(c.Status) + " " + c.Reason
	}
	return served, ready
}

const foreignPatience = time.Minute

// firstAsked is when the first step of TestForeign takes place.
var firstAsked = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// foreignStep is one evaluation of a pool of another provider.
type foreignStep struct {
	at            time.Duration
	before        func(*karpv1.NodePool)
	after         time.Duration // until the next check
	served, ready string
}

// States of the conditions Served and Ready.
const (
	fine, foreign    = "True NodeClassReady", "False OtherProvider"
	asked, told, let = "Unknown Asked", "False NotAnswered", "True TakenBack"
)

// askInSteps checks the conditions of the pool after each step. With restarts, each step is that of a new process.
func askInSteps(t *testing.T, name string, pool *karpv1.NodePool, steps []foreignStep, restarts bool) {
	t.Helper()
	q := &questions{}
	for i, s := range steps {
		if s.before != nil {
			s.before(pool)
		}
		if restarts {
			q = &questions{}
		}
		after := q.weigh(pool, "aws", firstAsked.Add(s.at), foreignPatience)
		served, ready := stateOf(pool)
		if diff := cmp.Diff([]any{s.after, s.served, s.ready}, []any{after, served, ready}); diff != "" {
			t.Errorf("%s, step %d: time until the next check, Served and Ready (-want +got):\n%s", name, i, diff)
		}
		if pool.Condition(status.ConditionReady).IsTrue() != (s.ready == fine) {
			t.Errorf("%s, step %d: the pool's own condition is %v", name, i, pool.Condition(status.ConditionReady))
		}
	}
}

// TestForeign verifies that a pool of another provider gets the condition Served, and is reported as not managed if
// no controller responds. This holds for one process and for several.
func TestForeign(t *testing.T) {
	const patience = foreignPatience
	writes := func(pool *karpv1.NodePool) { // as an owner of any other implementation does
		pool.StatusConditions().Set(yes(karpv1.ConditionNodeClassReady))
	}
	answers := func(pool *karpv1.NodePool) { // as an owner of this implementation does
		answered(pool)
		writes(pool)
	}
	for name, c := range map[string]struct {
		restarts bool // before each step
		steps    []foreignStep
	}{
		"no answer": {steps: []foreignStep{
			{0, nil, patience, asked, fine}, {20 * time.Second, nil, 40 * time.Second, asked, fine}, {patience, nil, 0, told, foreign},
			{2 * patience, nil, 0, told, foreign},
		}},
		"its owner comes": {steps: []foreignStep{
			{0, nil, patience, asked, fine}, {patience, nil, 0, told, foreign}, {2 * patience, answers, patience, asked, fine},
			{2*patience + time.Second, answers, afterAnswer*patience - time.Second, "", fine},
		}},
		"its owner is of another program": {steps: []foreignStep{
			{0, nil, patience, asked, fine}, {patience, nil, 0, told, foreign}, {2 * patience, writes, afterTakeBack * patience, let, fine},
			{100 * patience, writes, (afterTakeBack - 98) * patience, let, fine}, {(2 + afterTakeBack) * patience, nil, patience, asked, fine},
			{(3 + afterTakeBack) * patience, nil, 0, told, foreign},
		}},
		"its owner is of another program, and we are started again": {true, []foreignStep{
			{0, nil, patience, asked, fine}, {time.Minute, nil, patience, asked, fine}, // the new process does not know since when
			{2 * patience, func(pool *karpv1.NodePool) { pool.StatusConditions().Set(withoutController(pool, "aws")) }, 0, told, foreign},
			{3 * patience, writes, afterTakeBack * patience, let, fine},
			{4 * patience, nil, (afterTakeBack - 1) * patience, let, fine}, {5 * patience, nil, (afterTakeBack - 2) * patience, let, fine},
			{(3 + afterTakeBack) * patience, nil, patience, asked, fine},
		}},
		"its owner answers": {steps: []foreignStep{
			{0, nil, patience, asked, fine}, {time.Second, answers, afterAnswer*patience - time.Second, "", fine},
			{patience, nil, (afterAnswer - 1) * patience, "", fine}, {afterAnswer * patience, nil, patience, asked, fine},
		}},
		"asked by a process before us": {steps: []foreignStep{
			{0, func(pool *karpv1.NodePool) { (&questions{}).weigh(pool, "aws", firstAsked, patience) }, patience, asked, fine},
			{patience, nil, 0, told, foreign},
		}},
		"taken back at a time to come": {steps: []foreignStep{
			{0, func(pool *karpv1.NodePool) { note(pool, takenBack(), firstAsked.Add(1000*time.Hour)) }, patience, asked, fine},
		}},
		"another of its name": {steps: []foreignStep{
			{0, nil, patience, asked, fine}, {30 * time.Second, func(pool *karpv1.NodePool) { pool.UID = "v" }, patience, asked, fine},
		}},
	} {
		pool := foreignPool()
		askInSteps(t, name, pool, c.steps, c.restarts)
		if c := pool.Condition(karpv1.ConditionNodeClassReady); name == "asked by a process before us" && !strings.Contains(c.Message,
			"OtherNodeClass.karpenter.other.sh are not of the cloud provider of the running controller (aws)") {
			t.Errorf("the message is %q", c.Message)
		}
	}
}

// onlyKwok is a cloud that owns kwok's classes. None of its other methods are called.
type onlyKwok struct{ cloud.Provider }

func (onlyKwok) Name() string { return "kwok" }

func (onlyKwok) NodeClasses() []client.Object { return []client.Object{&kwokv1alpha1.KWOKNodeClass{}} }

// TestForeignPoolsAreForgotten verifies that state of a deleted pool is dropped, and that time is taken from the
// clock.
func TestForeignPoolsAreForgotten(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{karpv1.AddToScheme, kwokv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	classes, err := controller.ClassesOf(onlyKwok{}, scheme)
	if err != nil {
		t.Fatal(err)
	}
	pool := foreignPool()
	start, patience := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), controller.Production().ClassRecheck
	clock := testingclock.NewFakePassiveClock(start)
	r := &Reconciler{
		Client:   fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&karpv1.NodePool{}).WithObjects(pool).Build(),
		Provider: onlyKwok{}, Timers: controller.Production(), Clock: clock, Health: NewHealth(), classes: classes,
		Metrics: telemetry.New(prometheus.NewRegistry()),
	}
	request := ctrl.Request{NamespacedName: types.NamespacedName{Name: pool.Name}}
	reconcile := func() ctrl.Result {
		t.Helper()
		result, err := r.Reconcile(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	for _, left := range []time.Duration{patience, patience / 3, 0} {
		clock.SetTime(start.Add(patience - left))
		if got := reconcile().RequeueAfter; got != left {
			t.Errorf("next check after %v, want %v", got, left)
		}
		if err := r.Client.Get(t.Context(), request.NamespacedName, pool); err != nil {
			t.Fatal(err)
		}
		if c := pool.Condition(karpv1.ConditionServed); c == nil || c.IsFalse() != (left == 0) {
			t.Errorf("with %v left the pool has %+v", left, c)
		}
	}
	if len(r.foreign.pools) != 1 {
		t.Errorf("%d pools are known, want 1", len(r.foreign.pools))
	}
	if err := r.Client.Delete(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	reconcile()
	if len(r.foreign.pools) != 0 {
		t.Errorf("%d pools are known after the last is gone", len(r.foreign.pools))
	}
}
