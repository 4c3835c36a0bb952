package disrupt_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller/disrupt"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// shop is the catalog with the offerings of the nodes a and b.
var shop = &model.Catalog{Types: []model.InstanceType{{Name: "t",
	Offerings: []model.Offering{{Zone: "z", CapacityType: "spot", Price: model.Nano, Available: true}}}},
	WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}

// consolidating returns a loop over the nodes a and b of a Balanced pool, each with a pod. It proposes once to
// replace a.
func consolidating(w *loopcluster.Cluster) *loopAndEvents {
	w.Pool.Policy, w.Pool.ConsolidateAfter, w.Pool.Catalog = "Balanced", 0, shop
	for _, name := range []string{"a", "b"} {
		w.Node(name, model.Initialized).Labels = map[string]string{model.LabelPool: "p", model.LabelType: "t",
			model.LabelZone: "z", model.LabelCapacityType: "spot"}
		w.Bound("on-"+name, name)
		w.Pods["uid-on-"+name].EvictionCost = 1000
	}
	d := newLoop(w)
	l := &loopAndEvents{Loop: d, sink: events.NewFakeRecorder(50)}
	d.Report.Recorder = telemetry.NewRecorder(l.sink, w.Clock)
	d.Report.Log = funcr.NewJSON(func(line string) {
		l.lines = append(l.lines, regexp.MustCompile(`"commandID":"[a-z0-9]*",`).ReplaceAllString(line, ""))
	}, funcr.Options{})
	proposed := false
	d.Propose = func(snap *model.Snapshot, _ bool) disruption.Proposal {
		p := disruption.Proposal{Kept: []disruption.Kept{{Node: "b", Pool: "p", Reason: plan.Underutilized,
			Verdict: plan.Verdict{Code: plan.ScoreTooLow, Node: "b", Need: 500, Have: 250}}}}
		if !proposed {
			c := plan.NewCommand(snap.Now, plan.Underutilized, "single", []plan.Candidate{plan.CandidateOf(snap.Node("a"))})
			c.Replacements = []plan.NewClaim{{Name: "new", Pool: "p", PoolUID: "pool-uid"}}
			c.Worth = plan.Worth{Saving: model.Nano / 2, Pods: 1}
			proposed = true
			p.Commands = []plan.Command{c}
		}
		return p
	}
	return l
}

type loopAndEvents struct {
	*disrupt.Loop
	sink *events.FakeRecorder
	// lines are the lines of the log at level info.
	lines []string
}

// step advances the clock and ticks. It returns the events since the last step, each once.
func (l *loopAndEvents) step(t *testing.T, w *loopcluster.Cluster, d time.Duration) []string {
	t.Helper()
	w.Clock.Step(d)
	l.Tick(t.Context())
	list := loopcluster.Emitted(l.sink)
	slices.Sort(list)
	return slices.Compact(list) // those of the node and the claim
}

func TestDisruptTellsOfConsolidation(t *testing.T) {
	w := loopcluster.New(t)
	l := consolidating(w)
	const kept = "Normal Unconsolidatable ScoreTooLow: the policy Balanced requires a score of 0.5 or more, and removing node b scores 0.25; the node costs 733.65 USD a month"
	for i, c := range []struct {
		after time.Duration
		want  []string
	}{
		{0, []string{
			"Normal ConsolidationApproved Consolidation approved: score 0.50 >= 0.50 (k=2), saving 24.9% of the pool's cost for 50.0% of its disruption",
			"Normal ConsolidationCandidate Consolidation: replace 1 node by 1, moving 1 pod, saving $0.50 per hour",
			kept}},
		{guard.Validation, []string{
			"Normal Disrupting Disrupting Node: Underutilized, moving 1 pod to nodeclaim/new, saving 0.5 USD per hour",
			"Normal Disrupting Disrupting NodeClaim: Underutilized, moving 1 pod to nodeclaim/new, saving 0.5 USD per hour"}},
		{2 * time.Second, []string{"Normal DisruptionLaunching Launching NodeClaim: Underutilized",
			"Normal DisruptionWaitingReadiness Waiting on readiness to continue disruption"}},
		{time.Second, nil}, // reported already
		{15 * time.Minute, []string{"Normal ConsolidationRejected Consolidation dropped (unknown): the deadline has passed; it would have saved $0.50 per hour"}}, // not ready in time
	} {
		if diff := cmp.Diff(c.want, l.step(t, w, c.after)); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i, diff)
		}
	}
	const about = `"reason":"Underutilized","decision":"replace","nodes":["a"],`
	if diff := cmp.Diff([]string{
		`{"logger":"","level":0,"msg":"disrupting nodes",` + about +
			`"nodeClaims":["c-a"],"method":"single","pods":1,"savingPerHour":0.5,"replacements":["nodeclaim/new"],"podsMoveTo":[]}`,
		`{"logger":"","level":0,"msg":"created nodeclaim","nodeClaim":"new","nodePool":"p","reason":"underutilized","pods":0,"podNames":[]}`,
		`{"logger":"","level":0,"msg":"abandoned disruption",` + about + `"phase":"launching","code":"DeadlinePassed","cause":"the deadline has passed"}`,
	}, l.lines); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
	m := l.Report.Metrics
	for _, decision := range []string{"approved", "rejected"} {
		if n := testutil.ToFloat64(m.ConsolidationMoves.WithLabelValues(decision, "p", "balanced")); n < 1 {
			t.Errorf("%v moves %s", n, decision)
		}
	}
	if n := testutil.ToFloat64(m.DisruptionKeptNodes.WithLabelValues("p", "underutilized", "ScoreTooLow")); n != 1 {
		t.Errorf("%v nodes are kept for their score, want 1", n)
	}
	if n := testutil.ToFloat64(m.ConsolidationTimeouts.WithLabelValues("multi")); n != 0 {
		t.Errorf("%v timeouts", n)
	}
}

// TestDisruptTellsWhatWasDropped verifies that the reason for which a command was dropped between decision and
// execution is reported, in one of four words.
func TestDisruptTellsWhatWasDropped(t *testing.T) {
	for want, spoil := range map[string]func(*loopcluster.Cluster){
		"Consolidation dropped (churn): node a is protected by the annotation":             func(w *loopcluster.Cluster) { w.Nodes["c-a"].DoNotDisrupt = true },
		"Consolidation dropped (budget): the pool's budget allows at most 0 nodes at once": func(w *loopcluster.Cluster) { w.Pool.Budgets = []model.Budget{{Count: 0}} },
		"Consolidation dropped (churn): pods are nominated to node a":                      func(w *loopcluster.Cluster) { w.Nodes["c-a"].NominatedUntil = w.Clock.Now().Add(time.Hour) },
	} {
		w := loopcluster.New(t)
		l := consolidating(w)
		l.step(t, w, 0)
		spoil(w)
		if got := strings.Join(l.step(t, w, guard.Validation), "\n"); !strings.Contains(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestDisruptTellsThatItIsHalted verifies the event and the metric while too many nodes are not ready, and that the metric
// ends with that.
func TestDisruptTellsThatItIsHalted(t *testing.T) {
	w := loopcluster.New(t)
	l := consolidating(w)
	for _, halted := range []bool{true, false} {
		l.Propose = func(snap *model.Snapshot, _ bool) (p disruption.Proposal) {
			if p.Next = snap.Now.Add(time.Second); halted {
				p.Halted = plan.Verdict{Code: plan.NodesUnready, Have: 5, Need: 10}
			}
			return p
		}
		got := strings.Join(l.step(t, w, time.Minute), "\n")
		if strings.Contains(got, "VoluntaryDisruptionPaused") != halted {
			t.Errorf("halted %v: the events are %s", halted, got)
		}
		if n := testutil.ToFloat64(l.Report.Metrics.VoluntaryDisruptionPaused.WithLabelValues("nodes_unready")); (n == 1) != halted {
			t.Errorf("halted %v: the metric is %v", halted, n)
		}
	}
}
