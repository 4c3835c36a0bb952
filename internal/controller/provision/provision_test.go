package provision_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/nominate"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// newLoop returns a loop over the cluster.
func newLoop(w *loopcluster.Cluster, schedule func(*model.Snapshot) *plan.Provision) *provision.Loop {
	return &provision.Loop{
		Snapshot: w.Snapshot, Schedule: schedule, Writer: w, Nominate: true,
		Timers: controller.Production(), Clock: w.Clock,
		Report: provision.Reporter{Metrics: telemetry.New(prometheus.NewRegistry()), NoTypes: explain.NoTypes,
			Refusal: func(_ *model.Snapshot, r plan.Refusal) string { return fmt.Sprintf("code %d", r.Verdict.Code) }},
	}
}

// TestProvisionForgetsPodsThatWent verifies that a pod that was deleted during planning is not recorded as waiting,
// although no event reports its deletion, while an existing pod is, pending or starting.
func TestProvisionForgetsPodsThatWent(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("here", model.Registered)
	w.Pending("stays", "")
	w.Pending("gone", "")
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{Order: loopcluster.PodsOf(snap, "stays", "gone")}
	})
	schedule := p.Schedule
	p.Schedule = func(snap *model.Snapshot) *plan.Provision {
		delete(w.Pods, "uid-gone")
		return schedule(snap)
	}
	p.Tick(t.Context())
	if _, waits := p.Report.Metrics.Waits.Since("uid-gone"); waits {
		t.Error("a pod that was deleted during planning waits forever")
	}
	if _, waits := p.Report.Metrics.Waits.Since("uid-stays"); !waits {
		t.Error("a pod that was planned does not wait")
	}
	w.Bound("stays", "here")
	p.Tick(t.Context())
	if _, waits := p.Report.Metrics.Waits.Since("uid-stays"); !waits {
		t.Error("a pod that does not run yet does not wait")
	}
	delete(w.Pods, "uid-stays")
	p.Tick(t.Context())
	if _, waits := p.Report.Metrics.Waits.Since("uid-stays"); waits {
		t.Error("a deleted pod waits")
	}
}

func TestProvisionTick(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("here", model.Registered)
	w.Node("coming", model.Launched)
	for _, pod := range []string{"new", "old", "soon", "none"} {
		w.Pending(pod, "")
	}
	w.Pods["uid-none"].Nominated = "here" // a nomination that no longer holds
	w.Pods["uid-new"].Nominated = "here"
	schedule := func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{
			Claims: []plan.NewClaim{{Name: "claim-1", Pool: "p", PoolUID: "pool-uid", Pods: loopcluster.PodsOf(snap, "new")}},
			Placed: []plan.Placement{{Node: "here", Pods: loopcluster.PodsOf(snap, "old")},
				{Node: "coming", Pods: loopcluster.PodsOf(snap, "soon")}},
			Refused: []plan.Refusal{{Pods: loopcluster.PodsOf(snap, "none"), Verdict: plan.Verdict{Code: plan.NoPools}}},
		}
	}
	p := newLoop(w, schedule)
	sink := events.NewFakeRecorder(20)
	p.Report.Recorder = telemetry.NewRecorder(sink, w.Clock)
	held := map[string]time.Time{}
	p.HoldDisruption = func(node string, until time.Time) { held[node] = until }
	p.Tick(t.Context())
	loopcluster.Expect(t, w, `clear the nomination of pod default/new
clear the nomination of pod default/none
create claim claim-1
nominate pod default/old to node here`)
	if diff := cmp.Diff(map[string]time.Time{"here": loopcluster.Noon.Add(20 * time.Second),
		"coming": loopcluster.Noon.Add(20 * time.Second)}, held); diff != "" {
		t.Errorf("nominated (-want +got):\n%s", diff)
	}
	switch got := loopcluster.Emitted(sink); {
	case len(got) != 3:
		t.Errorf("len(got) is %v, want 3, events %q", len(got), got)
	case !strings.Contains(got[0]+got[1], "node/here"):
		t.Errorf(`got[0]+got[1] lacks "node/here", events %q`, got)
	case !strings.Contains(got[2], fmt.Sprintf("FailedScheduling Failed to schedule pod, code %d", plan.NoPools)):
		t.Errorf("got[2] lacks %q, events %q", fmt.Sprintf("FailedScheduling Failed to schedule pod, code %d", plan.NoPools), got)
	}
	if n := testutil.ToFloat64(p.Report.Metrics.SchedulerUnschedulablePods.WithLabelValues("provisioner")); n != 1 {
		t.Errorf("%v pods unschedulable, want 1", n)
	}
}

// TestPlansKnowTheLastPlan verifies that the snapshot of a plan contains the place that the previous plan gave a pod.
func TestPlansKnowTheLastPlan(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("here", model.Registered)
	w.Pending("a", "")
	var from []*model.Snapshot
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		from = append(from, snap)
		return &plan.Provision{Placed: []plan.Placement{{Node: "here", Pods: loopcluster.PodsOf(snap, "a")}}}
	})
	p.Nominate = false
	p.Tick(t.Context())
	p.Tick(t.Context())
	if len(from) != 2 {
		t.Fatalf("%d plans, want 2", len(from))
	}
	want := []model.Reservation{{Pod: model.PodRef{UID: "uid-a"}, Source: model.FromLastPlan}}
	if diff := cmp.Diff(want, from[1].Node("here").Reservations); diff != "" {
		t.Errorf("reserved on the node (-want +got):\n%s", diff)
	}
}

// TestPlansKeepNamesUntilTheyAreUsed verifies that the next plan keeps the name of a claim whose creation failed, because
// it may exist, but not that of a claim that was created and may be gone.
func TestPlansKeepNamesUntilTheyAreUsed(t *testing.T) {
	w := loopcluster.New(t)
	w.Pending("a", "")
	w.Refuse = "create claim lost"
	var from []*model.Snapshot
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		from = append(from, snap)
		claim := func(name string) plan.NewClaim {
			return plan.NewClaim{Name: name, Pool: "p", PoolUID: "pool-uid", Pods: loopcluster.PodsOf(snap, "a")}
		}
		return &plan.Provision{Claims: []plan.NewClaim{claim("made"), claim("lost")}, Renamed: map[string]string{"m": "made", "l": "lost"}}
	})
	p.Nominate = false
	p.Tick(t.Context())
	p.Tick(t.Context())
	if diff := cmp.Diff(map[string]string{"l": "lost"}, from[1].ClaimNames); diff != "" {
		t.Errorf("names in the second plan (-want +got):\n%s", diff)
	}
}

// TestRefusalsAreLoggedOnce verifies that the log contains the reasons as data, once for all pods with the same
// ones, and again only when they change.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	w := loopcluster.New(t)
	w.Pending("a", "")
	w.Pending("b", "")
	code := plan.NoPools
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		verdict := plan.Verdict{Code: code}
		return &plan.Provision{Refused: []plan.Refusal{{Pods: loopcluster.PodsOf(snap, "a"), Verdict: verdict},
			{Pods: loopcluster.PodsOf(snap, "b"), Verdict: verdict}}}
	})
	p.Report.Recorder = telemetry.NewRecorder(events.NewFakeRecorder(20), w.Clock)
	p.Report.Reasons = func(_ *model.Snapshot, r plan.Refusal) any { return map[string]plan.Code{"code": r.Verdict.Code} }
	var lines []string
	p.Report.Log = funcr.NewJSON(func(line string) {
		lines = append(lines, regexp.MustCompile(`"planID":"[a-z2-7]{12}"`).ReplaceAllString(line, `"planID":"ID"`))
	}, funcr.Options{})
	for _, code = range []plan.Code{plan.NoPools, plan.NoPools, plan.PodInvalid, plan.PodInvalid} {
		p.Tick(t.Context())
	}
	var want []string
	for _, code := range []plan.Code{plan.NoPools, plan.PodInvalid} {
		want = append(want, fmt.Sprintf(`{"logger":"","level":0,"msg":"unschedulable pods","planID":"ID","pods":2,"pod":"default/a","reasons":{"code":%d}}`, code))
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProvisionObservesOnly(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("here", model.Initialized)
	w.Pending("old", "")
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{Placed: []plan.Placement{{Node: "here", Pods: loopcluster.PodsOf(snap, "old")}}}
	})
	p.Nominate = false
	p.Tick(t.Context())
	if err := p.NominateFor(t.Context(), claimNamed("c-here"), nodeNamed("here")); err != nil {
		t.Error(err)
	}
	loopcluster.Expect(t, w, "")
}

func claimNamed(name string) *karpv1.NodeClaim {
	return &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

// TestNominateFor verifies that the pods are those of the latest plan, or, without one, as after a restart, of a plan
// that is computed on demand. Pods that are no longer pending, or have the nomination already, are left out. A failed
// write must not keep the node closed.
func TestNominateFor(t *testing.T) {
	for name, c := range map[string]struct {
		tick   bool
		refuse string
		placed func(*model.Snapshot) *plan.Provision
		want   string
	}{
		"bought in the latest plan": {true, "", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Claims: []plan.NewClaim{{Name: "c-n", Pool: "p", PoolUID: "pool-uid", Pods: loopcluster.PodsOf(snap, "a", "b")}}}
		}, "create claim c-n\nnominate pod default/a to node n\nnominate pod default/b to node n"},
		"in flight in the latest plan": {true, "", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Placed: []plan.Placement{{Node: "c-n", Pods: loopcluster.PodsOf(snap, "a", "held")}}}
		}, "nominate pod default/a to node n"},
		"after a restart": {false, "", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Placed: []plan.Placement{{Node: "n", Pods: loopcluster.PodsOf(snap, "a", "held")}}}
		}, "nominate pod default/a to node n"},
		"a pod went": {false, "", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Placed: []plan.Placement{{Node: "n", Pods: []*model.Pod{{UID: "gone", Shape: &model.Shape{}}}}}}
		}, ""},
		"a write fails": {false, "default/a", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Placed: []plan.Placement{{Node: "n", Pods: loopcluster.PodsOf(snap, "a", "b")}}}
		}, "nominate pod default/a to node n (refused)\nnominate pod default/b to node n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := loopcluster.New(t)
			w.Refuse = c.refuse
			w.Pending("a", "")
			w.Pending("b", "")
			w.Pending("held", "n")
			p := newLoop(w, c.placed)
			if c.tick {
				p.Tick(t.Context())
			}
			if err := p.NominateFor(t.Context(), claimNamed("c-n"), nodeNamed("n")); (err != nil) != (c.refuse != "") {
				t.Error(err)
			}
			loopcluster.Expect(t, w, c.want)
		})
	}
}

// TestNominateForPlansOnceAndOnTheWholeCluster verifies that one plan is computed for all nodes that register before
// the first tick, as after a restart, and none before the whole cluster is known.
func TestNominateForPlansOnceAndOnTheWholeCluster(t *testing.T) {
	w := loopcluster.New(t)
	w.Pending("a", "")
	plans := atomic.Int32{}
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		plans.Add(1)
		return &plan.Provision{Placed: []plan.Placement{{Node: "n", Pods: loopcluster.PodsOf(snap, "a")}}}
	})
	synced := make(chan struct{})
	p.WaitForSync = func(ctx context.Context) bool {
		select {
		case <-synced:
			return true
		case <-ctx.Done():
			return false
		}
	}
	given, end := context.WithCancel(t.Context())
	end()
	if err := p.NominateFor(given, claimNamed("c-n"), nodeNamed("n")); !errors.Is(err, context.Canceled) || plans.Load() != 0 {
		t.Errorf("before the cluster is known: %v and %d plans, want a canceled wait and none", err, plans.Load())
	}
	var asking errgroup.Group
	for i := range 50 {
		asking.Go(func() error {
			return p.NominateFor(t.Context(), claimNamed(fmt.Sprint("c-", i)), nodeNamed(fmt.Sprint("n", i)))
		})
	}
	close(synced)
	if err := asking.Wait(); err != nil || plans.Load() != 1 {
		t.Errorf("%v and %d plans, want one", err, plans.Load())
	}
}

// TestProvisionPromisesWhatIsStillRight verifies that changes since the snapshot of the plan count: a pod that was
// bound meanwhile is not nominated, and no pod is nominated to a node that is being removed by now.
func TestProvisionPromisesWhatIsStillRight(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("here", model.Initialized)
	leaving := w.Node("leaving", model.Initialized)
	for _, pod := range []string{"waits", "bound", "unlucky"} {
		w.Pending(pod, "")
	}
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		defer func() {
			w.Bound("bound", "leaving")
			leaving.Deleting = true
		}()
		return &plan.Provision{Placed: []plan.Placement{
			{Node: "here", Pods: loopcluster.PodsOf(snap, "waits", "bound")}, {Node: "leaving", Pods: loopcluster.PodsOf(snap, "unlucky")},
		}}
	})
	held := map[string]bool{}
	p.HoldDisruption = func(node string, _ time.Time) { held[node] = true }
	p.Tick(t.Context())
	loopcluster.Expect(t, w, "nominate pod default/waits to node here")
	if diff := cmp.Diff(map[string]bool{"here": true}, held); diff != "" {
		t.Errorf("nodes with nominations (-want +got):\n%s", diff)
	}
}

// TestProvisionReportsPoolsWithoutTypes verifies that a pool whose requirements exclude all instance types gets an event,
// while pods are unschedulable.
func TestProvisionReportsPoolsWithoutTypes(t *testing.T) {
	for requirement, want := range map[string][]string{
		"there":     nil,
		"not-there": {"Warning NoCompatibleInstanceTypes the pool's own requirement node.kubernetes.io/instance-type In [not-there] matches none of 1 instance type; instance types have there"},
	} {
		w := loopcluster.New(t)
		w.Pending("a", "")
		w.Pool.Catalog = &model.Catalog{Types: []model.InstanceType{{Name: "there", Requirements: oneOf(model.LabelType, "there")}}}
		w.Pool.Requirements = oneOf(model.LabelType, requirement)
		p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Refused: []plan.Refusal{{Verdict: plan.Verdict{Code: plan.NoPools}}}}
		})
		sink := events.NewFakeRecorder(5)
		p.Report.Recorder = telemetry.NewRecorder(sink, w.Clock)
		p.Tick(t.Context())
		if diff := cmp.Diff(want, loopcluster.Emitted(sink)); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", requirement, diff)
		}
	}
}

func oneOf(key string, values ...string) []label.Requirement {
	return []label.Requirement{{Key: key, Operator: label.In, Values: values}}
}

// TestProvisionCountsInvalidPodsOnce verifies that an invalid pod is counted once, as ignored, and gets one event.
func TestProvisionCountsInvalidPodsOnce(t *testing.T) {
	w := loopcluster.New(t)
	w.Pending("odd", "gone")
	w.Pods["uid-odd"].Rejected = &model.Rejection{Field: "spec", Reason: "is odd"}
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{Refused: []plan.Refusal{{Pods: snap.Rejected,
			Verdict: plan.Verdict{Code: plan.PodInvalid, Rejection: snap.Rejected[0].Rejected}}}}
	})
	p.Tick(t.Context())
	loopcluster.Expect(t, w, "clear the nomination of pod default/odd")
	ignored, refused := testutil.ToFloat64(p.Report.Metrics.SchedulerIgnoredPods),
		testutil.ToFloat64(p.Report.Metrics.SchedulerUnschedulablePods.WithLabelValues("provisioner"))
	if ignored != 1 || refused != 0 {
		t.Errorf("%v pods ignored and %v unschedulable, want 1 and 0", ignored, refused)
	}
}

// TestProvisionPromisesMoreWhenPodsMove verifies that when a node has the maximum number of nominations, the next pod
// that is bound permits another one without waiting for the timer.
func TestProvisionPromisesMoreWhenPodsMove(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("here", model.Initialized)
	for i := range nominate.MostNominated + 1 {
		w.Pending(fmt.Sprint("p", i), "")
	}
	passes, moved := loopcluster.NewTicks(), make(chan struct{}, 1)
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		passes.Add(w.Clock.Now())
		return &plan.Provision{Placed: []plan.Placement{{Node: "here", Pods: snap.Groups[0].Pods}}}
	})
	p.Changed = moved
	asleep := loopcluster.Started(t, w.Clock, p.Start)
	asleep()
	w.Clock.Step(10 * time.Second)
	first := passes.Next(t)
	asleep()
	moved <- struct{}{}
	loopcluster.WaitForTimers(t, w.Clock, 2)
	w.Clock.Step(time.Second)
	if after := passes.Next(t).Sub(first); after != time.Second {
		t.Errorf("pass after %s, want 1s", after)
	}
}

func TestProvisionWaitsForTheBatch(t *testing.T) {
	w := loopcluster.New(t)
	passes := loopcluster.NewTicks()
	bell := make(chan struct{}, 1)
	p := newLoop(w, func(*model.Snapshot) *plan.Provision {
		passes.Add(w.Clock.Now())
		return &plan.Provision{}
	})
	p.Pending = bell
	asleep := loopcluster.Started(t, w.Clock, p.Start)

	// No event: the timer triggers.
	asleep()
	w.Clock.Step(10 * time.Second)
	if at := passes.Next(t).Sub(loopcluster.Noon); at != 10*time.Second {
		t.Errorf("pass after %s, want 10s", at)
	}
	// Events every 0.9 s: the longest batch.
	ring := func() {
		t.Helper()
		bell <- struct{}{}
		loopcluster.Until(t, "the bell is heard", func() bool { return len(bell) == 0 })
	}
	asleep()
	begin := w.Clock.Now()
	ring()
	loopcluster.WaitForTimers(t, w.Clock, 2)
	for w.Clock.Since(begin) < 9*time.Second {
		w.Clock.Step(900 * time.Millisecond)
		ring()
		loopcluster.WaitForTimers(t, w.Clock, 2)
	}
	w.Clock.Step(time.Second)
	if at := passes.Next(t).Sub(begin); at != 10*time.Second {
		t.Errorf("pass %s after the first event, want 10s", at)
	}
	// One event and silence: the idle time.
	asleep()
	begin = w.Clock.Now()
	ring()
	loopcluster.WaitForTimers(t, w.Clock, 2)
	w.Clock.Step(time.Second)
	if at := passes.Next(t).Sub(begin); at != time.Second {
		t.Errorf("pass %s after the event, want 1s", at)
	}
}

// TestProvisionComesBack verifies that failed creations are retried soon, at increasing intervals, and that success
// ends that.
func TestProvisionComesBack(t *testing.T) {
	w := loopcluster.New(t)
	w.Refuse = "claim-1"
	w.Pending("a", "")
	passes := loopcluster.NewTicks()
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		passes.Add(w.Clock.Now())
		return &plan.Provision{Claims: []plan.NewClaim{{Name: "claim-1", Pool: "p", PoolUID: "pool-uid", Pods: loopcluster.PodsOf(snap, "a")}}}
	})
	asleep := loopcluster.Started(t, w.Clock, p.Start)
	last := loopcluster.Noon
	for i, pause := range []time.Duration{10, 1, 2, 4, 8, 10, 10} {
		asleep()
		w.Clock.Step(pause * time.Second)
		at := passes.Next(t)
		if at.Sub(last) != pause*time.Second {
			t.Errorf("pass %d after %s, want %ds", i, at.Sub(last), pause)
		}
		last = at
		if i == 5 {
			w.Lock()
			w.Refuse = ""
			w.Unlock()
		}
	}
}

// TestProvisionPlansForLeavingNodes verifies that pods on a node that is being deleted are planned together with the
// pending pods, but get neither nominations nor events.
func TestProvisionPlansForLeavingNodes(t *testing.T) {
	w := loopcluster.New(t)
	w.Node("leaving", model.Initialized).Deleting = true
	w.Node("here", model.Initialized)
	w.Bound("goes", "leaving")
	w.Bound("homeless", "leaving")
	w.Bound("buys", "leaving")
	w.Bound("stays", "here")
	w.Pending("waits", "")
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		if stays := loopcluster.PodsOf(snap, "stays"); len(stays) > 0 {
			t.Error("a pod of a node that is kept is planned")
		}
		return &plan.Provision{
			Claims:  []plan.NewClaim{{Name: "claim-1", Pool: "p", PoolUID: "pool-uid", Pods: loopcluster.PodsOf(snap, "buys")}},
			Placed:  []plan.Placement{{Node: "here", Pods: loopcluster.PodsOf(snap, "goes", "waits")}},
			Refused: []plan.Refusal{{Pods: loopcluster.PodsOf(snap, "homeless"), Verdict: plan.Verdict{Code: plan.NoPools}}},
		}
	})
	sink := events.NewFakeRecorder(20)
	p.Report.Recorder = telemetry.NewRecorder(sink, w.Clock)
	held := 0
	p.HoldDisruption = func(string, time.Time) { held++ }
	p.Tick(t.Context())
	loopcluster.Expect(t, w, "create claim claim-1\nnominate pod default/waits to node here")
	if got := loopcluster.Emitted(sink); len(got) != 1 || !strings.Contains(got[0], "Nominated") {
		t.Errorf("events %q, want one about the pending pod", got)
	}
	if held != 1 {
		t.Errorf("%d nodes are protected, want the one for which pods are planned", held)
	}
}
