package node

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// queueAt returns an evictor without workers, and its clock.
func queueAt(t *testing.T) (*evictor, *testingclock.FakePassiveClock) {
	clock := testingclock.NewFakePassiveClock(now)
	e := newEvictor(&Reconciler{Timers: controller.Production(), Clock: clock}, logr.Discard())
	t.Cleanup(e.queue.ShutDown)
	return e, clock
}

// settle takes the next target, as a worker does after success.
func settle(e *evictor) {
	item, _ := e.queue.Get()
	e.queue.Done(item)
	e.orders[item].doneAt = e.r.Clock.Now()
}

// TestAddOnce verifies that a pod is evicted once, however often the drain adds it, and again if it still runs when
// the cache must show its end.
func TestAddOnce(t *testing.T) {
	e, clock := queueAt(t)
	p := pod("p")
	for range 3 {
		e.add(&p, evictionOrder{node: "n"})
	}
	if n := e.queue.Len(); n != 1 {
		t.Fatalf("%d in the queue, want 1", n)
	}
	settle(e)
	e.add(&p, evictionOrder{node: "n"})
	if n := e.queue.Len(); n != 0 {
		t.Errorf("%d in the queue for a pod that was just evicted, want 0", n)
	}
	clock.SetTime(now.Add(e.r.Timers.WriteVisible))
	e.add(&p, evictionOrder{node: "n"})
	if n := e.queue.Len(); n != 1 {
		t.Errorf("%d in the queue for a pod that was evicted and still runs, want 1", n)
	}
	other := pod("p")
	other.UID = "another"
	e.add(&other, evictionOrder{node: "n"})
	if n := e.queue.Len(); n != 2 {
		t.Errorf("%d in the queue with another pod of the same name, want 2", n)
	}
}

// TestAddInAHurry verifies that a pod that a budget protects is retried with backoff, and that it does not wait for
// its backoff at the deadline. Deadlines only become earlier.
func TestAddInAHurry(t *testing.T) {
	e, _ := queueAt(t)
	p := pod("p")
	e.add(&p, evictionOrder{deadline: now.Add(time.Hour)})
	item, _ := e.queue.Get()
	for range 20 {
		e.queue.AddRateLimited(item)
	}
	e.queue.Done(item)
	e.add(&p, evictionOrder{deadline: now.Add(2 * time.Hour)})
	e.add(&p, evictionOrder{})
	if got := e.order(item).deadline; !got.Equal(now.Add(time.Hour)) {
		t.Errorf("deadline %v, want the first", got)
	}
	if tries := e.queue.NumRequeues(item); tries != 20 {
		t.Errorf("%d attempts remembered, want 20", tries)
	}
	e.add(&p, evictionOrder{deadline: now.Add(time.Minute), forced: true})
	if n, tries := e.queue.Len(), e.queue.NumRequeues(item); n != 1 || tries != 0 {
		t.Errorf("%d in the queue, %d attempts remembered; want it there at once, as if new", n, tries)
	}
	if got := e.order(item); !got.deadline.Equal(now.Add(time.Minute)) || !got.forced {
		t.Errorf("%+v, want the earlier deadline, and hurry", got)
	}
	again, _ := e.queue.Get()
	e.queue.Done(again)
	e.add(&p, evictionOrder{deadline: now.Add(time.Minute), forced: true})
	if n := e.queue.Len(); n != 0 {
		t.Errorf("%d in the queue, want the hurry to count once", n)
	}
}

// TestStaleCache verifies that a deleted pod is not deleted, reported and counted again because the cache does not
// show it yet.
func TestStaleCache(t *testing.T) {
	p := pod("p")
	p.UID, p.Finalizers = "p", []string{"example.com/kubelet"} // it needs time to end
	p.Spec.TerminationGracePeriodSeconds = new(int64(48 * 60 * 60))
	start := time.Now() // of the API server
	deadline := start.Add(24 * time.Hour)
	live := fake.NewClientBuilder().WithObjects(&p).Build()
	deleted := 0
	cached := interceptor.NewClient(live, interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
			p.DeepCopyInto(object.(*corev1.Pod))
			return nil
		},
		Delete: func(ctx context.Context, api client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			deleted++
			return api.Delete(ctx, object, options...)
		},
	})
	metrics, clock := telemetry.New(prometheus.NewRegistry()), testingclock.NewFakePassiveClock(start)
	r := &Reconciler{
		Client: cached, Live: live, Timers: controller.Production(), Metrics: metrics, Clock: clock,
		Recorder: telemetry.NewRecorder(events.NewFakeRecorder(10), clock),
	}
	e := newEvictor(r, logr.Discard())
	t.Cleanup(e.queue.ShutDown)
	for _, o := range []evictionOrder{{reason: "r", deadline: deadline}, {reason: "r", deadline: deadline, forced: true}} {
		e.add(&p, o)
		e.next(t.Context())
	}
	clock.SetTime(start.Add(e.r.Timers.WriteVisible))
	e.add(&p, evictionOrder{reason: "r", deadline: deadline, forced: true})
	e.next(t.Context())
	if counted := testutil.ToFloat64(metrics.PodsDrained.WithLabelValues("r")); counted != 1 || deleted != 1 {
		t.Errorf("the pod was deleted %d times and counted %v times, want once", deleted, counted)
	}
}

// TestAddForgets verifies that the number of remembered targets is bounded.
func TestAddForgets(t *testing.T) {
	e, clock := queueAt(t)
	for i := range evictSweep {
		p := pod(string(rune('a'+i%26)) + time.Duration(i).String())
		e.add(&p, evictionOrder{})
		settle(e)
	}
	clock.SetTime(now.Add(time.Minute))
	last := pod("last")
	e.add(&last, evictionOrder{})
	if n := len(e.orders); n != 1 {
		t.Errorf("%d remembered, want 1", n)
	}
}

func statusOf(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

func TestCodeAndRefused(t *testing.T) {
	for _, test := range []struct {
		err     error
		want    int
		refused bool
	}{
		{nil, http.StatusOK, false}, {errors.New("no connection"), 0, false},
		{fmt.Errorf("come back later: %w", context.DeadlineExceeded), 0, true},
		{apierrors.NewTooManyRequests("a budget says no", 0), http.StatusTooManyRequests, true},
		{statusOf(500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."), 500, true},
		{statusOf(500, "etcd is down"), 500, false},
		{statusOf(403, "DisruptedPods map too big"), 403, true},
		{statusOf(404, "not found"), 404, false},
	} {
		if got := code(test.err); got != test.want || refused(test.err) != test.refused {
			t.Errorf("%v: %d, refused %v; want %d, %v", test.err, got, refused(test.err), test.want, test.refused)
		}
	}
}

// TestSaid verifies that the message about a refusal contains the budget's name and numbers.
func TestSaid(t *testing.T) {
	err := apierrors.NewTooManyRequests("Cannot evict pod.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause,
		Message: "The disruption budget web needs 3 healthy pods and has 3 currently"}}
	if diff := cmp.Diff("Cannot evict pod. The disruption budget web needs 3 healthy pods and has 3 currently",
		responseText(err)); diff != "" {
		t.Error(diff)
	}
	if got := responseText(errors.New("no connection")); got != "no connection" {
		t.Error(got)
	}
}

func TestBudgetsOf(t *testing.T) {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}}}
	budget := func(name string, selector *metav1.LabelSelector) policyv1.PodDisruptionBudget {
		return policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: policyv1.PodDisruptionBudgetSpec{Selector: selector}}
	}
	got := budgetsOf(&p, []policyv1.PodDisruptionBudget{
		budget("none", nil), budget("all", &metav1.LabelSelector{}),
		budget("web", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}),
		budget("other", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}),
		budget("broken", &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}}),
	})
	if diff := cmp.Diff([]string{"all", "web"}, got); diff != "" {
		t.Error(diff)
	}
}
