package loop_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller/loop"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestProvisionEndsALoop: a pod is preempted on each node that is launched for it, and made again. After four launches the
// loop waits, tells why on the pod, and counts it.
func TestProvisionEndsALoop(t *testing.T) {
	w := newWorld()
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		decided := &plan.Provision{}
		for _, g := range snap.Groups {
			for _, pod := range g.Pods {
				name := plan.ClaimName("p", "pool-uid", []*model.Pod{pod}, func(string) bool { return false })
				decided.Claims = append(decided.Claims, plan.NewClaim{Name: name, Pool: "p", PoolUID: "pool-uid", Pods: []*model.Pod{pod}})
				decided.Order = append(decided.Order, pod)
			}
		}
		return decided
	})
	sink := events.NewFakeRecorder(100)
	p.Recorder, p.Refusal = telemetry.NewRecorder(sink, w.clock), explain.Refusal
	p.Left = &loop.Departures{}
	created := 0
	for i := range 30 { // ten seconds each
		pod := fmt.Sprintf("web-%d", i)
		w.pending(pod, "")
		w.pods["uid-"+pod].Controller = model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}
		p.Tick(t.Context())
		created += strings.Count(w.took(), "create claim")
		for claim, n := range w.nodes {
			n.Stage = model.Initialized
			w.pods["uid-"+pod].State, w.pods["uid-"+pod].Node = model.Bound, n.Name
			w.clock.Step(5 * time.Second)
			p.Tick(t.Context())
			p.Left.Add(model.Departure{UID: "uid-" + pod, Namespace: "default", Name: pod, Node: n.Name, Ran: 3 * time.Second, Preempted: true,
				Controller: model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web"}})
			delete(w.nodes, claim)
		}
		delete(w.pods, "uid-"+pod)
		w.clock.Step(5 * time.Second)
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
			t.Errorf("no event says %q:\n%s", part, told)
		}
	}
}
