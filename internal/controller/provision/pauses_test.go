package provision_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// TestProvisionEndsALoop covers a pod that is preempted on each node that is launched for it, and created again.
// After four launches the loop waits, and emits an event with the reason on the pod.
func TestProvisionEndsALoop(t *testing.T) {
	w := loopcluster.New(t)
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
	emitted := strings.Join(loopcluster.Emitted(sink), "\n")
	for _, part := range []string{"launches for ReplicaSet default/web are paused until 2026-05-01T12:",
		"was preempted on node", "kubectl annotate nodepool p karpenter-go.github.io/pauses-"} {
		if !strings.Contains(emitted, part) {
			t.Errorf("no event contains %q:\n%s", part, emitted)
		}
	}
}

// TestProvisionReportsUnwrittenPauses verifies that a pause that cannot be written is logged, and has effect.
func TestProvisionReportsUnwrittenPauses(t *testing.T) {
	w := loopcluster.New(t)
	p := newLoop(w, claimForEachPod)
	p.Left = &provision.Departures{}
	var lines []string
	p.Report.Log = funcr.NewJSON(func(line string) { lines = append(lines, line) }, funcr.Options{})
	w.Refuse = "note failure"
	created := 0
	for i := range 6 {
		preempts(t, w, p, fmt.Sprintf("web-%d", i))
		created += strings.Count(w.Took(), "create claim")
	}
	if created != 4 || len(w.Pool.Pauses) > 0 {
		t.Errorf("%d claims were created, want four; pauses %v", created, w.Pool.Pauses)
	}
	if text := strings.Join(lines, "\n"); !strings.Contains(text, "recording the outcome of launches on their NodePool") {
		t.Errorf("the log does not report that a pause cannot be written:\n%s", text)
	}
}

// claimForEachPod plans one claim per pod.
func claimForEachPod(snap *model.Snapshot) *plan.Provision {
	decided := &plan.Provision{}
	for _, g := range snap.Groups {
		for _, pod := range g.Pods {
			name := plan.ClaimName(&model.PoolSpec{Name: "p", UID: "pool-uid"}, []*model.Pod{pod}, func(string) bool { return false })
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
