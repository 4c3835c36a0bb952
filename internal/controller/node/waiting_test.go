package node

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testingclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// drainWorld is a node that is being drained since now, its log and its events.
type drainWorld struct {
	*Reconciler
	node  *corev1.Node
	clock *testingclock.FakePassiveClock
	sink  *events.FakeRecorder
	lines []map[string]any
}

func drainOf(t *testing.T, objects ...client.Object) *drainWorld {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, karpv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &drainWorld{clock: testingclock.NewFakePassiveClock(now), sink: events.NewFakeRecorder(100)}
	w.node = on("n", corev1.ConditionTrue, map[string]string{karpv1.LabelNodePool: "web"})
	w.node.DeletionTimestamp, w.node.Finalizers = &metav1.Time{Time: now}, []string{karpv1.FinalizerTermination}
	w.Reconciler = &Reconciler{
		Client:   fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, w.node)...).Build(),
		Timers:   controller.Production(),
		Clock:    w.clock,
		Metrics:  telemetry.New(prometheus.NewRegistry()),
		Recorder: telemetry.NewRecorder(w.sink, w.clock),
	}
	log := funcr.NewJSON(func(line string) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Errorf("reading the log line %s: %v", line, err)
		}
		delete(fields, "level")
		w.lines = append(w.lines, fields)
	}, funcr.Options{})
	w.evictor = newEvictor(w.Reconciler, log)
	t.Cleanup(w.evictor.queue.ShutDown)
	return w
}

// examine examines the drain once at a time after its beginning, with the pods of its node.
func (w *drainWorld) examine(t *testing.T, after time.Duration, pods ...corev1.Pod) {
	t.Helper()
	w.clock.SetTime(now.Add(after))
	l := &termination{node: w.node, pods: pods, now: now.Add(after)}
	w.enqueue(ctrl.LoggerInto(t.Context(), w.evictor.log), l, remaining(pods, w.policy(l)))
}

// TestWaitingDrainIsLogged verifies that the log names a pod that keeps a drain waiting, from a minute on and every 15
// minutes.
func TestWaitingDrainIsLogged(t *testing.T) {
	w := drainOf(t)
	kept := pod("kept", func(p *corev1.Pod) { p.Annotations = map[string]string{karpv1.AnnotationDoNotDisrupt: "true"} })
	for minute := range 40 {
		w.examine(t, time.Duration(minute)*time.Minute+30*time.Second, kept)
	}
	var waited []any
	for _, line := range w.lines {
		reason, _ := line["reason"].(string)
		if line["node"] != "n" || line["nodePool"] != "web" || !strings.Contains(reason, kept.Namespace+"/kept forbids it") {
			t.Errorf("the line is %v, want the node, its NodePool and the pod", line)
		}
		waited = append(waited, line["waited"])
	}
	if diff := cmp.Diff([]any{"1m30s", "16m30s", "31m30s"}, waited); diff != "" {
		t.Errorf("lines after (-want +got):\n%s", diff)
	}
}

// TestRefusedEvictionIsLogged verifies that the log and the events name the pod whose eviction a budget refuses, the
// budget, and the duration of the drain, and that other pods of the budget add none.
func TestRefusedEvictionIsLogged(t *testing.T) {
	labeled := func(p *corev1.Pod) { p.Labels, p.Spec.NodeName = map[string]string{"app": "web"}, "n" }
	first, second := pod("first", labeled), pod("second", labeled)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: first.Namespace, Name: "web"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}
	w := drainOf(t, budget)
	for minute := range 20 {
		w.clock.SetTime(now.Add(time.Duration(minute)*time.Minute + 30*time.Second))
		w.evictor.reportRefusal(t.Context(), &first, errors.New("would violate the budget"))
		w.evictor.reportRefusal(t.Context(), &second, errors.New("would violate the budget"))
		w.examine(t, w.clock.Now().Sub(now), first, second)
	}
	line := func(waited string) map[string]any {
		return map[string]any{"logger": "", "msg": "a drain waits for a pod that may not be evicted", "node": "n", "nodePool": "web",
			"pod": first.Namespace + "/first", "podDisruptionBudgets": []any{"web"}, "reason": "would violate the budget", "waited": waited}
	}
	if diff := cmp.Diff([]map[string]any{line("1m30s"), line("16m30s")}, w.lines); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	var said []string
	for len(w.sink.Events) > 0 {
		if e := <-w.sink.Events; strings.Contains(e, "evicting pod") {
			said = append(said, e)
		}
	}
	want := "Warning FailedDraining Failed to drain node, evicting pod " + first.Namespace +
		"/first: would violate the budget (PodDisruptionBudgets of the pod: web); the drain has lasted "
	if diff := cmp.Diff([]string{want + "1m30s", want + "11m30s"}, said); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestDirectDeletionIsLogged verifies that the log has a line when a node was deleted directly, and none when its claim
// was.
func TestDirectDeletionIsLogged(t *testing.T) {
	for _, direct := range []bool{true, false} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{karpv1.LabelNodePool: "web"},
			Finalizers: []string{karpv1.FinalizerTermination}}}
		w := drainOf(t, claim)
		if !direct {
			claim.DeletionTimestamp = &metav1.Time{Time: now}
		}
		if _, err := w.removeClaim(ctrl.LoggerInto(t.Context(), w.evictor.log), &termination{node: w.node, claim: claim, now: now}); err != nil {
			t.Fatal(err)
		}
		got := slices.ContainsFunc(w.lines, func(line map[string]any) bool {
			return line["node"] == "n" && line["nodeClaim"] == "c" && line["nodePool"] == "web"
		})
		if got != direct || len(w.lines) > 1 {
			t.Errorf("deleted directly %t: the lines are %v", direct, w.lines)
		}
	}
}
