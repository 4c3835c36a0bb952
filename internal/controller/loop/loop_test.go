package loop_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
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
	clocktesting "k8s.io/utils/clock/testing"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/loop"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// world is an in-memory cluster that executes actions at once, and can refuse some.
type world struct {
	mu    sync.Mutex
	clock *clocktesting.FakeClock
	nodes map[string]*model.NodeSpec // by claim
	pods  map[string]*model.PodSpec  // by UID
	pool  model.PoolSpec
	// refuse makes actions fail whose text contains it, when it is not empty.
	refuse string
	log    []string
}

func newWorld() *world {
	return &world{
		clock: clocktesting.NewFakeClock(noon), nodes: map[string]*model.NodeSpec{}, pods: map[string]*model.PodSpec{},
		pool: model.PoolSpec{Name: "p", UID: "pool-uid", ConsolidateAfter: 30 * time.Second},
	}
}

func (w *world) node(name string, stage model.Stage) *model.NodeSpec {
	n := &model.NodeSpec{Name: name, UID: "uid-" + name, Claim: "c-" + name, ClaimUID: "uid-c-" + name, Pool: "p", Stage: stage,
		InitializedAt: noon, Ready: true, Labels: map[string]string{model.LabelPool: "p"},
		Capacity: []quantity.Amount{{Name: "pods", Value: 10}}, Allocatable: []quantity.Amount{{Name: "pods", Value: 10}}}
	w.nodes[n.Claim] = n
	return n
}

func (w *world) pending(name, nominated string) {
	w.pods["uid-"+name] = &model.PodSpec{UID: "uid-" + name, Namespace: "default", Name: name, Nominated: nominated, Requests: []quantity.Amount{{Name: "pods", Value: 1}}}
}

func (w *world) bound(name, node string) {
	w.pending(name, "")
	w.pods["uid-"+name].State, w.pods["uid-"+name].Node, w.pods["uid-"+name].Reschedulable = model.Bound, node, true
}

func (w *world) Snapshot() *model.Snapshot {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := model.NewBuilder()
	b.UpsertPool(w.pool)
	for _, n := range w.nodes {
		b.UpsertNode(*n)
	}
	for _, p := range w.pods {
		b.UpsertPod(*p)
	}
	return b.Snapshot(w.clock.Now())
}

func (w *world) Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) execute.Provisioned {
	snap := newest()
	kept, dropped := plan.CheckProvision(snap, p)
	reserved := w.Do(ctx, plan.Reservations(snap, kept))
	var actions []plan.Action
	for _, c := range kept.Claims {
		actions = append(actions, plan.CreateClaim{NewClaim: c, Reason: "provisioned"})
	}
	return execute.Provisioned{Plan: kept, Dropped: dropped, Outcomes: w.Do(ctx, actions), Reserved: reserved}
}

func (w *world) Advance(ctx context.Context, newest func() *model.Snapshot, commands []plan.Command) []execute.Advanced {
	guard := plan.NewGuard(newest())
	advanced := make([]execute.Advanced, len(commands))
	for i, command := range commands {
		next, actions := guard.Step(command)
		advanced[i] = execute.Advanced{Command: next, Outcomes: w.Do(ctx, actions)}
	}
	return advanced
}

func (w *world) Do(_ context.Context, actions []plan.Action) []execute.Outcome {
	outcomes := make([]execute.Outcome, len(actions))
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, action := range actions {
		outcomes[i] = execute.Outcome{Action: action}
		text := action.String()
		if w.refuse != "" && strings.Contains(text, w.refuse) {
			outcomes[i].Err = errors.New("refused")
			text += " (refused)"
		} else {
			w.do(action)
		}
		if cmd, ok := action.(plan.WriteCommand); ok {
			text = strings.ReplaceAll(text, cmd.Command.ID, "ID")
		}
		w.log = append(w.log, text)
	}
	return outcomes
}

func (w *world) do(action plan.Action) {
	switch a := action.(type) {
	case plan.TaintNode:
		w.nodes["c-"+a.Node].Disrupted = true
	case plan.UntaintNode:
		w.nodes["c-"+a.Node].Disrupted = false
	case plan.WriteCommand:
		w.nodes[a.Claim].Command = a.Command.Encode()
	case plan.ClearCommand:
		w.nodes[a.Claim].Command = ""
	case plan.CreateClaim:
		w.nodes[a.NewClaim.Name] = &model.NodeSpec{Name: a.NewClaim.Name, Claim: a.NewClaim.Name, ClaimUID: "uid-" + a.NewClaim.Name, Pool: "p", Stage: model.Launching}
	case plan.DeleteClaim:
		w.nodes[a.Claim].Deleting = true
	case plan.MarkExpecting:
		w.nodes[a.Claim].ExpectingSince = a.At
	case plan.ReservePods:
		w.nodes[a.Claim].ReservedFor = a.Pods
	case plan.HoldLaunches:
		w.pool.Holds = []model.LaunchHold{a.Hold}
	case plan.ReleaseLaunches:
		w.pool.Holds = nil
	case plan.NominatePod:
		w.pods[a.UID].Nominated = a.Node
	case plan.ClearNomination:
		w.pods[a.UID].Nominated = ""
	}
}

// took returns the actions since the last call, sorted.
func (w *world) took() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.log)
	text := strings.Join(w.log, "\n")
	w.log = nil
	return text
}

func (w *world) provision(schedule func(*model.Snapshot) *plan.Provision) *loop.Provision {
	return &loop.Provision{
		Snapshot: w.Snapshot, Schedule: schedule, Writer: w, Nominate: true,
		Refusal: func(_ *model.Snapshot, r plan.Refusal) string { return fmt.Sprintf("code %d", r.Verdict.Code) }, Barren: explain.PoolBarren,
		Timers: controller.Production(), Clock: w.clock, Metrics: telemetry.New(prometheus.NewRegistry()), History: loop.NewHistory(3),
	}
}

func (w *world) disrupt() *loop.Disrupt {
	return &loop.Disrupt{
		Snapshot: w.Snapshot, Propose: func(s *model.Snapshot, _ bool) disruption.Proposal {
			return disruption.Propose(s, disruption.Options{})
		}, Writer: w, Timers: controller.Production(), Clock: w.clock,
		Metrics: telemetry.New(prometheus.NewRegistry()), History: loop.NewHistory(3),
	}
}

func podsOf(snap *model.Snapshot, names ...string) []*model.Pod {
	var pods []*model.Pod
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			if slices.Contains(names, p.Name) {
				pods = append(pods, p)
			}
		}
	}
	return pods
}

func want(t *testing.T, w *world, text string) {
	t.Helper()
	if diff := cmp.Diff(text, w.took()); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// TestProvisionForgetsPodsThatWent verifies that a pod that was deleted during planning is not recorded as waiting,
// although no event reports its deletion, while an existing pod is, pending or starting.
func TestProvisionForgetsPodsThatWent(t *testing.T) {
	w := newWorld()
	w.node("here", model.Registered)
	w.pending("stays", "")
	w.pending("gone", "")
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{Order: podsOf(snap, "stays", "gone")}
	})
	schedule := p.Schedule
	p.Schedule = func(snap *model.Snapshot) *plan.Provision {
		delete(w.pods, "uid-gone")
		return schedule(snap)
	}
	p.Tick(t.Context())
	if _, waits := p.Metrics.Waits.Since("uid-gone"); waits {
		t.Error("a pod that was deleted during planning waits forever")
	}
	if _, waits := p.Metrics.Waits.Since("uid-stays"); !waits {
		t.Error("a pod that was planned does not wait")
	}
	w.bound("stays", "here")
	p.Tick(t.Context())
	if _, waits := p.Metrics.Waits.Since("uid-stays"); !waits {
		t.Error("a pod that does not run yet does not wait")
	}
	delete(w.pods, "uid-stays")
	p.Tick(t.Context())
	if _, waits := p.Metrics.Waits.Since("uid-stays"); waits {
		t.Error("a deleted pod waits")
	}
}

func TestProvisionTick(t *testing.T) {
	w := newWorld()
	w.node("here", model.Registered)
	w.node("coming", model.Launched)
	for _, pod := range []string{"new", "old", "soon", "none"} {
		w.pending(pod, "")
	}
	w.pods["uid-none"].Nominated = "here" // a nomination that no longer holds
	w.pods["uid-new"].Nominated = "here"
	schedule := func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{
			Claims:  []plan.NewClaim{{Name: "claim-1", Pool: "p", PoolUID: "pool-uid", Pods: podsOf(snap, "new")}},
			Placed:  []plan.Placement{{Node: "here", Pods: podsOf(snap, "old")}, {Node: "coming", Pods: podsOf(snap, "soon")}},
			Refused: []plan.Refusal{{Pods: podsOf(snap, "none"), Verdict: plan.Verdict{Code: plan.NoPools}}},
		}
	}
	p := w.provision(schedule)
	sink := events.NewFakeRecorder(20)
	p.Recorder = telemetry.NewRecorder(sink, w.clock)
	promised := map[string]time.Time{}
	p.Promise = func(node string, until time.Time) { promised[node] = until }
	p.Tick(t.Context())
	want(t, w, `clear the nomination of pod default/new
clear the nomination of pod default/none
create claim claim-1
nominate pod default/old to node here
reserve claim c-coming for 1 pods`)
	if diff := cmp.Diff(map[string]time.Time{"here": noon.Add(20 * time.Second), "coming": noon.Add(20 * time.Second)}, promised); diff != "" {
		t.Errorf("nominated (-want +got):\n%s", diff)
	}
	if got := emitted(sink); len(got) != 3 || !strings.Contains(got[0]+got[1], "node/here") || !strings.Contains(got[2], fmt.Sprintf("FailedScheduling Failed to schedule pod, code %d", plan.NoPools)) {
		t.Errorf("events %q", got)
	}
	if n := testutil.ToFloat64(p.Metrics.SchedulerUnschedulablePods.WithLabelValues("provisioner")); n != 1 {
		t.Errorf("%v pods unschedulable, want 1", n)
	}
	if records := p.History.Records(); len(records) != 1 || len(records[0].Provision.Claims) != 1 {
		t.Errorf("records %+v", records)
	}
}

// TestRecordsHoldWhatPlansWereMadeFrom verifies that the snapshot of a record contains the place that the previous
// plan gave a pod. Otherwise the plan could not be reproduced from it.
func TestRecordsHoldWhatPlansWereMadeFrom(t *testing.T) {
	w := newWorld()
	w.node("here", model.Registered)
	w.pending("a", "")
	var from []*model.Snapshot
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		from = append(from, snap)
		return &plan.Provision{Placed: []plan.Placement{{Node: "here", Pods: podsOf(snap, "a")}}}
	})
	p.Nominate = false
	p.Tick(t.Context())
	p.Tick(t.Context())
	records := p.History.Records()
	if len(records) != 2 || records[0].Snapshot != from[0] || records[1].Snapshot != from[1] {
		t.Fatalf("the snapshots of %d records are not those that the %d plans were made from", len(records), len(from))
	}
	if diff := cmp.Diff([]string{"uid-a"}, records[1].Snapshot.Node("here").Promised); diff != "" {
		t.Errorf("reserved on the node (-want +got):\n%s", diff)
	}
}

func emitted(sink *events.FakeRecorder) []string {
	var all []string
	for {
		select {
		case e := <-sink.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// TestRefusalsAreLoggedOnce verifies that the log contains the reasons as data, once for all pods of a refusal, and
// again only when they change.
func TestRefusalsAreLoggedOnce(t *testing.T) {
	w := newWorld()
	w.pending("a", "")
	w.pending("b", "")
	code := plan.NoPools
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{Refused: []plan.Refusal{{Pods: podsOf(snap, "a", "b"), Verdict: plan.Verdict{Code: code}}}}
	})
	p.Recorder = telemetry.NewRecorder(events.NewFakeRecorder(20), w.clock)
	p.Reasons = func(_ *model.Snapshot, r plan.Refusal) any { return map[string]plan.Code{"code": r.Verdict.Code} }
	var lines []string
	p.Log = funcr.NewJSON(func(line string) {
		lines = append(lines, regexp.MustCompile(`"planID":"[a-z2-7]{12}"`).ReplaceAllString(line, `"planID":"ID"`))
	}, funcr.Options{})
	for _, code = range []plan.Code{plan.NoPools, plan.NoPools, plan.PodInvalid, plan.PodInvalid} {
		p.Tick(t.Context())
	}
	var want []string
	for _, code := range []plan.Code{plan.NoPools, plan.PodInvalid} {
		want = append(want, fmt.Sprintf(`{"logger":"","level":0,"msg":"pods have no place","planID":"ID","pods":2,"pod":"default/a","reasons":{"code":%d}}`, code))
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestProvisionObservesOnly(t *testing.T) {
	w := newWorld()
	w.node("here", model.Initialized)
	w.pending("old", "")
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{Placed: []plan.Placement{{Node: "here", Pods: podsOf(snap, "old")}}}
	})
	p.Nominate = false
	p.Tick(t.Context())
	if err := p.NominateFor(t.Context(), claimNamed("c-here"), nodeNamed("here")); err != nil {
		t.Error(err)
	}
	want(t, w, "")
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
			return &plan.Provision{Claims: []plan.NewClaim{{Name: "c-n", Pool: "p", PoolUID: "pool-uid", Pods: podsOf(snap, "a", "b")}}}
		}, "create claim c-n\nnominate pod default/a to node n\nnominate pod default/b to node n"},
		"in flight in the latest plan": {true, "", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Placed: []plan.Placement{{Node: "c-n", Pods: podsOf(snap, "a", "promised")}}}
		}, "nominate pod default/a to node n"},
		"after a restart": {false, "", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Placed: []plan.Placement{{Node: "n", Pods: podsOf(snap, "a", "promised")}}}
		}, "nominate pod default/a to node n"},
		"a pod went": {false, "", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Placed: []plan.Placement{{Node: "n", Pods: []*model.Pod{{UID: "gone"}}}}}
		}, ""},
		"a write fails": {false, "default/a", func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Placed: []plan.Placement{{Node: "n", Pods: podsOf(snap, "a", "b")}}}
		}, "nominate pod default/a to node n (refused)\nnominate pod default/b to node n"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.refuse = c.refuse
			w.pending("a", "")
			w.pending("b", "")
			w.pending("promised", "n")
			p := w.provision(c.placed)
			if c.tick {
				p.Tick(t.Context())
			}
			if err := p.NominateFor(t.Context(), claimNamed("c-n"), nodeNamed("n")); (err != nil) != (c.refuse != "") {
				t.Error(err)
			}
			want(t, w, c.want)
		})
	}
}

// TestNominateForPlansOnceAndOnTheWholeCluster verifies that one plan is computed for all nodes that register before
// the first tick, as after a restart, and none before the whole cluster is known.
func TestNominateForPlansOnceAndOnTheWholeCluster(t *testing.T) {
	w := newWorld()
	w.pending("a", "")
	plans := atomic.Int32{}
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		plans.Add(1)
		return &plan.Provision{Placed: []plan.Placement{{Node: "n", Pods: podsOf(snap, "a")}}}
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
	w := newWorld()
	w.node("here", model.Initialized)
	leaving := w.node("leaving", model.Initialized)
	for _, pod := range []string{"waits", "bound", "unlucky"} {
		w.pending(pod, "")
	}
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		defer func() {
			w.bound("bound", "leaving")
			leaving.Deleting = true
		}()
		return &plan.Provision{Placed: []plan.Placement{
			{Node: "here", Pods: podsOf(snap, "waits", "bound")}, {Node: "leaving", Pods: podsOf(snap, "unlucky")},
		}}
	})
	promised := map[string]bool{}
	p.Promise = func(node string, _ time.Time) { promised[node] = true }
	p.Tick(t.Context())
	want(t, w, "nominate pod default/waits to node here")
	if diff := cmp.Diff(map[string]bool{"here": true}, promised); diff != "" {
		t.Errorf("nodes with nominations (-want +got):\n%s", diff)
	}
}

// TestProvisionTellsOfBarrenPools verifies that a pool whose requirements exclude all instance types gets an event,
// while pods are unschedulable.
func TestProvisionTellsOfBarrenPools(t *testing.T) {
	for requirement, want := range map[string][]string{
		"there":     nil,
		"not-there": {"Warning NoCompatibleInstanceTypes the pool's own requirement node.kubernetes.io/instance-type In [not-there] leaves none of 1 instance type; instance types have there"},
	} {
		w := newWorld()
		w.pending("a", "")
		w.pool.Catalogue = &model.Catalogue{Types: []model.InstanceType{{Name: "there", Requirements: oneOf(model.LabelType, "there")}}}
		w.pool.Requirements = oneOf(model.LabelType, requirement)
		p := w.provision(func(snap *model.Snapshot) *plan.Provision {
			return &plan.Provision{Refused: []plan.Refusal{{Verdict: plan.Verdict{Code: plan.NoPools}}}}
		})
		sink := events.NewFakeRecorder(5)
		p.Recorder = telemetry.NewRecorder(sink, w.clock)
		p.Tick(t.Context())
		if diff := cmp.Diff(want, emitted(sink)); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", requirement, diff)
		}
	}
}

func oneOf(key string, values ...string) []label.Requirement {
	return []label.Requirement{{Key: key, Operator: label.In, Values: values}}
}

// TestProvisionCountsInvalidPodsOnce verifies that an invalid pod is counted once, as ignored, and gets one event.
func TestProvisionCountsInvalidPodsOnce(t *testing.T) {
	w := newWorld()
	w.pending("odd", "gone")
	w.pods["uid-odd"].Rejected = &model.Rejection{Field: "spec", Reason: "is odd"}
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		return &plan.Provision{Refused: []plan.Refusal{{Pods: snap.Rejected, Verdict: plan.Verdict{Code: plan.PodInvalid, Rejection: snap.Rejected[0].Rejected}}}}
	})
	p.Tick(t.Context())
	want(t, w, "clear the nomination of pod default/odd")
	ignored, refused := testutil.ToFloat64(p.Metrics.SchedulerIgnoredPods), testutil.ToFloat64(p.Metrics.SchedulerUnschedulablePods.WithLabelValues("provisioner"))
	if ignored != 1 || refused != 0 {
		t.Errorf("%v pods ignored and %v unschedulable, want 1 and 0", ignored, refused)
	}
}

// TestProvisionPromisesMoreWhenPodsMove verifies that when a node has the maximum number of nominations, the next pod
// that is bound permits another one without waiting for the timer.
func TestProvisionPromisesMoreWhenPodsMove(t *testing.T) {
	w := newWorld()
	w.node("here", model.Initialized)
	for i := range plan.MostPromises + 1 {
		w.pending(fmt.Sprint("p", i), "")
	}
	passes, moved := ticks{make(chan time.Time, 10)}, make(chan struct{}, 1)
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		passes.to <- w.clock.Now()
		return &plan.Provision{Placed: []plan.Placement{{Node: "here", Pods: snap.Groups[0].Pods}}}
	})
	p.Moved = moved
	asleep := started(t, w.clock, p.Start)
	asleep()
	w.clock.Step(10 * time.Second)
	first := passes.next(t)
	asleep()
	moved <- struct{}{}
	waitForTimers(t, w.clock, 2)
	w.clock.Step(time.Second)
	if after := passes.next(t).Sub(first); after != time.Second {
		t.Errorf("pass after %s, want 1s", after)
	}
}

// started runs a loop and returns a function that waits until the loop sleeps on the expected number of timers.
func started(t *testing.T, clock *clocktesting.FakeClock, start func(context.Context) error) (asleep func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the loop ended with %v", err)
		}
	})
	return func() {
		t.Helper()
		waitForTimers(t, clock, 1)
	}
}

// until polls a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	for !holds() {
		if deadline.Err() != nil {
			t.Fatalf("condition not reached: %s", what)
		}
		runtime.Gosched()
	}
}

// ticks counts passes.
type ticks struct{ to chan time.Time }

func (c ticks) next(t *testing.T) time.Time {
	t.Helper()
	select {
	case at := <-c.to:
		return at
	case <-time.After(10 * time.Second):
		t.Fatal("no pass")
		return time.Time{}
	}
}

func TestProvisionWaitsForTheBatch(t *testing.T) {
	w := newWorld()
	passes := ticks{make(chan time.Time, 10)}
	bell := make(chan struct{}, 1)
	p := w.provision(func(*model.Snapshot) *plan.Provision {
		passes.to <- w.clock.Now()
		return &plan.Provision{}
	})
	p.Pending = bell
	asleep := started(t, w.clock, p.Start)

	// No event: the timer triggers.
	asleep()
	w.clock.Step(10 * time.Second)
	if at := passes.next(t).Sub(noon); at != 10*time.Second {
		t.Errorf("pass after %s, want 10s", at)
	}
	// Events every 0.9 s: the longest batch.
	ring := func() {
		t.Helper()
		bell <- struct{}{}
		until(t, "the bell is heard", func() bool { return len(bell) == 0 })
	}
	asleep()
	begin := w.clock.Now()
	ring()
	waitForTimers(t, w.clock, 3)
	for w.clock.Since(begin) < 9*time.Second {
		w.clock.Step(900 * time.Millisecond)
		ring()
		waitForTimers(t, w.clock, 3)
	}
	w.clock.Step(time.Second)
	if at := passes.next(t).Sub(begin); at != 10*time.Second {
		t.Errorf("pass %s after the first event, want 10s", at)
	}
	// One event and silence: the idle time.
	asleep()
	begin = w.clock.Now()
	ring()
	waitForTimers(t, w.clock, 3)
	w.clock.Step(time.Second)
	if at := passes.next(t).Sub(begin); at != time.Second {
		t.Errorf("pass %s after the event, want 1s", at)
	}
}

func waitForTimers(t *testing.T, clock *clocktesting.FakeClock, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%d timers run", n), func() bool { return clock.Waiters() >= n })
}

// TestProvisionComesBack verifies that failed creations are retried soon, at increasing intervals, and that success
// ends that.
func TestProvisionComesBack(t *testing.T) {
	w := newWorld()
	w.refuse = "claim-1"
	w.pending("a", "")
	passes := ticks{make(chan time.Time, 10)}
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		passes.to <- w.clock.Now()
		return &plan.Provision{Claims: []plan.NewClaim{{Name: "claim-1", Pool: "p", PoolUID: "pool-uid", Pods: podsOf(snap, "a")}}}
	})
	asleep := started(t, w.clock, p.Start)
	last := noon
	for i, pause := range []time.Duration{10, 1, 2, 4, 8, 10, 10} {
		asleep()
		w.clock.Step(pause * time.Second)
		at := passes.next(t)
		if at.Sub(last) != pause*time.Second {
			t.Errorf("pass %d after %s, want %ds", i, at.Sub(last), pause)
		}
		last = at
		if i == 5 {
			w.mu.Lock()
			w.refuse = ""
			w.mu.Unlock()
		}
	}
}

func TestDisruptLife(t *testing.T) {
	w := newWorld()
	w.node("a", model.Initialized)
	w.node("b", model.Initialized)
	w.bound("web", "b")
	d := w.disrupt()
	d.Tick(t.Context())
	want(t, w, "")
	w.clock.Step(30 * time.Second)
	d.Tick(t.Context())
	want(t, w, "set disruption reason Empty on claim c-a\ntaint node a\nwrite command ID (proposed) on claim c-a")
	w.clock.Step(time.Second)
	d.Tick(t.Context())
	want(t, w, "delete claim c-a")
	d.Tick(t.Context())
	want(t, w, "")
	delete(w.nodes, "c-a")
	d.Tick(t.Context())
	want(t, w, "")
	if n := testutil.ToFloat64(d.Metrics.DisruptionDecisions.WithLabelValues("delete", "empty", "empty")); n != 1 {
		t.Errorf("%v decisions, want 1", n)
	}
	if n := testutil.ToFloat64(d.Metrics.DisruptionDecisionsByPool.WithLabelValues("p", "delete", "empty", "empty")); n != 1 {
		t.Errorf("%v decisions about pool p, want 1", n)
	}
	w.node("broken", model.Initialized).Ready = false
	d.Tick(t.Context())
	if n := testutil.ToFloat64(d.Metrics.NodePoolsConsumingBudgets.WithLabelValues("p", "Empty")); n != 1 {
		t.Errorf("%v nodes consume the budgets, want the one that is not ready", n)
	}
	if n := testutil.ToFloat64(d.Metrics.NodePoolsAllowedDisruptions.WithLabelValues("p", "Empty")); n != 1 {
		t.Errorf("%v nodes may be disrupted, want the 1 that remains", n)
	}
}

// TestDisruptResumes verifies that a new process continues from the state on the claims, wherever the old one
// stopped, also with failing writes.
func TestDisruptResumes(t *testing.T) {
	for _, refused := range []string{"", "write command", "set disruption", "taint node", "delete claim"} {
		t.Run("refused: "+refused, func(t *testing.T) {
			w := newWorld()
			w.node("a", model.Initialized)
			w.clock.Step(time.Minute)
			w.refuse = refused
			for range 3 {
				w.disrupt().Tick(t.Context()) // a new process each time
				w.clock.Step(2 * time.Second)
			}
			w.refuse = ""
			for range 3 {
				d := w.disrupt()
				d.Tick(t.Context())
				w.clock.Step(2 * time.Second)
				d.Tick(t.Context())
			}
			if !w.nodes["c-a"].Deleting {
				t.Errorf("the empty node is kept; actions:\n%s", w.took())
			}
		})
	}
}

func TestDisruptRollsBackAndCleansUp(t *testing.T) {
	w := newWorld()
	w.node("a", model.Initialized)
	orphan := w.node("orphan", model.Initialized)
	orphan.Disrupted = true
	w.bound("web", "orphan")
	w.clock.Step(time.Minute)
	d := w.disrupt()
	d.Tick(t.Context())
	want(t, w, "clear the disruption reason on claim c-orphan\nset disruption reason Empty on claim c-a\ntaint node a\nuntaint node orphan\nwrite command ID (proposed) on claim c-a")
	w.bound("late", "a") // kube-scheduler had decided before it saw the taint
	w.clock.Step(2 * time.Second)
	d.Tick(t.Context())
	want(t, w, "clear the command on claim c-a\nclear the disruption reason on claim c-a\nuntaint node a")
	if n := testutil.ToFloat64(d.Metrics.DisruptionQueueFailures.WithLabelValues("delete", "empty", "empty")); n != 1 {
		t.Errorf("%v commands rolled back, want 1", n)
	}
}

func TestDisruptSaysWhatKeepsNodes(t *testing.T) {
	w := newWorld()
	w.node("a", model.Initialized).DoNotDisrupt = true
	w.node("b", model.Initialized)
	w.node("c", model.Initialized)
	w.pool.Budgets = []model.Budget{{Count: 0}}
	w.clock.Step(time.Minute)
	d := w.disrupt()
	sink := events.NewFakeRecorder(20)
	d.Recorder = telemetry.NewRecorder(sink, w.clock)
	d.Why = func(_ *model.Snapshot, v plan.Verdict) string { return "because of " + v.Node }
	d.Tick(t.Context())
	d.Tick(t.Context()) // no change
	wanted := []string{
		"Normal DisruptionBlocked because of a", // on the node
		"Normal DisruptionBlocked because of a", // on the claim
		"Normal DisruptionBlocked No allowed disruptions for disruption reason Empty due to blocking budget",
		"Normal Unconsolidatable NodeProtected: node a is protected by the annotation karpenter.sh/do-not-disrupt",
		"Normal Unconsolidatable NodeProtected: node a is protected by the annotation karpenter.sh/do-not-disrupt",
	}
	if diff := cmp.Diff(wanted, emitted(sink)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestDisruptWakesWhenANodeMayGo verifies that the loop does not wait for its poll interval when it knows when a node
// may be removed.
func TestDisruptWakesWhenANodeMayGo(t *testing.T) {
	for name, change := range map[string]func(*world, *model.NodeSpec){
		"consolidateAfter": func(w *world, _ *model.NodeSpec) { w.pool.ConsolidateAfter = 13 * time.Second },
		"no pod has come for a minute": func(w *world, n *model.NodeSpec) {
			w.pool.ConsolidateAfter, n.ExpectingSince = 0, noon.Add(13*time.Second-plan.Arrival)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			change(w, w.node("a", model.Initialized))
			passes := ticks{make(chan time.Time, 10)}
			d := w.disrupt()
			d.Propose = func(snap *model.Snapshot, _ bool) disruption.Proposal {
				passes.to <- w.clock.Now()
				return disruption.Propose(snap, disruption.Options{})
			}
			asleep := started(t, w.clock, d.Start)
			for _, pause := range []time.Duration{10, 3} { // the poll interval, then the node's own time
				asleep()
				before := w.clock.Now()
				w.clock.Step(pause * time.Second)
				if at := passes.next(t); at.Sub(before) != pause*time.Second {
					t.Errorf("pass after %s, want %ds", at.Sub(before), pause)
				}
			}
			asleep()
			w.clock.Step(time.Second) // command retry; no decision is needed
			asleep()
			w.mu.Lock()
			defer w.mu.Unlock()
			if !w.nodes["c-a"].Deleting {
				t.Error("the node is kept")
			}
		})
	}
}

// TestDisruptNotesWhoIsToCome verifies that for a node that a user deletes, for which there is no command, the loop
// records the destination of its pods.
func TestDisruptNotesWhoIsToCome(t *testing.T) {
	w := newWorld()
	w.pool.ConsolidateAfter = -1
	w.node("leaving", model.Initialized).Deleting = true
	w.bound("web", "leaving")
	w.node("bought", model.Initialized).BoughtFor = []string{"uid-web"}
	d := w.disrupt()
	d.Tick(t.Context())
	want(t, w, "note on claim c-bought that pods are sent to it")
	w.clock.Step(10 * time.Second)
	d.Tick(t.Context())
	want(t, w, "")
	w.clock.Step(30 * time.Second)
	d.Tick(t.Context())
	want(t, w, "note on claim c-bought that pods are sent to it")
}

// TestDisruptRestsFromTheSearch verifies that after a long search the loop does not search again for a while,
// whatever changes. Decisions without the search continue, and the search runs when the pause is over.
func TestDisruptRestsFromTheSearch(t *testing.T) {
	w := newWorld()
	w.node("a", model.Initialized)
	d := w.disrupt()
	var searched []bool
	d.Propose = func(snap *model.Snapshot, search bool) disruption.Proposal {
		searched = append(searched, search)
		if search {
			w.clock.Step(2 * time.Second)
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
		w.clock.Step(pass.after)
		if pass.come != "" {
			w.node(pass.come, model.Initialized)
		}
		d.Tick(t.Context())
		if diff := cmp.Diff(pass.want, searched); diff != "" {
			t.Errorf("%s: searched (-want +got):\n%s", pass.name, diff)
		}
	}
}

func TestHistoryForgets(t *testing.T) {
	h := loop.NewHistory(2)
	for i := range 3 {
		h.Add(loop.Record{Provision: &plan.Provision{Claims: make([]plan.NewClaim, i)}})
	}
	var sizes []int
	for _, r := range h.Records() {
		sizes = append(sizes, len(r.Provision.Claims))
	}
	if diff := cmp.Diff([]int{1, 2}, sizes); diff != "" {
		t.Errorf("records (-want +got):\n%s", diff)
	}
	heavy := &model.Snapshot{Groups: []*model.Group{{Matches: make([]int, 3<<20)}}}
	for range 3 {
		h.Add(loop.Record{Snapshot: heavy})
	}
	if n := len(h.Records()); n != 1 {
		t.Errorf("%d records of large snapshots are kept, want the last", n)
	}
	var none *loop.History
	none.Add(loop.Record{})
	if none.Records() != nil {
		t.Error("a nil history keeps records")
	}
}

// TestTimesOfTheEngine verifies that the two durations that the engine defines, for use without a controller, equal
// the controller's.
func TestTimesOfTheEngine(t *testing.T) {
	timers := controller.Production()
	if timers.CordonQuiet != plan.CordonQuiet || timers.CommandTimeout != plan.CommandTimeout {
		t.Errorf("%s and %s, want %s and %s", timers.CordonQuiet, timers.CommandTimeout, plan.CordonQuiet, plan.CommandTimeout)
	}
}
