package removal_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// machines is a cloud that contains these machines. The value reports whether a machine is terminating.
type machines map[string]bool

func (m machines) Machine(_ context.Context, id string) (*cloud.Machine, error) {
	ending, there := m[id]
	if !there {
		return nil, fmt.Errorf("machine %s: %w", id, cloud.ErrNotFound)
	}
	return &cloud.Machine{ProviderID: id, Terminating: ending}, nil
}

// bench is a Brake on an in-memory API, with a clock that the test controls.
type bench struct {
	t       *testing.T
	api     client.Client
	clock   *testclock.FakePassiveClock
	cloud   machines
	sink    *events.FakeRecorder
	brake   *removal.Brake
	metrics *telemetry.Metrics
	// deny refuses writes of annotations, on the NodePool denied only if it is set. forbid refuses reads of Leases.
	deny, forbid bool
	denied       string
}

var class = karpv1.NodeClassReference{Group: kwokv1alpha1.GroupVersion.Group, Kind: "KWOKNodeClass", Name: "default"}

// newBench returns a bench with a Brake for pools with the given numbers of machines.
func newBench(t *testing.T, pools map[string]int) *bench {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), karpv1.AddToScheme(scheme), kwokv1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, clock: testclock.NewFakePassiveClock(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)), cloud: machines{}, sink: events.NewFakeRecorder(1000)}
	var objects []client.Object
	for name, n := range pools {
		pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pool.Spec.Template.Spec.NodeClassRef = class
		objects = append(objects, pool)
		for i := range n {
			objects = append(objects, claim(name, i))
		}
	}
	b.api = fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).
		WithIndex(&corev1.Node{}, controller.FieldNodeProviderID, func(o client.Object) []string { return []string{o.(*corev1.Node).Spec.ProviderID} }).
		WithInterceptorFuncs(interceptor.Funcs{
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
				if b.deny && (b.denied == "" || b.denied == o.GetName()) {
					return errors.New("the API server is away")
				}
				return c.Patch(ctx, o, patch, opts...)
			},
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, lease := o.(*coordinationv1.Lease); lease && b.forbid {
					return apierrors.NewForbidden(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, key.Name, nil)
				}
				return c.Get(ctx, key, o, opts...)
			},
		}).Build()
	b.restart()
	return b
}

func claim(pool string, i int) *karpv1.NodeClaim {
	c := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", pool, i), Labels: map[string]string{karpv1.LabelNodePool: pool}}}
	c.Spec.NodeClassRef = class
	c.Status.ProviderID = machine(pool, i)
	return c
}

func machine(pool string, i int) string { return fmt.Sprintf("memory:///%s-%d", pool, i) }

// provider implements the part of a provider that is called.
type provider struct {
	cloud.Provider
	machines
}

func (p provider) Machine(ctx context.Context, id string) (*cloud.Machine, error) {
	return p.machines.Machine(ctx, id)
}

func (provider) NodeClasses() []client.Object { return []client.Object{&kwokv1alpha1.KWOKNodeClass{}} }

// restart replaces the process.
func (b *bench) restart() {
	b.t.Helper()
	classes, err := controller.ClassesOf(provider{}, b.api.Scheme())
	if err != nil {
		b.t.Fatal(err)
	}
	b.metrics = telemetry.New(prometheus.NewRegistry())
	b.brake = &removal.Brake{
		Client: b.api, Live: b.api, Provider: provider{machines: b.cloud}, Classes: classes, Recorder: telemetry.NewRecorder(b.sink, b.clock),
		Metrics: b.metrics, Timers: controller.Production(), Clock: b.clock,
	}
}

func (b *bench) pass(d time.Duration) { b.clock.SetTime(b.clock.Now().Add(d)) }

// ill requests the replacement of machines from..to of a pool one after the other, and counts the removed ones.
func (b *bench) ill(pool string, from, to int) (removed int) {
	b.t.Helper()
	for i := from; i < to; i++ {
		verdicts, err := b.brake.Ask(b.t.Context(), removal.Case{Machine: machine(pool, i), Pool: pool, Cause: removal.CauseUnhealthy, Cloud: removal.Alive})
		if err != nil {
			b.t.Fatal(err)
		}
		if verdicts[0] == removal.Remove {
			removed++
		}
	}
	return removed
}

func (b *bench) pool(name string) *karpv1.NodePool {
	b.t.Helper()
	pool := &karpv1.NodePool{}
	if err := b.api.Get(b.t.Context(), client.ObjectKey{Name: name}, pool); err != nil {
		b.t.Fatal(err)
	}
	return pool
}

// annotate sets an annotation of a pool, as an operator does.
func (b *bench) annotate(name, key, value string) {
	b.t.Helper()
	pool := b.pool(name)
	metav1.SetMetaDataAnnotation(&pool.ObjectMeta, key, value)
	if err := b.api.Update(b.t.Context(), pool); err != nil {
		b.t.Fatal(err)
	}
}

// said counts the events so far with the reason.
func (b *bench) said(reason string) int {
	n := 0
	for range len(b.sink.Events) {
		var kind, is string
		text := <-b.sink.Events
		if _, err := fmt.Sscan(text, &kind, &is); err == nil && is == reason {
			n++
		}
	}
	return n
}

// TestBrakeHoldsAndLetsGo verifies that a series of removals ends at a fifth of the pool, stays there, and continues
// when the failures are over.
func TestBrakeHoldsAndLetsGo(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50})
	if n := b.ill("a", 0, 50); n != 10 {
		t.Fatalf("%d machines of 50 were removed, want 10", n)
	}
	if got := b.pool("a").Annotations[karpv1.AnnotationRemovalsPaused]; got != "nodepool" {
		t.Errorf("the NodePool has %q, want nodepool", got)
	}
	if got := testutil.ToFloat64(b.metrics.NodeClaimsRemovalsPaused.WithLabelValues("a")); got != 40 {
		t.Errorf("the metric is %v, want 40", got)
	}
	if n := b.said(telemetry.ReasonRemovalsPaused); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
	for range 6 { // an hour in which they are requested again
		b.pass(5 * time.Minute)
		if n := b.ill("a", 10, 50); n != 0 {
			t.Fatalf("%d more were removed while 40 of 50 are unhealthy", n)
		}
	}
	b.pass(11 * time.Minute) // no more removals are requested
	if n := b.ill("a", 10, 12); n != 2 {
		t.Errorf("%d of 2 were removed after the failures, want both", n)
	}
	if got, held := b.pool("a").Annotations[karpv1.AnnotationRemovalsPaused]; held {
		t.Errorf("the NodePool still has %q", got)
	}
	if n := b.said(telemetry.ReasonRemovalsResumed); n != 1 {
		t.Errorf("%d events for its end, want 1", n)
	}
}

// TestBrakeAcrossRestarts verifies that a process that restarts between removals does not remove more than one that
// continues, and that a process that starts while the Brake holds first covers a whole window.
func TestBrakeAcrossRestarts(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50})
	removed := 0
	for i := range 50 {
		removed += b.ill("a", i, i+1)
		b.restart()
		b.pass(10 * time.Second)
	}
	if removed != 10 {
		t.Fatalf("%d machines were removed over restarts, want 10", removed)
	}
	for range 5 { // crashes after the recorded removals have left the window
		b.pass(12 * time.Minute)
		b.restart()
		if n := b.ill("a", 10, 50); n != 0 {
			t.Fatalf("%d more were removed after a restart", n)
		}
	}
	b.pass(12 * time.Minute)
	if n := b.ill("a", 10, 11); n != 1 {
		t.Errorf("%d were removed when one remained and a window had passed, want 1", n)
	}
}

// TestBrakeThatCannotRecord verifies that a removal that cannot be recorded is not allowed.
func TestBrakeThatCannotRecord(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50})
	b.deny = true
	for range 2 {
		verdicts, err := b.brake.Ask(t.Context(), removal.Case{Machine: machine("a", 0), Pool: "a", Cloud: removal.Alive})
		if err == nil || verdicts[0] == removal.Remove {
			t.Fatalf("a removal that cannot be recorded has the verdicts %v, error %v", verdicts, err)
		}
	}
	b.deny = false
	if n := b.ill("a", 0, 1); n != 1 {
		t.Error("the removal is not allowed when it can be recorded")
	}
}

// TestBrakeWithOneBadPool verifies that a NodePool that cannot be written holds its own removals only, and gets its
// annotations when it can be written.
func TestBrakeWithOneBadPool(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 50})
	b.deny, b.denied = true, "a"
	verdicts, err := b.brake.Ask(t.Context(), removal.Case{Machine: machine("a", 0), Pool: "a", Cloud: removal.Alive},
		removal.Case{Machine: machine("b", 0), Pool: "b", Cloud: removal.Alive})
	if diff := cmp.Diff([]removal.Verdict{removal.Hold, removal.Remove}, verdicts); diff != "" || err == nil {
		t.Errorf("error %v, verdicts (-want +got):\n%s", err, diff)
	}
	for i := range 11 {
		_, _ = b.brake.Ask(t.Context(), removal.Case{Machine: machine("a", i), Pool: "a", Cloud: removal.Alive})
	}
	if got := b.pool("a").Annotations[karpv1.AnnotationRemovalsPaused]; got != "" {
		t.Fatalf("the NodePool that cannot be written has %q", got)
	}
	if n := b.ill("b", 1, 3); n != 2 { // also while the pause of the other NodePool cannot be written
		t.Errorf("%d of 2 were removed of the NodePool that can be written", n)
	}
	if err := b.brake.Refresh(t.Context()); err == nil {
		t.Error("a run does not report that a NodePool cannot be written")
	}
	b.deny = false
	if err := b.brake.Refresh(t.Context()); err != nil {
		t.Error(err)
	}
	if got := b.pool("a").Annotations[karpv1.AnnotationRemovalsPaused]; got != "nodepool" {
		t.Errorf("the NodePool has %q when it can be written, want nodepool", got)
	}
}

// lagging reads NodePools as they were at the time that the test chose.
type lagging struct {
	client.Client
	old *karpv1.NodePoolList
}

func (l *lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if pools, is := list.(*karpv1.NodePoolList); is && l.old != nil {
		l.old.DeepCopyInto(pools)
		return nil
	}
	return l.Client.List(ctx, list, options...)
}

// TestAnnotationGoes verifies that the annotation of a pause is removed with the pause, also when the cache has not
// seen it yet, or when a user adds it again.
func TestAnnotationGoes(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50})
	cache := &lagging{Client: b.api, old: &karpv1.NodePoolList{}}
	if err := b.api.List(t.Context(), cache.old); err != nil {
		t.Fatal(err)
	}
	b.brake.Client = cache
	b.ill("a", 0, 50)
	if got := b.pool("a").Annotations[karpv1.AnnotationRemovalsPaused]; got != "nodepool" {
		t.Fatalf("the NodePool has %q, want nodepool", got)
	}
	b.pass(12 * time.Minute)
	for _, when := range []string{"after the pause", "after it was put back"} {
		if err := b.brake.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got, held := b.pool("a").Annotations[karpv1.AnnotationRemovalsPaused]; held {
			t.Errorf("%s the NodePool has %q", when, got)
		}
		cache.old = nil
		b.annotate("a", karpv1.AnnotationRemovalsPaused, "nodepool")
	}
}

// TestBrakeOfAClockThatWasSetBack verifies that a clock that is set back by hours neither releases the Brake at once
// nor makes it hold for hours.
func TestBrakeOfAClockThatWasSetBack(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50})
	if n := b.ill("a", 0, 10); n != 10 {
		t.Fatalf("%d of 10 were removed", n)
	}
	b.pass(-6 * time.Hour)
	if n := b.ill("a", 10, 11); n != 0 {
		t.Error("one more is removed after the clock was set back")
	}
	b.restart()
	if err := b.brake.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.pass(12 * time.Minute)
	if n := b.ill("a", 10, 11); n != 1 {
		t.Error("removals are held though a window has passed")
	}
}

// TestStraysWithoutNodePool verifies that without any NodePool, on which an operator could allow removals, strays are
// removed, three in each window.
func TestStraysWithoutNodePool(t *testing.T) {
	b := newBench(t, nil)
	var strays []removal.Case
	for i := range 10 {
		strays = append(strays, removal.Case{Machine: machine("stray", i), Cause: removal.CauseStray, Cloud: removal.Alive})
	}
	for round := range 4 {
		removed := 0
		for range 3 {
			verdicts, err := b.brake.Ask(t.Context(), strays...)
			if err != nil {
				t.Fatal(err)
			}
			for i, verdict := range verdicts {
				if verdict == removal.Remove {
					removed++
					strays[i].Machine = ""
				}
			}
			strays = slices.DeleteFunc(strays, func(c removal.Case) bool { return c.Machine == "" })
			b.pass(time.Minute)
		}
		if want := min(3, 10-3*round); removed != want {
			t.Errorf("window %d: %d strays were removed, want %d", round, removed, want)
		}
		b.pass(10 * time.Minute)
	}
}

// failing reports, as a provider does with each poll, machines from..to of pools as failing the cloud's checks, and
// returns how many may be replaced.
func (b *bench) failing(to map[string]int, from map[string]int) map[string]int {
	b.t.Helper()
	var removals []cloud.Removal
	for _, pool := range slices.Sorted(maps.Keys(to)) {
		for i := from[pool]; i < to[pool]; i++ {
			b.cloud[machine(pool, i)] = false
			removals = append(removals, cloud.Removal{Claim: claim(pool, i), Cause: "instance_status"})
		}
	}
	may, err := b.brake.AskFor(b.t.Context(), removals)
	if err != nil {
		b.t.Fatal(err)
	}
	count := map[string]int{}
	for i, is := range may {
		if is {
			count[removals[i].Claim.Labels[karpv1.LabelNodePool]]++
		}
	}
	return count
}

// TestPace verifies that when most machines of a NodePool fail the cloud's checks, a tenth of them is replaced in
// each window. Those of another NodePool do not wait for them.
func TestPace(t *testing.T) {
	b := newBench(t, map[string]int{"a": 100, "b": 100})
	if diff := cmp.Diff(map[string]int{"a": 10, "b": 3}, b.failing(map[string]int{"a": 100, "b": 3}, nil)); diff != "" {
		t.Errorf("at first (-want +got):\n%s", diff)
	}
	if got := b.pool("a").Annotations[karpv1.AnnotationRemovalsPaused]; got != "nodepool" {
		t.Errorf("the NodePool has %q, want nodepool", got)
	}
	for minute := range 9 {
		b.pass(time.Minute)
		if got := b.failing(map[string]int{"a": 100}, map[string]int{"a": 10}); len(got) != 0 {
			t.Fatalf("%v more after %d minutes", got, minute+1)
		}
	}
	b.pass(3 * time.Minute)
	if diff := cmp.Diff(map[string]int{"a": 10}, b.failing(map[string]int{"a": 100}, map[string]int{"a": 10})); diff != "" {
		t.Errorf("in the next window (-want +got):\n%s", diff)
	}
	b.pass(12 * time.Minute)
	if diff := cmp.Diff(map[string]int{"a": 5}, b.failing(map[string]int{"a": 25}, map[string]int{"a": 20})); diff != "" {
		t.Errorf("when few remain, more than a window after the last report of the others (-want +got):\n%s", diff)
	}
}

func TestOperatorAllows(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 50})
	if n := b.ill("a", 0, 50) + b.ill("b", 0, 50); n > 20 {
		t.Fatalf("%d of 100 were removed, want at most 20", n)
	}
	b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, "soon")
	if n := b.ill("a", 11, 50); n != 0 {
		t.Errorf("%d were removed because of an annotation that is not a time", n)
	}
	b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, b.clock.Now().AddDate(1, 0, 0).Format(time.RFC3339))
	if n := b.ill("a", 11, 50); n != 0 {
		t.Errorf("%d were removed because of an annotation a year ahead", n)
	}
	b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, b.clock.Now().Add(time.Minute).Format(time.RFC3339))
	if n := b.ill("a", 11, 50); n != 39 {
		t.Errorf("%d of 39 were removed with the operator's permission", n)
	}
	if n := b.ill("b", 11, 50); n != 0 {
		t.Errorf("%d of the other pool were removed", n)
	}
}

// TestDisputes verifies that machines that the cloud cannot find, and whose nodes report, pause other removals that
// the cloud's responses cause, until the cloud finds them.
func TestDisputes(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10})
	var disputes []removal.Case
	for i := range 10 {
		disputes = append(disputes, removal.Case{Machine: machine("a", i), Pool: "a", Cause: removal.CauseMachineGone, Cloud: removal.Gone, Node: removal.Alive})
	}
	stray := removal.Case{Machine: "memory:///foreign", Cause: removal.CauseStray, Cloud: removal.Alive}
	ask := func() removal.Verdict {
		verdicts, err := b.brake.Ask(t.Context(), stray)
		if err != nil {
			t.Fatal(err)
		}
		return verdicts[0]
	}
	b.brake.Disputes(disputes)
	if ask() != removal.Hold {
		t.Error("a stray is removed while the cloud finds none of ten machines that report")
	}
	if b.brake.Disputed(machine("a", 0)) {
		t.Error("a dispute is reported before the second look")
	}
	b.pass(time.Minute)
	b.brake.Disputes(disputes)
	if !b.brake.Disputed(machine("a", 0)) {
		t.Error("a dispute is not reported after the second look")
	}
	if got := testutil.ToFloat64(b.metrics.NodeClaimsDisputed.WithLabelValues("a")); got != 10 {
		t.Errorf("the metric is %v, want 10", got)
	}
	b.brake.Disputes(nil)
	if ask() != removal.Remove {
		t.Error("a stray is kept though cloud and nodes agree")
	}
}

func TestRequestFor(t *testing.T) {
	node := func(status corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Spec: corev1.NodeSpec{ProviderID: machine("a", 0)}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
		return n
	}
	lease := func(age time.Duration) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(-age))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n"}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	}
	for _, test := range []struct {
		name    string
		cloud   machines
		objects []client.Object
		forbid  bool
		want    bool
	}{
		{"ill", machines{machine("a", 0): false}, []client.Object{node(corev1.ConditionTrue)}, false, true},
		{"ill, and its node is silent", machines{machine("a", 0): false}, []client.Object{node(corev1.ConditionUnknown)}, false, true},
		{"ill, and not found", machines{}, []client.Object{node(corev1.ConditionTrue)}, false, false},
		{"ill, not found, and silent", machines{}, []client.Object{node(corev1.ConditionUnknown)}, false, true},
		{"ill, not found, silent, with a fresh lease", machines{}, []client.Object{node(corev1.ConditionUnknown), lease(time.Second)}, false, false},
		{"the same, and leases may not be read", machines{}, []client.Object{node(corev1.ConditionUnknown), lease(time.Second)}, true, true},
		{"ill, and ending", machines{machine("a", 0): true}, []client.Object{node(corev1.ConditionTrue)}, false, false},
		{"not found, and without a node", machines{}, nil, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, map[string]int{"a": 10})
			b.cloud, b.forbid = test.cloud, test.forbid
			b.restart()
			for _, o := range test.objects {
				if err := b.api.Create(t.Context(), o); err != nil {
					t.Fatal(err)
				}
			}
			got, err := b.brake.AskFor(t.Context(), []cloud.Removal{{Claim: claim("a", 0), Cause: "Test"}})
			if diff := cmp.Diff([]bool{test.want}, got); diff != "" || err != nil {
				t.Errorf("%s %v", diff, err)
			}
		})
	}
}

// TestFailingAndNotReady covers machines that all fail the cloud's checks. Where no node reports, the witnesses agree,
// and all are replaced. A node that is not ready reports, and so does one whose Lease is fresh: such machines exist by
// both witnesses, and the brake limits their removal. A machine whose node has not joined yet has one witness only.
func TestFailingAndNotReady(t *testing.T) {
	for _, test := range []struct {
		name   string
		status corev1.ConditionStatus
		lease  time.Duration // its age; 0: there is none
		want   int
	}{
		{"ready", corev1.ConditionTrue, 0, 1},
		{"not ready, with a fresh lease", corev1.ConditionFalse, time.Second, 1},
		{"not ready", corev1.ConditionFalse, 0, 1},
		{"silent, with a fresh lease", corev1.ConditionUnknown, time.Second, 1},
		{"silent, with an old lease", corev1.ConditionUnknown, time.Hour, 10},
		{"silent", corev1.ConditionUnknown, 0, 10},
		{"not joined", "", 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, map[string]int{"a": 10})
			if removed := b.failingNodes(test.status, test.lease); removed != test.want {
				t.Errorf("%d of 10 are replaced at once, want %d", removed, test.want)
			}
		})
	}
}

// failingNodes reports ten machines as failing the cloud's checks, whose nodes have the status and a Lease of the age, and
// returns how many are removed. Without a status, the nodes have not joined.
func (b *bench) failingNodes(status corev1.ConditionStatus, lease time.Duration) (removed int) {
	b.t.Helper()
	create := func(o client.Object) {
		if err := b.api.Create(b.t.Context(), o); err != nil {
			b.t.Fatal(err)
		}
	}
	var removals []cloud.Removal
	for i := range 10 {
		c := claim("a", i)
		b.cloud[machine("a", i)] = false
		if status != "" {
			c.Status.NodeName = c.Name
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.Name}, Spec: corev1.NodeSpec{ProviderID: machine("a", i)}}
			node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}
			create(node)
		}
		if lease > 0 {
			renewed := metav1.NewMicroTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).Add(-lease))
			create(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: c.Name},
				Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}})
		}
		removals = append(removals, cloud.Removal{Claim: c, Cause: "system_status"})
	}
	may, err := b.brake.AskFor(b.t.Context(), removals)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, is := range may {
		if is {
			removed++
		}
	}
	return removed
}

// recovered is an API server with ready nodes, whatever the cache contains.
type recovered struct{ client.Reader }

func (r recovered) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, o, opts...)
	if node, is := o.(*corev1.Node); is && err == nil {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	}
	return err
}

// TestFailingAndRecovered verifies that a node that the cache still shows as silent is read again. A node that has
// recovered counts as a witness for its machine, and one that is gone does not.
func TestFailingAndRecovered(t *testing.T) {
	for name, test := range map[string]struct {
		live func(client.Reader) client.Reader
		want int
	}{
		"as the cache shows": {func(api client.Reader) client.Reader { return api }, 10},
		"recovered":          {func(api client.Reader) client.Reader { return recovered{api} }, 1},
		"gone":               {func(client.Reader) client.Reader { return fake.NewClientBuilder().Build() }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]int{"a": 10})
			b.brake.Live = test.live(b.api)
			if removed := b.failingNodes(corev1.ConditionUnknown, 0); removed != test.want {
				t.Errorf("%d of 10 are replaced at once, want %d", removed, test.want)
			}
		})
	}
}

// TestStraysAcrossRestarts verifies that removals of machines without a NodePool are limited across restarts too: the
// first NodePool stores their record.
func TestStraysAcrossRestarts(t *testing.T) {
	b := newBench(t, map[string]int{"a": 5, "b": 5})
	removed := 0
	for i := range 12 {
		verdicts, err := b.brake.Ask(t.Context(), removal.Case{Machine: machine("stray", i), Cause: removal.CauseStray, Cloud: removal.Alive})
		if err != nil {
			t.Fatal(err)
		}
		if verdicts[0] == removal.Remove {
			removed++
		}
		b.pass(20 * time.Second)
		b.restart()
	}
	if removed != 3 {
		t.Errorf("%d strays were removed over restarts, want 3", removed)
	}
	if text := b.pool("a").Annotations[karpv1.AnnotationRemovals]; !strings.Contains(text, "of-none:") {
		t.Errorf("the first NodePool has %q", text)
	}
}
