package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestMetricNames verifies that each of two registries can have a Metrics, and that the names are those that
// dashboards use.
func TestMetricNames(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics := telemetry.New(registry)
	telemetry.New(prometheus.NewRegistry())
	metrics.NodeClaimsCreated.WithLabelValues(telemetry.CreatedProvisioned, "general", "false").Inc()
	metrics.NodeClaimsTerminated.WithLabelValues("general", "spot", "a").Inc()
	metrics.CloudDuration.WithLabelValues("nodeclaim.lifecycle", "Create", "kwok").Observe(1)
	for _, name := range []string{
		"karpenter_build_info", "karpenter_nodeclaims_created_total", "karpenter_nodeclaims_terminated_total",
		"karpenter_cloudprovider_duration_seconds", "karpenter_pods_startup_duration_seconds",
		"karpenter_cluster_state_synced", "karpenter_scheduler_ignored_pods_count",
	} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n != 1 {
			t.Errorf("%s: %d series, error %v; want 1", name, n, err)
		}
	}
	problems, err := testutil.GatherAndLint(registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.Contains(p.Text, `"_count" suffix`) { // upstream Karpenter's names of gauges end in _count
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	if got := len(telemetry.DurationBuckets()); got != 45 {
		t.Errorf("%d duration buckets, want 45", got)
	}
}

// TestRunningVersion verifies that the version that the linker set is exported, and no other.
func TestRunningVersion(t *testing.T) {
	registry := prometheus.NewRegistry()
	telemetry.New(registry).Running("v1.2.3")
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() != "karpenter_build_info" {
			continue
		}
		if n := len(family.GetMetric()); n != 1 || !strings.Contains(family.String(), "v1.2.3") {
			t.Errorf("%d series: %s, want one with v1.2.3", n, family)
		}
		return
	}
	t.Error("no build_info")
}

func pod(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
}

// drain returns the events that the recorder has written.
func drain(sink *events.FakeRecorder) []string {
	var got []string
	for {
		select {
		case e := <-sink.Events:
			got = append(got, e)
		default:
			return got
		}
	}
}

// TestRecorderDedupes verifies that the same event is written again only after its window, and that events of other
// pods and with other reasons are not suppressed by it.
func TestRecorderDedupes(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	sink := events.NewFakeRecorder(100)
	recorder := telemetry.NewRecorder(sink, clock)
	recorder.Emit(telemetry.Evicted(pod("a"), "Empty"), telemetry.Evicted(pod("a"), "Empty"), telemetry.Evicted(pod("b"), "Empty"))
	recorder.Emit(telemetry.FailedScheduling(pod("a"), "no pools"))
	clock.SetTime(clock.Now().Add(2 * time.Minute))
	recorder.Emit(telemetry.Evicted(pod("a"), "Empty"), telemetry.FailedScheduling(pod("a"), "no pools"))
	clock.SetTime(clock.Now().Add(3 * time.Minute))
	recorder.Emit(telemetry.FailedScheduling(pod("a"), "no pools"))
	want := []string{
		"Normal Evicted Evicted pod: Empty", "Normal Evicted Evicted pod: Empty",
		"Warning FailedScheduling Failed to schedule pod, no pools",
		"Normal Evicted Evicted pod: Empty",
		"Warning FailedScheduling Failed to schedule pod, no pools",
	}
	if diff := cmp.Diff(want, drain(sink)); diff != "" {
		t.Error(diff)
	}
	var none *telemetry.Recorder
	none.Emit(telemetry.Evicted(pod("a"), "Empty"))
}

// TestRecorderTellsChanges verifies that a changed reason of a pod is written a minute after the last event, and that
// the limit applies to many pods. The same reason waits for its window.
func TestRecorderTellsChanges(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	sink := events.NewFakeRecorder(1000)
	recorder := telemetry.NewRecorder(sink, clock)
	emit := func(later time.Duration, why string) int {
		clock.SetTime(clock.Now().Add(later))
		for i := range 150 {
			recorder.Emit(telemetry.FailedScheduling(pod(fmt.Sprint(i)), why))
		}
		return len(drain(sink))
	}
	for _, step := range []struct {
		later time.Duration
		why   string
		want  int
	}{
		{0, "no pools", 150},
		{30 * time.Second, "limit", 0},
		{30 * time.Second, "no pools", 0},
		{0, "limit", 100}, // the burst
		{time.Second, "limit", 10},
		{4 * time.Second, "limit", 40},
		{time.Minute, "limit", 0},
		{4 * time.Minute, "limit", 150},
	} {
		if got := emit(step.later, step.why); got != step.want {
			t.Errorf("%s, %s later: %d events, want %d", step.why, step.later, got, step.want)
		}
	}
}

// memory is an API server for events.
type memory struct {
	mu      sync.Mutex
	created []string
	patched int
}

func (m *memory) Create(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.created = append(m.created, e.Note)
	return e, nil
}

func (m *memory) Update(_ context.Context, e *eventsv1.Event) (*eventsv1.Event, error) { return e, nil }

func (m *memory) Patch(_ context.Context, e *eventsv1.Event, _ []byte) (*eventsv1.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.patched++
	return e, nil
}

func (m *memory) written() (created []string, patched int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.created)), m.patched
}

// TestChangedMessageIsAnotherEvent verifies, with the broadcaster that production uses, that the same message
// increments the count of the event, and that another message creates another event.
func TestChangedMessageIsAnotherEvent(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	server := &memory{}
	broadcaster := events.NewBroadcaster(server)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	if err := broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		t.Fatal(err)
	}
	defer broadcaster.Shutdown()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	recorder := telemetry.NewRecorder(broadcaster.NewRecorder(scheme, telemetry.Component), clock)
	first, second := "Failed to schedule pod, no pools", "Failed to schedule pod, the limit is reached"
	for _, step := range []struct {
		why     string
		created []string
		patched int
	}{
		{"no pools", []string{first}, 0},
		{"no pools", []string{first}, 1},
		{"the limit is reached", []string{first, second}, 1},
	} {
		recorder.Emit(telemetry.FailedScheduling(pod("a"), step.why))
		clock.SetTime(clock.Now().Add(time.Hour))
		var created []string
		var patched int
		err := wait.PollUntilContextTimeout(ctx, time.Millisecond, 10*time.Second, true, func(context.Context) (bool, error) {
			created, patched = server.written()
			return slices.Equal(created, step.created) && patched == step.patched, nil
		})
		if err != nil {
			t.Fatalf("%s: events %q and %d patches, want %q and %d", step.why, created, patched, step.created, step.patched)
		}
	}
}

// TestRecorderLimitsNominated verifies that Nominated is limited to a burst of 10 and 5 per second over all pods, and
// that the event of a pod that was limited is written the next time.
func TestRecorderLimitsNominated(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Unix(1000, 0))
	sink := events.NewFakeRecorder(100)
	recorder := telemetry.NewRecorder(sink, clock)
	emit := func() int {
		for i := range 30 {
			recorder.Emit(telemetry.Nominated(pod(fmt.Sprint(i)), "claim", ""))
		}
		return len(drain(sink))
	}
	if got := emit(); got != 10 {
		t.Errorf("first burst: %d events, want 10", got)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	if got := emit(); got != 5 {
		t.Errorf("a second later: %d events, want 5", got)
	}
}

// TestRecorderNote verifies that a note longer than the API accepts is truncated, and that a percent sign in it is
// kept.
func TestRecorderNote(t *testing.T) {
	sink := events.NewFakeRecorder(10)
	recorder := telemetry.NewRecorder(sink, testingclock.NewFakePassiveClock(time.Unix(1000, 0)))
	recorder.Emit(telemetry.FailedScheduling(pod("a"), "100%d "+strings.Repeat("é", 2000)))
	got := drain(sink)[0]
	switch {
	case len(got) > 1024+len("Warning FailedScheduling "):
		t.Errorf("len(got) is %v, want at most %v, bytes: %s", len(got), 1024+len("Warning FailedScheduling "), got)
	case !strings.HasSuffix(got, "é..."):
		t.Errorf("got is %q, want the suffix %q", got, "é...")
	case !strings.Contains(got, "100%d"):
		t.Errorf(`got lacks "100%%d", bytes: %s`, got)
	}
}

// plain is a provider without optional interfaces. Every call fails with err.
type plain struct {
	cloud.Provider
	err error
}

func (p plain) Name() string                                                      { return "plain" }
func (p plain) Terminate(context.Context, string) error                           { return p.err }
func (p plain) Machines(context.Context) ([]cloud.Machine, error)                 { return nil, p.err }
func (p plain) Launch(context.Context, *karpv1.NodeClaim) (*cloud.Machine, error) { return nil, p.err }

type withRepair struct{ plain }

func (withRepair) RepairPolicies() []cloud.RepairPolicy {
	return []cloud.RepairPolicy{{ConditionType: "Ready"}}
}

type withDrift struct{ plain }

func (withDrift) Drifted(context.Context, *karpv1.NodeClaim, *karpv1.NodePool) (string, error) {
	return "Moved", nil
}

type withBoth struct{ withDrift }

func (withBoth) RepairPolicies() []cloud.RepairPolicy { return nil }

func TestInstrumentKeepsOptionalInterfaces(t *testing.T) {
	metrics := telemetry.New(prometheus.NewRegistry())
	for _, c := range []struct {
		provider       cloud.Provider
		repairs, drift bool
	}{{plain{}, false, false}, {withRepair{}, true, false}, {withDrift{}, false, true}, {withBoth{}, true, true}} {
		got := telemetry.Instrument(c.provider, metrics, "test")
		_, repairs := got.(cloud.Repairer)
		detector, drift := got.(cloud.DriftDetector)
		if repairs != c.repairs || drift != c.drift {
			t.Errorf("%T: repairs %t, drift %t", c.provider, repairs, drift)
		}
		if drift {
			if reason, err := detector.Drifted(context.Background(), nil, nil); reason != "Moved" || err != nil {
				t.Errorf("%T: drifted %q, %v", c.provider, reason, err)
			}
		}
	}
	if n := testutil.CollectAndCount(metrics.CloudDuration); n != 1 {
		t.Errorf("%d series of IsDrifted, want 1", n)
	}
}

func TestInstrumentCountsErrors(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("asking: %w", cloud.ErrNotFound), "NodeClaimNotFoundError"},
		{fmt.Errorf("asking: %w", &cloud.InsufficientCapacityError{}), "InsufficientCapacityError"},
		{&cloud.NodeClassNotReadyError{}, "NodeClassNotReadyError"},
		{errors.New("other"), ""},
	} {
		metrics := telemetry.New(prometheus.NewRegistry())
		provider := telemetry.Instrument(plain{err: c.err}, metrics, "test")
		if err := provider.Terminate(context.Background(), "x"); !errors.Is(err, c.err) {
			t.Errorf("error %v, want %v", err, c.err)
		}
		if got := testutil.ToFloat64(metrics.CloudErrors.WithLabelValues("test", "Delete", "plain", c.want)); got != 1 {
			t.Errorf("%v: counted %v under %q, want 1", c.err, got, c.want)
		}
	}
}

// TestPasses verifies that a pass in progress is measured by the clock of its controller, and is no longer measured
// when it ends.
func TestPasses(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))
	passes := telemetry.New(prometheus.NewRegistry()).Passes
	end := passes.Begin("provisioner", clock)
	clock.SetTime(clock.Now().Add(90 * time.Second))
	if got := testutil.ToFloat64(passes); got != 90 {
		t.Errorf("a pass has been running for %v s, want 90", got)
	}
	end()
	if got := testutil.ToFloat64(passes); got != 0 {
		t.Errorf("between passes one has been running for %v s", got)
	}
}

// TestRefusedEvictionsAreReportedOncePerBudget verifies that a PodDisruptionBudget that blocks a node causes one event
// for all of its pods. Another budget, and a pod that no budget selects, have their own events.
func TestRefusedEvictionsAreReportedOncePerBudget(t *testing.T) {
	sink := events.NewFakeRecorder(10)
	recorder := telemetry.NewRecorder(sink, testingclock.NewFakePassiveClock(time.Unix(1_800_000_000, 0)))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	for _, c := range []struct {
		pod      string
		budgets  []string
		reported int
	}{{"a", []string{"web"}, 1}, {"b", []string{"web"}, 0}, {"c", []string{"db"}, 1}, {"d", nil, 1}, {"e", nil, 1}, {"e", nil, 0}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: c.pod}}
		recorder.Emit(telemetry.EvictionRefused(node, pod, "no", c.budgets, time.Minute))
		if got := len(sink.Events); got != c.reported {
			t.Errorf("pod %s of budgets %v: %d events, want %d", c.pod, c.budgets, got, c.reported)
		}
		for len(sink.Events) > 0 {
			<-sink.Events
		}
	}
}
