package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller/loop"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestProvisionEndsALoop covers a pod that is preempted on each node that is launched for it, and created again.
// After four launches the loop waits, emits an event with the reason on the pod, and counts it.
func TestProvisionEndsALoop(t *testing.T) {
	w := newWorld()
	p := w.provision(claimForEachPod)
	sink := events.NewFakeRecorder(100)
	p.Recorder, p.Refusal = telemetry.NewRecorder(sink, w.clock), explain.Refusal
	p.Left = &loop.Departures{}
	created := 0
	for i := range 30 { // ten seconds each
		w.preempts(t, p, fmt.Sprintf("web-%d", i))
		created += strings.Count(w.took(), "create claim")
	}
	if created < 5 || created > 7 {
		t.Errorf("%d claims were created in five minutes, want four, and one after each of two or three pauses", created)
	}
	if n := testutil.ToFloat64(p.Metrics.SchedulerLaunchesHeld.WithLabelValues("p")); n < 2 || n > 3 {
		t.Errorf("%v pauses were counted, want 2 or 3", n)
	}
	told := strings.Join(emitted(sink), "\n")
	for _, part := range []string{"nodes launched for pods of ReplicaSet default/web led to nothing", "was preempted on node", "the next launch waits until 2026-05-01T12:"} {
		if !strings.Contains(told, part) {
			t.Errorf("no event contains %q:\n%s", part, told)
		}
	}
}

// TestProvisionTellsOfPauses verifies what is logged when the start or the end of a pause cannot be written to its
// NodePool.
func TestProvisionTellsOfPauses(t *testing.T) {
	w := newWorld()
	p := w.provision(func(*model.Snapshot) *plan.Provision { return &plan.Provision{} })
	var lines []string
	p.Log = funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	said := func(words string) bool {
		text := strings.Join(lines, "\n")
		lines = nil
		return strings.Contains(text, words)
	}
	w.pool.Holds = []model.LaunchHold{{Owner: "web", Name: "ReplicaSet default/web", Failures: 4, Until: w.clock.Now().Add(10 * time.Minute)}}
	w.pending("web-0", "")
	pod := w.pods["uid-web-0"]
	pod.Controller = model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
	p.Tick(t.Context())
	w.node("here", model.Initialized)
	pod.State, pod.Node = model.Bound, "here"
	p.Tick(t.Context())
	w.refuse = "wait no longer"
	w.clock.Step(2 * time.Minute)
	p.Tick(t.Context())
	if len(w.pool.Holds) != 1 || !said("taking a pause of launches that is over off its NodePool") {
		t.Errorf("holds %v; the log does not report that an ended pause could not be removed", w.pool.Holds)
	}
	w.refuse = ""
	w.clock.Step(time.Minute)
	p.Tick(t.Context())
	if len(w.pool.Holds) != 0 || len(lines) != 0 {
		t.Errorf("holds %v, log %v; want neither", w.pool.Holds, lines)
	}
}

// TestProvisionTellsOfUnwrittenPauses verifies that pauses that are in memory only are logged once, and that their
// end is too.
func TestProvisionTellsOfUnwrittenPauses(t *testing.T) {
	w := newWorld()
	p := w.provision(claimForEachPod)
	p.Left = &loop.Departures{}
	var lines []string
	p.Log = funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	w.refuse = "note on pool"
	for i := range 5 {
		w.preempts(t, p, fmt.Sprintf("web-%d", i))
	}
	text := strings.Join(lines, "\n")
	if strings.Count(text, "pauses of launches are in memory only") != 1 || !strings.Contains(text, "noting on a NodePool that launches wait") {
		t.Errorf("the log does not report once that a pause is in memory only, and why:\n%s", text)
	}
	lines, w.refuse = nil, ""
	p.Tick(t.Context())
	text = strings.Join(lines, "\n")
	if len(w.pool.Holds) != 1 || strings.Contains(text, "pauses of launches are in memory only") || !strings.Contains(text, "are on their NodePools, or over") {
		t.Errorf("holds %v; the log does not report that the pause is written:\n%s", w.pool.Holds, text)
	}
}

// claimForEachPod plans one claim per pod.
func claimForEachPod(snap *model.Snapshot) *plan.Provision {
	decided := &plan.Provision{}
	for _, g := range snap.Groups {
		for _, pod := range g.Pods {
			name := plan.ClaimName("p", "pool-uid", []*model.Pod{pod}, func(string) bool { return false })
			decided.Claims = append(decided.Claims, plan.NewClaim{Name: name, Pool: "p", PoolUID: "pool-uid", Pods: []*model.Pod{pod}})
			decided.Order = append(decided.Order, pod)
		}
	}
	return decided
}

// preempts simulates a round of ten seconds: a pod of the ReplicaSet web is created, is bound to the node that is
// launched for it, is preempted there, and the node is removed.
func (w *world) preempts(t *testing.T, p *loop.Provision, pod string) {
	t.Helper()
	owner := model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
	w.pending(pod, "")
	w.pods["uid-"+pod].Controller = owner
	p.Tick(t.Context())
	for claim, n := range w.nodes {
		n.Stage = model.Initialized
		w.pods["uid-"+pod].State, w.pods["uid-"+pod].Node = model.Bound, n.Name
		w.clock.Step(5 * time.Second)
		p.Tick(t.Context())
		p.Left.Add(model.Departure{UID: "uid-" + pod, Namespace: "default", Name: pod, Node: n.Name, Ran: 3 * time.Second, Preempted: true, Controller: owner})
		delete(w.nodes, claim)
	}
	delete(w.pods, "uid-"+pod)
	w.clock.Step(5 * time.Second)
}
