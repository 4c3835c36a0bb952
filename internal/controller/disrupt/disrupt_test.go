package disrupt_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/disrupt"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// newLoop returns a loop over the cluster.
func newLoop(w *loopcluster.Cluster) *disrupt.Loop {
	return &disrupt.Loop{
		Snapshot: w.Snapshot, Propose: func(s *model.Snapshot, _ bool) disruption.Proposal {
			return disruption.Propose(s, disruption.Options{})
		}, Writer: w, Timers: controller.Production(), Clock: w.Clock,
		Report: disrupt.Reporter{Metrics: telemetry.New(prometheus.NewRegistry())},
	}
}

func TestDisruptLife(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("a", model.Initialized)
	w.Node("b", model.Initialized)
	w.Bound("web", "b")
	d := newLoop(w)
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "")
	w.Clock.Step(30 * time.Second)
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "set disruption reason Empty on claim c-a\ntaint node a\nwrite command ID (proposed) on claim c-a")
	w.Clock.Step(time.Second)
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "delete claim c-a")
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "")
	delete(w.Nodes, "c-a")
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "")
	if n := testutil.ToFloat64(d.Report.Metrics.DisruptionDecisions.WithLabelValues("delete", "empty", "empty")); n != 1 {
		t.Errorf("%v decisions, want 1", n)
	}
	if n := testutil.ToFloat64(d.Report.Metrics.DisruptionDecisionsByPool.WithLabelValues("p", "delete", "empty", "empty")); n != 1 {
		t.Errorf("%v decisions about pool p, want 1", n)
	}
	w.Node("broken", model.Initialized).Ready = false
	d.Tick(t.Context())
	if n := testutil.ToFloat64(d.Report.Metrics.NodePoolsConsumingBudgets.WithLabelValues("p", "Empty")); n != 1 {
		t.Errorf("%v nodes consume the budgets, want the one that is not ready", n)
	}
	if n := testutil.ToFloat64(d.Report.Metrics.NodePoolsAllowedDisruptions.WithLabelValues("p", "Empty")); n != 1 {
		t.Errorf("%v nodes may be disrupted, want the 1 that remains", n)
	}
}

// TestDisruptResumes verifies that a new process continues from the state on the claims, wherever the old one
// stopped, also with failing writes.
func TestDisruptResumes(t *testing.T) {
	for _, refused := range []string{"", "write command", "set disruption", "taint node", "delete claim"} {
		t.Run("refused: "+refused, func(t *testing.T) {
			w := loopcluster.New(t)
			w.Node("a", model.Initialized)
			w.Clock.Step(time.Minute)
			w.Refuse = refused
			for range 3 {
				newLoop(w).Tick(t.Context()) // a new process each time
				w.Clock.Step(2 * time.Second)
			}
			w.Refuse = ""
			for range 3 {
				d := newLoop(w)
				d.Tick(t.Context())
				w.Clock.Step(2 * time.Second)
				d.Tick(t.Context())
			}
			if !w.Nodes["c-a"].Deleting {
				t.Errorf("the empty node is kept; actions:\n%s", w.Took())
			}
		})
	}
}

func TestDisruptRollsBackAndCleansUp(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("a", model.Initialized)
	orphan := w.Node("orphan", model.Initialized)
	orphan.Disrupted = true
	w.Bound("web", "orphan")
	w.Clock.Step(time.Minute)
	d := newLoop(w)
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "clear the disruption reason on claim c-orphan\nset disruption reason Empty on claim c-a\ntaint node a\nuntaint node orphan\nwrite command ID (proposed) on claim c-a")
	w.Bound("late", "a") // kube-scheduler had decided before it saw the taint
	w.Clock.Step(2 * time.Second)
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "clear the command on claim c-a\nclear the disruption reason on claim c-a\nuntaint node a")
	if n := testutil.ToFloat64(d.Report.Metrics.DisruptionQueueFailures.WithLabelValues("delete", "empty", "empty")); n != 1 {
		t.Errorf("%v commands rolled back, want 1", n)
	}
}

func TestDisruptSaysWhatKeepsNodes(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("a", model.Initialized).DoNotDisrupt = true
	w.Node("b", model.Initialized)
	w.Node("c", model.Initialized)
	w.Pool.Budgets = []model.Budget{{Count: 0}}
	w.Clock.Step(time.Minute)
	d := newLoop(w)
	sink := events.NewFakeRecorder(20)
	d.Report.Recorder = telemetry.NewRecorder(sink, w.Clock)
	d.Report.Why = func(_ *model.Snapshot, v plan.Verdict) string { return "because of " + v.Node }
	d.Tick(t.Context())
	d.Tick(t.Context()) // no change
	wanted := []string{
		"Normal DisruptionBlocked because of a", // on the node
		"Normal DisruptionBlocked because of a", // on the claim
		"Normal DisruptionBlocked No allowed disruptions for disruption reason Empty due to blocking budget",
		"Normal Unconsolidatable NodeProtected: node a is protected by the annotation karpenter.sh/do-not-disrupt",
		"Normal Unconsolidatable NodeProtected: node a is protected by the annotation karpenter.sh/do-not-disrupt",
	}
	if diff := cmp.Diff(wanted, loopcluster.Emitted(sink)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestDisruptWakesWhenANodeMayGo verifies that the loop does not wait for its poll interval when it knows when a node
// may be removed.
func TestDisruptWakesWhenANodeMayGo(t *testing.T) {
	for name, change := range map[string]func(*loopcluster.Cluster, *model.NodeSpec){
		"consolidateAfter": func(w *loopcluster.Cluster, _ *model.NodeSpec) { w.Pool.ConsolidateAfter = 13 * time.Second },
		"no pod has come for a minute": func(w *loopcluster.Cluster, n *model.NodeSpec) {
			w.Pool.ConsolidateAfter, n.PodsSentAt = 0, loopcluster.Noon.Add(13*time.Second-reserve.Arrival)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := loopcluster.New(t)
			change(w, w.Node("a", model.Initialized))
			passes := loopcluster.NewTicks()
			d := newLoop(w)
			d.Propose = func(snap *model.Snapshot, _ bool) disruption.Proposal {
				passes.Add(w.Clock.Now())
				return disruption.Propose(snap, disruption.Options{})
			}
			asleep := loopcluster.Started(t, w.Clock, d.Start)
			for _, pause := range []time.Duration{10, 3} { // the poll interval, then the node's own time
				asleep()
				before := w.Clock.Now()
				w.Clock.Step(pause * time.Second)
				if at := passes.Next(t); at.Sub(before) != pause*time.Second {
					t.Errorf("pass after %s, want %ds", at.Sub(before), pause)
				}
			}
			asleep()
			w.Clock.Step(time.Second) // command retry; no decision is needed
			asleep()
			w.Lock()
			defer w.Unlock()
			if !w.Nodes["c-a"].Deleting {
				t.Error("the node is kept")
			}
		})
	}
}

// TestDisruptNotesWhoIsToCome verifies that for a node that a user deletes, for which there is no command, the loop
// records the destination of its pods.
func TestDisruptNotesWhoIsToCome(t *testing.T) {
	w := loopcluster.New(t)
	w.Pool.ConsolidateAfter = -1
	w.Node("leaving", model.Initialized).Deleting = true
	w.Bound("web", "leaving")
	w.Node("bought", model.Initialized).LaunchedFor = model.ParsePodRefs("uid-web")
	d := newLoop(w)
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "note on claim c-bought that pods are sent to it")
	w.Clock.Step(10 * time.Second)
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "")
	w.Clock.Step(30 * time.Second)
	d.Tick(t.Context())
	loopcluster.Expect(t, w, "note on claim c-bought that pods are sent to it")
}

// TestDisruptRestsFromTheSearch verifies that after a long search the loop does not search again for a while,
// whatever changes. Decisions without the search continue, and the search runs when the pause is over.
func TestDisruptRestsFromTheSearch(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("a", model.Initialized)
	d := newLoop(w)
	var searched []bool
	d.Propose = func(snap *model.Snapshot, search bool) disruption.Proposal {
		searched = append(searched, search)
		if search {
			w.Clock.Step(2 * time.Second)
		}
		return disruption.Propose(snap, disruption.Options{NoSearch: !search})
	}
	for _, pass := range []struct {
		name  string
		after time.Duration
		come  string
		want  []bool
	}{
		{"the first pass", 0, "", []bool{true}},
		{"nothing changed", time.Second, "", nil},
		{"a node came", time.Second, "b", []bool{false}},
		{"another came", 10 * time.Second, "c", []bool{false}},
		{"the rest is over", 10 * time.Second, "", []bool{true}},
	} {
		searched = nil
		w.Clock.Step(pass.after)
		if pass.come != "" {
			w.Node(pass.come, model.Initialized)
		}
		d.Tick(t.Context())
		if diff := cmp.Diff(pass.want, searched); diff != "" {
			t.Errorf("%s: searched (-want +got):\n%s", pass.name, diff)
		}
	}
}
