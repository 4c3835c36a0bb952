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
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
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

// bench is a Limiter on an in-memory API, with a clock that the test controls.
type bench struct {
	t       *testing.T
	api     client.Client
	clock   *testclock.FakePassiveClock
	cloud   machines
	sink    *events.FakeRecorder
	limiter *removal.Limiter
	metrics *telemetry.Metrics
	// deny refuses writes of annotations, on the NodePool denied only if it is set. forbid refuses reads of Leases.
	deny, forbid bool
	denied       string
}

var class = karpv1.NodeClassReference{Group: kwokv1alpha1.GroupVersion.Group, Kind: "KWOKNodeClass", Name: "default"}

// newBench returns a bench with a Limiter for pools with the given numbers of machines.
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
	b.limiter = &removal.Limiter{
		Client: b.api, Live: b.api, Provider: provider{machines: b.cloud}, Classes: classes, Recorder: telemetry.NewRecorder(b.sink, b.clock),
		Metrics: b.metrics, Timers: controller.Production(), Clock: b.clock,
	}
}

func (b *bench) pass(d time.Duration) { b.clock.SetTime(b.clock.Now().Add(d)) }

// ask asks for machines from..to of a pool, one after the other, and returns how many may be removed.
func (b *bench) ask(pool string, cause removal.Cause, from, to int) (removed int) {
	b.t.Helper()
	for i := from; i < to; i++ {
		may, err := b.limiter.Ask(b.t.Context(), removal.Case{Machine: machine(pool, i), Pool: pool, Cause: cause})
		if err != nil {
			b.t.Fatal(err)
		}
		if may[0] {
			removed++
		}
	}
	return removed
}

func (b *bench) unhealthy(pool string, from, to int) (removed int) {
	b.t.Helper()
	return b.ask(pool, removal.CauseUnhealthy, from, to)
}

// strays asks for machines without a claim.
func (b *bench) strays(from, to int) (removed int) {
	b.t.Helper()
	return b.ask("", removal.CauseStray, from, to)
}

// disputed reports n machines of a NodePool that the cloud does not show though their nodes report.
func (b *bench) disputed(pool string, n int) {
	b.t.Helper()
	var cases []removal.Case
	for i := range n {
		cases = append(cases, removal.Case{Machine: machine(pool, i), Pool: pool, Cause: removal.CauseMachineGone})
	}
	if err := b.limiter.Disputed(b.t.Context(), cases); err != nil {
		b.t.Fatal(err)
	}
}

// paused returns the scopes of the active pauses of removals that a NodePool has.
func (b *bench) paused(name string) string {
	b.t.Helper()
	var scopes []string
	for _, p := range pause.Parse(b.pool(name).Annotations[karpv1.AnnotationPauses]).Active(b.clock.Now()) {
		scopes = append(scopes, p.Reason+" "+p.Scope)
	}
	return strings.Join(scopes, ", ")
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

// TestHealthyFleetIsKept is the property: a healthy fleet is ended neither by one wrong answer nor by many. For three hours,
// each machine of the fleet looks wrong, every five minutes, and the process restarts in between. Within ten minutes at most
// a fifth of a NodePool and of the fleet is removed, at least three; after that, twice an hour one more.
func TestHealthyFleetIsKept(t *testing.T) {
	for _, test := range []struct {
		name     string
		machines map[string]int
		ask      func(b *bench, pool string, machines int) int
		most     int
	}{
		{"conditions of one NodePool", map[string]int{"a": 20}, func(b *bench, pool string, n int) int { return b.unhealthy(pool, 0, n) }, 4},
		{"conditions of a small NodePool", map[string]int{"a": 6}, func(b *bench, pool string, n int) int { return b.unhealthy(pool, 0, n) }, 3},
		{"conditions of many small NodePools", map[string]int{"a": 2, "b": 2, "c": 2, "d": 2, "e": 2},
			func(b *bench, pool string, n int) int { return b.unhealthy(pool, 0, n) }, 3},
		{"a list of another cluster's machines", map[string]int{"a": 10}, func(b *bench, _ string, _ int) int { return b.strays(0, 20) }, 3},
		{"failed checks of the cloud", map[string]int{"a": 20}, func(b *bench, pool string, n int) int { return b.failing(pool, n) }, 4},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, test.machines)
			var removed []time.Time
			for step := range 3 * 12 {
				for _, pool := range slices.Sorted(maps.Keys(test.machines)) {
					for range test.ask(b, pool, test.machines[pool]) {
						removed = append(removed, b.clock.Now())
					}
				}
				b.texts()
				if b.pass(5 * time.Minute); step%3 == 0 {
					b.restart()
				}
			}
			for i, at := range removed {
				if earlier := i - test.most; earlier >= 0 && at.Sub(removed[earlier]) < 10*time.Minute {
					t.Fatalf("%d machines are removed between %v and %v, want at most %d", test.most+1, removed[earlier], at, test.most)
				}
			}
			if n, most := len(removed), test.most+2*3+2; n < test.most || n > most {
				t.Errorf("%d machines are removed within three hours, want %d to %d", n, test.most, most)
			}
		})
	}
}

// failing reports the first n machines of a NodePool as failing the cloud's checks, as a provider does with each poll, and
// returns how many may be replaced.
func (b *bench) failing(pool string, n int) (removed int) {
	b.t.Helper()
	var removals []cloud.Removal
	for i := range n {
		b.cloud[machine(pool, i)] = false
		removals = append(removals, cloud.Removal{Claim: claim(pool, i), Cause: "instance_status"})
	}
	may, err := b.limiter.AskFor(b.t.Context(), removals)
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

// TestDisputed verifies that nothing is removed while the cloud shows none of the machines whose nodes report, and that
// removals resume when cloud and nodes agree.
func TestDisputed(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10, "b": 30})
	for range 12 {
		b.disputed("a", 10)
		if n := b.strays(0, 9) + b.unhealthy("a", 0, 9); n != 0 {
			t.Fatalf("%d machines are removed while the cloud finds none of ten that report", n)
		}
		b.pass(time.Minute)
	}
	if got := testutil.ToFloat64(b.metrics.NodeClaimsDisputed.WithLabelValues("a")); got != 10 {
		t.Errorf("%v machines are in dispute, want 10", got)
	}
	b.disputed("a", 0)
	b.pass(31 * time.Minute)
	if n := b.strays(0, 1); n != 1 {
		t.Error("a stray is kept though cloud and nodes agree")
	}
	few := newBench(t, map[string]int{"a": 10})
	few.disputed("a", 3)
	if n := few.strays(0, 1); n != 1 {
		t.Error("a stray is kept because of three machines")
	}
}

// TestDisputedLater verifies that machines in dispute pause removals at once also if the last removals were long ago.
func TestDisputedLater(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10})
	if n := b.unhealthy("a", 0, 2); n != 2 {
		t.Fatalf("%d of two machines may be removed", n)
	}
	b.pass(time.Hour)
	b.disputed("a", 10)
	if n := b.unhealthy("a", 2, 10); n != 0 {
		t.Errorf("%d machines are removed while the cloud finds none of ten that report", n)
	}
}

// TestPause verifies that a series of removals ends at a fifth of the NodePool, that the pause is stored and reported, and
// that one machine is removed after it. When nothing has failed for a window, the count begins anew.
func TestPause(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 50})
	if n := b.unhealthy("a", 0, 50); n != 10 {
		t.Fatalf("%d machines of 50 were removed, want 10", n)
	}
	if n := b.unhealthy("b", 0, 3); n != 3 {
		t.Errorf("%d of 3 were removed of another NodePool", n)
	}
	if got := b.paused("a"); got != "Removal a" {
		t.Errorf("the pauses of the NodePool are %q", got)
	}
	if got := testutil.ToFloat64(b.metrics.NodeClaimsRemovalsPaused.WithLabelValues("a")); got != 40 {
		t.Errorf("the metric is %v, want 40", got)
	}
	text := b.texts()
	for _, want := range []string{"involuntary removals of machines of NodePool a are paused until 2026-01-01T12:11:01Z, after 10 failures in a row: " +
		"NodeUnhealthy: memory:///a-9. Machines that wait: NodeUnhealthy: 1", "kubectl annotate nodepool a --overwrite"} {
		if !strings.Contains(text, want) {
			t.Errorf("the events are %q, want %q", text, want)
		}
	}
	b.pass(12 * time.Minute)
	if n := b.unhealthy("a", 10, 50); n != 1 {
		t.Errorf("%d more were removed after the pause, want 1", n)
	}
	b.pass(21 * time.Minute)
	if n := b.unhealthy("a", 11, 50); n != 0 {
		t.Errorf("%d more were removed, want none: the second pause is twice as long", n)
	}
	b.pass(30 * time.Minute)
	b.texts()
	if n := b.unhealthy("a", 11, 13); n != 2 {
		t.Errorf("%d of 2 were removed when nothing had failed for a window", n)
	}
	if n := b.said(telemetry.ReasonRemovalsResumed); n != 1 {
		t.Errorf("%d events for the end of the pause, want 1", n)
	}
}

// TestReportOfCauses verifies that the event of a pause has the command for each cause that waits, and that another cause
// is another event.
func TestReportOfCauses(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10})
	b.disputed("a", 5)
	if text := b.texts(); !strings.Contains(text, "kubectl delete nodeclaim") || strings.Contains(text, "annotate nodepool") {
		t.Errorf("the command is not that of machines in dispute: %q", text)
	}
	if got := testutil.ToFloat64(b.metrics.NodeClaimsRemovalsPaused.WithLabelValues("a")); got != 5 {
		t.Errorf("the metric is %v, want 5", got)
	}
	b.strays(0, 1)
	if text := b.texts(); !strings.Contains(text, "kubectl annotate nodepools --all --overwrite") {
		t.Errorf("the events are %q, want the command for machines without a claim", text)
	}
	b.ask("a", removal.CauseNodeGone, 5, 6)
	if text := b.texts(); !strings.Contains(text, "NodeGone: the Node object is gone") {
		t.Errorf("the events are %q, want the command for claims without a node", text)
	}
	b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, "soon")
	b.pass(16 * time.Minute)
	b.disputed("a", 5)
	if text := b.texts(); !strings.Contains(text, `="soon" is not a time`) {
		t.Errorf("the events are %q, want that the annotation is not a time", text)
	}
}

// TestOtherPausesStay verifies that the pauses that loops have stored on a NodePool stay, also where there are many.
func TestOtherPausesStay(t *testing.T) {
	b := newBench(t, map[string]int{"a": 5})
	var full pause.List
	for i := range pause.Most {
		full = full.With(pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: fmt.Sprintf("%036d", i)}}.Fail(b.clock.Now(), b.clock.Now(), 0, ""))
	}
	b.annotate("a", karpv1.AnnotationPauses, full.Text())
	if n := b.unhealthy("a", 0, 5); n != 3 {
		t.Errorf("%d of 5 were removed, want 3", n)
	}
	list := pause.Parse(b.pool("a").Annotations[karpv1.AnnotationPauses])
	if of := list.Of(pause.Key{Reason: pause.Removal, Scope: "a"}); of.Failures != 3 || len(list) != pause.Most+2 {
		t.Errorf("%d pauses, that of removals is %+v", len(list), of)
	}
}

// TestUnwritten verifies that a removal that cannot be stored is not allowed, and that others are.
func TestUnwritten(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 50})
	b.deny, b.denied = true, "a"
	for range 12 {
		may, err := b.limiter.Ask(t.Context(), removal.Case{Machine: machine("a", 0), Pool: "a"}, removal.Case{Machine: machine("b", 0), Pool: "b"})
		if diff := cmp.Diff([]bool{false, true}, may); diff != "" || err == nil {
			t.Fatalf("error %v, answers (-want +got):\n%s", err, diff)
		}
	}
	if n := b.strays(0, 1); n != 1 {
		t.Error("a machine without a claim is kept though one NodePool can be written")
	}
	b.deny = false
	if n := b.unhealthy("a", 0, 1); n != 1 {
		t.Error("the removal is not allowed when it can be stored")
	}
	b.deny, b.denied = true, ""
	if may, err := b.limiter.Ask(t.Context(), removal.Case{Machine: machine("", 1), Cause: removal.CauseStray}); err == nil || may[0] {
		t.Errorf("a machine without a claim is removed though no NodePool can be written: %v, %v", may, err)
	}
}

// TestClockSetBack verifies that a clock that is set back by hours neither ends a pause nor prolongs it for hours.
func TestClockSetBack(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50})
	if n := b.unhealthy("a", 0, 10); n != 10 {
		t.Fatalf("%d of 10 were removed", n)
	}
	b.pass(-6 * time.Hour)
	if n := b.unhealthy("a", 10, 11); n != 0 {
		t.Error("one more is removed after the clock was set back")
	}
	b.clock.SetTime(b.clock.Now().Add(6*time.Hour + 12*time.Minute))
	if n := b.unhealthy("a", 10, 11); n != 1 {
		t.Error("removals are held though the pause has ended")
	}
}

// TestAcrossClocks verifies that times are those of the API server's clock: what a leader with a wrong clock stores counts
// for its successor, and so does the time until which the operator allows removals.
func TestAcrossClocks(t *testing.T) {
	for _, ahead := range []time.Duration{-15 * time.Minute, 15 * time.Minute} {
		b := newBench(t, map[string]int{"a": 50})
		b.pass(ahead)
		b.limiter.Ahead = func() time.Duration { return ahead }
		if n := b.unhealthy("a", 0, 10); n != 10 {
			t.Fatalf("%v: %d of 10 were removed", ahead, n)
		}
		b.pass(-ahead)
		b.restart()
		if n := b.unhealthy("a", 10, 20); n != 0 {
			t.Errorf("%v: the successor removes %d more, want 0", ahead, n)
		}
		b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, b.clock.Now().Add(time.Minute).Format(time.RFC3339))
		b.pass(ahead)
		b.limiter.Ahead = func() time.Duration { return ahead }
		if n := b.unhealthy("a", 10, 20); n != 10 {
			t.Errorf("%v: %d of 10 were removed while the operator allows it", ahead, n)
		}
	}
}

// TestStraysWithoutNodePool verifies that without any NodePool, which would store the pause, machines without a claim are
// removed, three at once.
func TestStraysWithoutNodePool(t *testing.T) {
	b := newBench(t, nil)
	if n := b.strays(0, 10); n != 3 {
		t.Errorf("%d of 10 were removed, want 3", n)
	}
	b.pass(12 * time.Minute)
	if n := b.strays(3, 10); n != 1 {
		t.Errorf("%d were removed after the pause, want 1", n)
	}
}

// TestOperatorAllows verifies that the annotation lifts the limit of its NodePool, that what is removed meanwhile does not
// count, and that machines without a NodePool need it on all.
func TestOperatorAllows(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 50})
	if n := b.unhealthy("a", 0, 50) + b.unhealthy("b", 0, 50); n != 20 {
		t.Fatalf("%d of 100 were removed, want 20", n)
	}
	for _, text := range []string{"soon", b.clock.Now().AddDate(1, 0, 0).Format(time.RFC3339)} {
		b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, text)
		if n := b.unhealthy("a", 11, 50); n != 0 {
			t.Errorf("%d were removed because of the annotation %q", n, text)
		}
	}
	before := b.pool("a").Annotations[karpv1.AnnotationPauses]
	b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, b.clock.Now().Add(time.Hour).Format(time.RFC3339))
	if n := b.unhealthy("a", 11, 50); n != 39 {
		t.Errorf("%d of 39 were removed with the operator's permission", n)
	}
	if diff := cmp.Diff(before, b.pool("a").Annotations[karpv1.AnnotationPauses]); diff != "" {
		t.Errorf("they count (-want +got):\n%s", diff)
	}
	if n := b.unhealthy("b", 11, 50) + b.strays(0, 5); n != 0 {
		t.Errorf("%d of the other NodePool, or of none, were removed", n)
	}
	b.annotate("b", karpv1.AnnotationRemovalsAllowedUntil, b.clock.Now().Add(time.Hour).Format(time.RFC3339))
	if n := b.strays(0, 5); n != 5 {
		t.Errorf("%d of 5 machines without a claim were removed while every NodePool allows it", n)
	}
}

// TestDeletedNodePool verifies that the count of a NodePool ends with it, and holds no removals of others.
func TestDeletedNodePool(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 30})
	if n := b.unhealthy("a", 0, 50); n != 10 {
		t.Fatalf("%d of 50 were removed, want 10", n)
	}
	if err := errors.Join(b.api.Delete(t.Context(), b.pool("a")), b.api.DeleteAllOf(t.Context(), &karpv1.NodeClaim{}, client.MatchingLabels{karpv1.LabelNodePool: "a"})); err != nil {
		t.Fatal(err)
	}
	if n := b.unhealthy("b", 0, 1); n != 1 {
		t.Error("a removal of the other NodePool is held")
	}
}

// TestGone verifies that a machine that neither the cloud nor its node shows is removed during a pause, and does not count.
func TestGone(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10})
	b.disputed("a", 5)
	for i := range 10 {
		if may, err := b.limiter.Ask(t.Context(), removal.Case{Machine: machine("a", i), Pool: "a", Gone: true}); err != nil || !may[0] {
			t.Errorf("machine %d is kept, error %v", i, err)
		}
	}
}

// texts returns all events that have not been read.
func (b *bench) texts() string {
	var said []string
	for range len(b.sink.Events) {
		said = append(said, <-b.sink.Events)
	}
	return strings.Join(said, "\n")
}

// TestReports covers the reports of nodes.
func TestReports(t *testing.T) {
	for _, test := range []struct {
		name     string
		ready    corev1.ConditionStatus
		lease    time.Duration // its age, 0 for none
		duration int32
		want     bool
	}{
		{"ready", corev1.ConditionTrue, 0, 0, true},
		{"ready, and a lease of a clock that is behind", corev1.ConditionTrue, time.Hour, 0, true},
		{"the kubelet says that it is not ready", corev1.ConditionFalse, 0, 0, true},
		{"silent, without a lease", corev1.ConditionUnknown, 0, 0, false},
		{"silent, and the lease has run out", corev1.ConditionUnknown, 40 * time.Second, 0, false},
		{"silent, and the lease is fresh", corev1.ConditionUnknown, 39 * time.Second, 0, true},
		{"a longer lease", corev1.ConditionUnknown, 90 * time.Second, 100, true},
		{"never reported", "", 0, 0, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, nil)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
			if test.ready != "" {
				node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: test.ready}}
			}
			if test.lease > 0 {
				renewed := metav1.NewMicroTime(b.clock.Now().Add(-test.lease))
				lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: "n"},
					Spec: coordinationv1.LeaseSpec{RenewTime: &renewed, LeaseDurationSeconds: &test.duration}}
				if err := b.api.Create(t.Context(), lease); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := b.limiter.Reports(t.Context(), node); err != nil || got != test.want {
				t.Errorf("reports: %t, want %t; error %v", got, test.want, err)
			}
		})
	}
}

func TestAskFor(t *testing.T) {
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
			got, err := b.limiter.AskFor(t.Context(), []cloud.Removal{{Claim: claim("a", 0), Cause: "Test"}})
			if diff := cmp.Diff([]bool{test.want}, got); diff != "" || err != nil {
				t.Errorf("%s %v", diff, err)
			}
		})
	}
}

// TestFailingAndNotReady covers machines that all fail the cloud's checks. Where no node reports, all are replaced. A
// node that is not ready reports, and so does one whose Lease is fresh: their removal is limited. For a machine whose node
// has not joined yet, only the cloud says that it fails.
func TestFailingAndNotReady(t *testing.T) {
	for _, test := range []struct {
		name   string
		status corev1.ConditionStatus
		lease  time.Duration // its age; 0: there is none
		want   int
	}{
		{"ready", corev1.ConditionTrue, 0, 3},
		{"not ready, with a fresh lease", corev1.ConditionFalse, time.Second, 3},
		{"not ready", corev1.ConditionFalse, 0, 3},
		{"silent, with a fresh lease", corev1.ConditionUnknown, time.Second, 3},
		{"silent, with an old lease", corev1.ConditionUnknown, time.Hour, 10},
		{"silent", corev1.ConditionUnknown, 0, 10},
		{"not joined", "", 0, 3},
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
	may, err := b.limiter.AskFor(b.t.Context(), removals)
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

// nodeless is an API server without nodes, whatever the cache contains.
type nodeless struct{ client.Reader }

func (r nodeless) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, is := o.(*corev1.Node); is {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
	}
	return r.Reader.Get(ctx, key, o, opts...)
}

// TestFailingAndRecovered verifies that a node that the cache still shows as silent is read again. A node that has
// recovered reports, and one that is gone does not.
func TestFailingAndRecovered(t *testing.T) {
	for name, test := range map[string]struct {
		live func(client.Reader) client.Reader
		want int
	}{
		"as the cache shows": {func(api client.Reader) client.Reader { return api }, 10},
		"recovered":          {func(api client.Reader) client.Reader { return recovered{api} }, 3},
		"gone":               {func(api client.Reader) client.Reader { return nodeless{api} }, 10},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, map[string]int{"a": 10})
			b.limiter.Live = test.live(b.api)
			if removed := b.failingNodes(corev1.ConditionUnknown, 0); removed != test.want {
				t.Errorf("%d of 10 are replaced at once, want %d", removed, test.want)
			}
		})
	}
}
