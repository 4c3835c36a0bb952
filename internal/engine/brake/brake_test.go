package brake_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/brake"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// braked is a pool, the pods of one ReplicaSet, and the nodes that a controller launches for them.
type braked struct {
	now  time.Time
	pool model.PoolSpec
	// other is a second pool; there is none if it has no name.
	other model.PoolSpec
	brake brake.Brake
	nodes map[string]model.NodeSpec
	pods  map[string]model.PodSpec
	left  []model.Departure
	// deaf makes writes to the pool fail, unwritable also makes removals fail.
	deaf, unwritable bool
	// starts are the times at which pauses began, ends the times at which they end.
	starts, ends []time.Time
	launched     int
}

func newBraked() *braked {
	return &braked{now: plantest.Noon, nodes: map[string]model.NodeSpec{}, pods: map[string]model.PodSpec{},
		pool: model.PoolSpec{Name: "p", UID: "pool-uid", Catalog: &model.Catalog{}}}
}

// wantPause verifies that launches were paused after four rounds, and what the pause has as a reason.
func (w *braked) wantPause(t *testing.T, rounds int, why string) {
	t.Helper()
	if rounds != 4 {
		t.Errorf("%d launches before the pause, want 4", rounds)
	}
	if len(w.pool.Holds) != 1 {
		t.Fatalf("pauses %+v, want one", w.pool.Holds)
	}
	if got := w.pool.Holds[0].Why; !strings.Contains(got, why) {
		t.Errorf("the reason is %q, want %q", got, why)
	}
}

func (w *braked) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	b.UpsertPool(w.pool)
	if w.other.Name != "" {
		b.UpsertPool(w.other)
	}
	for _, n := range w.nodes {
		b.UpsertNode(n)
	}
	for _, p := range w.pods {
		b.UpsertPod(p)
	}
	return b.Snapshot(w.now)
}

// pend adds a pending pod of the ReplicaSet.
func (w *braked) pend(name string) {
	w.pods[name] = model.PodSpec{UID: name, Namespace: "default", Name: name, Created: w.now, State: model.Pending, Reschedulable: true,
		Controller: model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web-uid"}}
}

func (w *braked) bind(pod, node string) {
	p := w.pods[pod]
	p.State, p.Node = model.Bound, node
	w.pods[pod] = p
}

// launch plans a claim for the pods, and creates it unless the launch has to wait. It reports whether it was created.
func (w *braked) launch(claim string, pods ...string) bool {
	snap := w.snapshot()
	p := &plan.Provision{Claims: []plan.NewClaim{{Name: claim, Pool: "p", PoolUID: "pool-uid"}}}
	for _, g := range snap.Groups {
		for _, pod := range g.Pods {
			if slices.Contains(pods, pod.UID) {
				p.Claims[0].Pods = append(p.Claims[0].Pods, pod)
				p.Order = append(p.Order, pod)
			}
		}
	}
	p = w.brake.Restrain(snap, p)
	if len(p.Claims) == 0 {
		return false
	}
	w.brake.Launched(w.now, p.Claims)
	w.launched++
	w.nodes[claim] = model.NodeSpec{Name: claim, UID: claim, Claim: claim, ClaimUID: claim + w.now.String(), Pool: "p", Created: w.now, Stage: model.Launching}
	return true
}

func (w *braked) stage(claim string, stage model.Stage) {
	n := w.nodes[claim]
	n.Stage, n.Ready = stage, stage == model.Initialized
	w.nodes[claim] = n
}

// pass runs one pass of the loop after the given time.
func (w *braked) pass(later time.Duration) {
	w.now = w.now.Add(later)
	for _, a := range w.brake.Look(w.snapshot(), w.left) {
		switch a := a.(type) {
		case plan.HoldLaunches:
			if w.deaf {
				continue
			}
			w.pool.Holds = []model.LaunchHold{a.Hold}
			w.starts, w.ends = append(w.starts, w.now), append(w.ends, a.Hold.Until)
		case plan.ReleaseLaunches:
			if !w.unwritable {
				w.pool.Holds = nil
			}
		}
	}
	w.left = nil
}

// preempted is a round of the loop: a node is launched, the pod is bound, a daemon preempts it, and the ReplicaSet
// creates another pod.
func (w *braked) preempted(i int) bool {
	pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
	w.pend(pod)
	if !w.launch(claim, pod) {
		delete(w.pods, pod)
		return false
	}
	w.stage(claim, model.Initialized)
	w.pass(2 * time.Second)
	w.bind(pod, claim)
	w.pass(2 * time.Second)
	w.left = append(w.left, model.Departure{UID: pod, Namespace: "default", Name: pod, Node: claim, Ran: 2 * time.Second, Preempted: true,
		Controller: model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web-uid"}})
	delete(w.pods, pod)
	w.pods["agent-"+claim] = model.PodSpec{UID: "agent-" + claim, Namespace: "agents", Name: "agent-" + claim, Node: claim, State: model.Bound, Daemon: true,
		Priority: 1000, Created: w.now, Controller: model.Owner{Kind: "DaemonSet", Name: "agent", UID: "agent"}}
	w.pass(time.Second)
	delete(w.nodes, claim)
	delete(w.pods, "agent-"+claim)
	w.pass(time.Second)
	return true
}

// TestBrakeEndsALoop: four futile launches, then one after each pause. The reason describes what happened.
func TestBrakeEndsALoop(t *testing.T) {
	w := newBraked()
	for i := 0; w.now.Before(plantest.Noon.Add(3 * time.Hour)); i++ {
		if !w.preempted(i) {
			w.pass(5 * time.Second)
		}
	}
	var pauses []time.Duration
	for i := range w.starts {
		pauses = append(pauses, w.ends[i].Sub(w.starts[i]).Round(time.Minute))
	}
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute}
	for len(want) < len(pauses) {
		want = append(want, 30*time.Minute)
	}
	if diff := cmp.Diff(want, pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if w.launched > 4+len(pauses) {
		t.Errorf("%d nodes were launched in three hours with %d pauses", w.launched, len(pauses))
	}
	hold := w.pool.Holds[0]
	for _, part := range []string{"was preempted on node claim-", "after 2s", "DaemonSet agents/agent"} {
		if !strings.Contains(hold.Why, part) {
			t.Errorf("the reason does not contain %q: %s", part, hold.Why)
		}
	}
	if hold.Name != "ReplicaSet default/web" {
		t.Errorf("the hold is for %s", hold.Name)
	}
}

// TestBrakeAfterRestart: the pause is stored on the pool. Another process applies it, and continues with the next
// longer one.
func TestBrakeAfterRestart(t *testing.T) {
	w := newBraked()
	for i := range 4 {
		w.preempted(i)
	}
	w.brake = brake.Brake{}
	w.pass(time.Second)
	if w.preempted(10) {
		t.Fatal("a node was launched within the pause")
	}
	w.pass(time.Minute)
	if !w.preempted(11) {
		t.Fatal("no node was launched after the pause")
	}
	if len(w.starts) != 2 || w.ends[1].Sub(w.starts[1]).Round(time.Minute) != 2*time.Minute {
		t.Errorf("pauses from %v to %v, want the second to last two minutes", w.starts, w.ends)
	}
}

// TestBrakeReleases: a pod of the controller that has run for a minute, on any node, ends the pause.
func TestBrakeReleases(t *testing.T) {
	w := newBraked()
	for i := range 4 {
		w.preempted(i)
	}
	w.nodes["other"] = model.NodeSpec{Name: "other", UID: "other", Stage: model.Initialized, Ready: true}
	w.pend("web-0")
	w.pass(time.Second)
	if len(w.pool.Holds) != 1 {
		t.Fatalf("holds %v", w.pool.Holds)
	}
	w.bind("web-0", "other")
	for range 65 {
		w.pass(time.Second)
	}
	if len(w.pool.Holds) > 0 {
		t.Errorf("holds %v, after a minute", w.pool.Holds)
	}
	w.pend("web-1")
	if !w.launch("next", "web-1") {
		t.Error("the next launch waits")
	}
}

// TestBrakeLetsPass: rounds that resemble a loop and are none. Each case is a round that runs ten times within 15
// minutes.
func TestBrakeLetsPass(t *testing.T) {
	for name, round := range map[string]func(w *braked, pod, claim string){
		"short jobs": func(w *braked, pod, claim string) {
			w.stage(claim, model.Initialized)
			w.bind(pod, claim)
			w.pass(5 * time.Second)
			w.left = append(w.left, model.Departure{UID: pod, Name: pod, Node: claim, Ran: 5 * time.Second, Controller: model.Owner{Kind: "ReplicaSet", UID: "web-uid"}})
			delete(w.pods, pod)
			w.pass(time.Second)
		},
		"a node is interrupted, and its pods evicted": func(w *braked, pod, claim string) {
			w.stage(claim, model.Initialized)
			w.bind(pod, claim)
			w.pass(5 * time.Second)
			delete(w.pods, pod)
			w.pend(pod + "-again")
		},
		"scaled down before the node came": func(w *braked, pod, claim string) {
			w.stage(claim, model.Registered)
			w.pass(5 * time.Second)
			delete(w.pods, pod)
		},
		"the cloud has none": func(w *braked, pod, claim string) { w.pass(5 * time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newBraked()
			for i := range 10 {
				pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
				w.pend(pod)
				if !w.launch(claim, pod) {
					t.Fatalf("launch %d has to wait: %+v", i+1, w.pool.Holds)
				}
				w.pass(time.Second)
				round(w, pod, claim)
				delete(w.nodes, claim)
				w.pass(30 * time.Second)
			}
		})
	}
	t.Run("a burst", func(t *testing.T) {
		w := newBraked()
		for i := range 12 { // twelve passes, whose nodes take long to register
			pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
			w.pend(pod)
			if !w.launch(claim, pod) {
				t.Fatalf("launch %d has to wait", i+1)
			}
			w.pass(10 * time.Second)
		}
	})
}

// TestBrakeCountsNodesWithoutPods: nodes that are removed again and again while the pod is still pending are a loop,
// registered or not. The claims of one pass count once.
func TestBrakeCountsNodesWithoutPods(t *testing.T) {
	for stage, fate := range map[model.Stage]string{model.Launched: "never registered", model.Initialized: "was removed"} {
		w := newBraked()
		w.pend("pod")
		rounds := 0
		for ; rounds < 10; rounds++ {
			one, two := fmt.Sprintf("a-%d", rounds), fmt.Sprintf("b-%d", rounds)
			if !w.launch(one, "pod") || !w.launch(two, "pod") {
				break
			}
			w.stage(one, stage)
			w.stage(two, stage)
			w.pass(10 * time.Second)
			delete(w.nodes, one)
			delete(w.nodes, two)
			w.pass(time.Second)
		}
		w.wantPause(t, rounds, fate)
	}
}

// TestBrakeCountsNodesThatNeverRegister: each claim fails 15 minutes after its launch, so that no two launches are
// within 15 minutes. They still count as a loop.
func TestBrakeCountsNodesThatNeverRegister(t *testing.T) {
	w := newBraked()
	w.pend("pod")
	for i := 0; w.now.Before(plantest.Noon.Add(4 * time.Hour)); i++ {
		claim := fmt.Sprintf("claim-%d", i)
		if !w.launch(claim, "pod") {
			w.pass(10 * time.Second)
			continue
		}
		w.stage(claim, model.Launched)
		for range 90 {
			w.pass(10 * time.Second)
		}
		delete(w.nodes, claim)
		w.pass(10 * time.Second)
	}
	var pauses []time.Duration
	for i := range w.starts {
		pauses = append(pauses, w.ends[i].Sub(w.starts[i]).Round(time.Minute))
	}
	want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute}
	if !slices.Equal(pauses[:min(len(pauses), len(want))], want) || w.starts[0].Sub(plantest.Noon) > 62*time.Minute {
		t.Errorf("pauses %v from %v, want %v after the first four launches of 15 minutes each", pauses, w.starts, want)
	}
	if why := w.pool.Holds[0].Why; !strings.Contains(why, "never registered") {
		t.Errorf("the reason does not mention nodes that never registered: %s", why)
	}
}

// TestBrakeForgetsOldFailures: futile launches more than 15 minutes apart are not a loop.
func TestBrakeForgetsOldFailures(t *testing.T) {
	w := newBraked()
	for i := range 10 {
		if !w.preempted(i) {
			t.Fatalf("launch %d waits: %+v", i+1, w.pool.Holds)
		}
		for range 30 { // within 15 minutes there are three
			w.pass(10 * time.Second)
		}
	}
}

// TestBrakeWithoutWrites: a pause that cannot be written still holds launches, for its normal length. It is written as
// soon as writes succeed.
func TestBrakeWithoutWrites(t *testing.T) {
	w := newBraked()
	w.deaf = true
	for i := range 4 {
		w.preempted(i)
	}
	if w.preempted(4) || len(w.pool.Holds) > 0 {
		t.Fatal("a node was launched within a pause that is not written")
	}
	w.pass(20 * time.Second)
	if n := w.brake.Unwritten(w.snapshot()); n != 1 {
		t.Errorf("%d pauses are not written, want 1", n)
	}
	w.deaf = false
	w.pass(10 * time.Second)
	if n := w.brake.Unwritten(w.snapshot()); n != 0 {
		t.Errorf("%d pauses are not written, want none", n)
	}
	if holds := w.pool.Holds; len(holds) != 1 || holds[0].Until.Sub(w.now) > time.Minute {
		t.Fatalf("at %v the pool has the pauses %+v, want one of a minute", w.now, holds)
	}
	w.pass(time.Minute)
	if !w.preempted(5) {
		t.Fatal("no node was launched after the pause")
	}
	if pause := w.pool.Holds[0].Until.Sub(w.now).Round(time.Minute); pause != 2*time.Minute {
		t.Errorf("the second pause lasts %v, want 2 minutes", pause)
	}
}

// TestBrakeKeepsReasons: the pool may lack the fates of the nodes; the refusal of the pod contains them from memory.
func TestBrakeKeepsReasons(t *testing.T) {
	w := newBraked()
	for i := range 4 {
		w.preempted(i)
	}
	w.pool.Holds[0].Why = ""
	w.pass(time.Second)
	w.pass(time.Second)
	w.pend("next")
	snap := w.snapshot()
	p := &plan.Provision{Claims: []plan.NewClaim{{Name: "c", Pool: "p", PoolUID: "pool-uid", Pods: snap.Groups[0].Pods}}}
	refused := w.brake.Restrain(snap, p).Refused
	if len(refused) != 1 || !strings.Contains(refused[0].Verdict.Rejection.Reason, "was preempted on node claim-") {
		t.Errorf("refused %+v, want the reason of the pause", refused)
	}
}

// TestBrakeLifted: a pause that is removed from the pool is over.
func TestBrakeLifted(t *testing.T) {
	w := newBraked()
	for i := range 4 {
		w.preempted(i)
	}
	w.pass(time.Second)
	w.pool.Holds = nil
	w.pass(time.Second)
	if len(w.pool.Holds) > 0 || !w.preempted(5) {
		t.Errorf("launches still wait: %+v", w.pool.Holds)
	}
}

// TestBrakeOfManyControllers: a pool stores a limited number of pauses. The pauses of further controllers also hold,
// and no two of them alternate on the pool.
func TestBrakeOfManyControllers(t *testing.T) {
	const many = model.MostHolds + 10
	w := newBraked()
	var claims []plan.NewClaim
	for i := range many {
		pod := fmt.Sprintf("pod-%d", i)
		w.pods[pod] = model.PodSpec{UID: pod, Namespace: "default", Name: pod, State: model.Pending, Reschedulable: true,
			Controller: model.Owner{Kind: "Job", Name: pod, UID: "job-" + pod}}
	}
	for _, g := range w.snapshot().Groups {
		for _, p := range g.Pods {
			claims = append(claims, plan.NewClaim{Name: p.Name, Pool: "p", PoolUID: "pool-uid", Pods: []*model.Pod{p}})
		}
	}
	holds := map[string]model.LaunchHold{}
	look := func() (written int) {
		w.now = w.now.Add(time.Second)
		for _, a := range w.brake.Look(w.snapshot(), w.left) {
			if a, holding := a.(plan.HoldLaunches); holding {
				if len(holds) < model.MostHolds { // all end in the same second: the first ones remain
					holds[a.Hold.Owner] = a.Hold
				}
				written++
			}
		}
		w.left, w.pool.Holds = nil, nil
		for _, owner := range slices.Sorted(maps.Keys(holds)) {
			w.pool.Holds = append(w.pool.Holds, holds[owner])
		}
		return written
	}
	for range 4 {
		w.brake.Launched(w.now, claims)
		for _, c := range claims {
			p := c.Pods[0]
			w.left = append(w.left, model.Departure{UID: p.UID, Namespace: p.Namespace, Name: p.Name, Node: "n", Ran: time.Second, Preempted: true, Controller: p.Controller})
		}
		look()
	}
	if n := look(); n > 0 {
		t.Errorf("%d pauses were written again", n)
	}
	snap := w.snapshot()
	if n := w.brake.Unwritten(snap); n != many-model.MostHolds {
		t.Errorf("%d pauses are on no pool, want %d", n, many-model.MostHolds)
	}
	if kept := w.brake.Restrain(snap, &plan.Provision{Claims: claims}); len(kept.Claims) > 0 {
		t.Errorf("%d claims may be launched, want none", len(kept.Claims))
	}
}

// TestRestrain: a claim that other pods need too is still launched.
func TestRestrain(t *testing.T) {
	w := newBraked()
	w.pool.Holds = []model.LaunchHold{{Owner: "web-uid", Name: "ReplicaSet default/web", Failures: 4, Until: w.now.Add(time.Minute), Why: "w"}}
	w.pend("web")
	w.pods["other"] = model.PodSpec{UID: "other", Namespace: "default", Name: "other", State: model.Pending}
	snap := w.snapshot()
	pods := map[string]*model.Pod{}
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			pods[p.UID] = p
		}
	}
	p := &plan.Provision{Order: []*model.Pod{pods["web"], pods["other"]}, Claims: []plan.NewClaim{
		{Name: "alone", Pods: []*model.Pod{pods["web"]}}, {Name: "mixed", Pods: []*model.Pod{pods["web"], pods["other"]}}}}
	got := brake.Restrain(snap, p)
	if len(got.Claims) != 1 || got.Claims[0].Name != "mixed" {
		t.Errorf("claims %v, want mixed", got.Claims)
	}
	if len(got.Refused) != 1 || got.Refused[0].Verdict.Code != plan.LaunchesHeld {
		t.Errorf("refused %+v, want the pods of one controller, because of its pause", got.Refused)
	}
	if len(p.Claims) != 2 || len(p.Order) != 2 {
		t.Error("the plan itself was changed")
	}
	w.now = w.now.Add(time.Hour)
	if got := brake.Restrain(w.snapshot(), p); !cmp.Equal(len(got.Claims), 2) {
		t.Errorf("claims %v after the pause", got.Claims)
	}
}
