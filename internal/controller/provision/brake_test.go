package provision_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// TestProvisionEndsALoop covers a pod that is preempted on each node that is launched for it, and created again.
// After four launches the loop waits, emits an event with the reason on the pod, and counts it.
func TestProvisionEndsALoop(t *testing.T) {
	w := loopcluster.New()
	p := newLoop(w, claimForEachPod)
	sink := events.NewFakeRecorder(100)
	p.Report.Recorder, p.Report.Refusal = telemetry.NewRecorder(sink, w.Clock), explain.Refusal
	p.Left = &provision.Departures{}
	created := 0
	for i := range 30 { // ten seconds each
		preempts(t, w, p, fmt.Sprintf("web-%d", i))
		created += strings.Count(w.Took(), "create claim")
	}
	if created < 5 || created > 7 {
		t.Errorf("%d claims were created in five minutes, want four, and one after each of two or three pauses", created)
	}
	if n := testutil.ToFloat64(p.Report.Metrics.SchedulerLaunchesHeld.WithLabelValues("p")); n < 2 || n > 3 {
		t.Errorf("%v pauses were counted, want 2 or 3", n)
	}
	told := strings.Join(loopcluster.Emitted(sink), "\n")
	for _, part := range []string{"nodes launched for pods of ReplicaSet default/web had no effect",
		"was preempted on node", "the next launch waits until 2026-05-01T12:"} {
		if !strings.Contains(told, part) {
			t.Errorf("no event contains %q:\n%s", part, told)
		}
	}
}

// TestProvisionTellsOfPauses verifies what is logged when the start or the end of a pause cannot be written to its
// NodePool.
func TestProvisionTellsOfPauses(t *testing.T) {
	w := loopcluster.New()
	p := newLoop(w, func(*model.Snapshot) *plan.Provision { return &plan.Provision{} })
	var lines []string
	p.Report.Log = funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	said := func(words string) bool {
		text := strings.Join(lines, "\n")
		lines = nil
		return strings.Contains(text, words)
	}
	w.Pool.Holds = []model.LaunchHold{{Owner: "web", Name: "ReplicaSet default/web", Failures: 4, Until: w.Clock.Now().Add(10 * time.Minute)}}
	w.Pending("web-0", "")
	pod := w.Pods["uid-web-0"]
	pod.Controller = model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
	p.Tick(t.Context())
	w.Node("here", model.Initialized)
	pod.State, pod.Node = model.Bound, "here"
	p.Tick(t.Context())
	w.Refuse = "wait no longer"
	w.Clock.Step(2 * time.Minute)
	p.Tick(t.Context())
	if len(w.Pool.Holds) != 1 || !said("removing an expired pause of launches from its NodePool") {
		t.Errorf("holds %v; the log does not report that an ended pause could not be removed", w.Pool.Holds)
	}
	w.Refuse = ""
	w.Clock.Step(time.Minute)
	p.Tick(t.Context())
	if len(w.Pool.Holds) != 0 || len(lines) != 0 {
		t.Errorf("holds %v, log %v; want neither", w.Pool.Holds, lines)
	}
}

// TestProvisionTellsOfUnwrittenPauses verifies that pauses that are in memory only are logged once, and that their
// end is too.
func TestProvisionTellsOfUnwrittenPauses(t *testing.T) {
	w := loopcluster.New()
	p := newLoop(w, claimForEachPod)
	p.Left = &provision.Departures{}
	var lines []string
	p.Report.Log = funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	w.Refuse = "note on pool"
	for i := range 5 {
		preempts(t, w, p, fmt.Sprintf("web-%d", i))
	}
	text := strings.Join(lines, "\n")
	if strings.Count(text, "pauses of launches are in memory only") != 1 || !strings.Contains(text,
		"recording a pause of launches on its NodePool") {
		t.Errorf("the log does not report once that a pause is in memory only, and why:\n%s", text)
	}
	lines, w.Refuse = nil, ""
	p.Tick(t.Context())
	text = strings.Join(lines, "\n")
	switch {
	case len(w.Pool.Holds) != 1:
		t.Errorf("len(w.Pool.Holds) is %v, want 1, holds %v", len(w.Pool.Holds), w.Pool.Holds)
	case strings.Contains(text, "pauses of launches are in memory only"):
		t.Errorf("text contains \"pauses of launches are in memory only\", the log does not report that the pause is written:\n%s", text)
	case !strings.Contains(text, "are written to their NodePools, or expired"):
		t.Errorf("text lacks \"are written to their NodePools, or expired\", the log does not report that the pause is written:\n%s", text)
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
func preempts(t *testing.T, w *loopcluster.Cluster, p *provision.Loop, pod string) {
	t.Helper()
	owner := model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
	w.Pending(pod, "")
	w.Pods["uid-"+pod].Controller = owner
	p.Tick(t.Context())
	for claim, n := range w.Nodes {
		n.Stage = model.Initialized
		w.Pods["uid-"+pod].State, w.Pods["uid-"+pod].Node = model.Bound, n.Name
		w.Clock.Step(5 * time.Second)
		p.Tick(t.Context())
		p.Left.Add(model.Departure{UID: "uid-" + pod, Namespace: "default", Name: pod, Node: n.Name, Ran: 3 * time.Second,
			Preempted: true, Controller: owner})
		delete(w.Nodes, claim)
	}
	delete(w.Pods, "uid-"+pod)
	w.Clock.Step(5 * time.Second)
}
