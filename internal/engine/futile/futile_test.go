package futile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/futile"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// web is the ReplicaSet that owns the pods.
var web = model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web-uid"}

// world is a pool, the pods of one ReplicaSet, and the nodes that are launched for them.
type world struct {
	now      time.Time
	pool     model.PoolSpec
	launches futile.Launches
	nodes    map[string]model.NodeSpec
	pods     map[string]model.PodSpec
	left     []model.Departure
	// scope is that of the pauses that are looked at: the ReplicaSet's, or a pool's.
	scope string
	// deaf makes writes of pauses fail, and unending their removal.
	deaf, unending bool
	// pauses are the lengths of the pauses that began.
	pauses   []time.Duration
	launched int
}

func newWorld() *world {
	return &world{scope: web.UID, now: plantest.Noon, nodes: map[string]model.NodeSpec{}, pods: map[string]model.PodSpec{},
		pool: model.PoolSpec{Name: "p", UID: "pool-uid", Catalog: &model.Catalog{}}}
}

func (w *world) snapshot() *model.Snapshot {
	b := model.NewBuilder()
	b.UpsertPool(w.pool)
	for _, n := range w.nodes {
		b.UpsertNode(n)
	}
	for _, p := range w.pods {
		b.UpsertPod(p)
	}
	return b.Snapshot(w.now)
}

// paused returns the pause that is looked at.
func (w *world) paused() pause.Pause {
	return w.pool.Pauses.Of(pause.Key{Reason: pause.Launch, Scope: w.scope})
}

// pend adds a pending pod of the ReplicaSet.
func (w *world) pend(name string) {
	w.pods[name] = model.PodSpec{UID: name, Namespace: "default", Name: name, Created: w.now, State: model.Pending, Reschedulable: true, Controller: web}
}

func (w *world) bind(pod, node string) {
	p := w.pods[pod]
	p.State, p.Node = model.Bound, node
	w.pods[pod] = p
}

func (w *world) leave(pod, node string, preempted bool) {
	w.left = append(w.left, model.Departure{UID: pod, Namespace: "default", Name: pod, Node: node, Ran: 2 * time.Second, Preempted: preempted, Controller: web})
	delete(w.pods, pod)
}

// judge runs the first part of a pass with the plan, and returns the plan without what has to wait.
func (w *world) judge(p *plan.Provision) *plan.Provision {
	for _, a := range w.launches.Judge(w.snapshot(), p, w.left) {
		switch a := a.(type) {
		case plan.SetPause:
			if w.deaf {
				continue
			}
			w.pool.Pauses = w.pool.Pauses.With(a.Pause)
			if a.Pause.Scope == w.scope && a.Pause.Active(w.now) {
				w.pauses = append(w.pauses, a.Pause.Until.Sub(w.now).Round(time.Minute))
			}
		case plan.EndPause:
			if !w.unending {
				w.pool.Pauses = w.pool.Pauses.Without(a.Key)
			}
		}
	}
	w.left = nil
	return w.launches.Restrain(w.snapshot(), p)
}

// launch is a pass that plans a node for each of the claims, for the pod, and launches what need not wait. It reports
// whether anything was.
func (w *world) launch(pod string, claims ...string) bool {
	p := &plan.Provision{}
	for _, claim := range claims {
		p.Claims = append(p.Claims, plan.NewClaim{Name: claim, Pool: "p", PoolUID: "pool-uid"})
		snap := w.snapshot()
		var waiting []*model.Pod
		for _, g := range snap.Groups {
			waiting = append(waiting, g.Pods...)
		}
		for _, n := range snap.Nodes {
			if n.Deleting {
				waiting = append(waiting, n.Pods...)
			}
		}
		last := &p.Claims[len(p.Claims)-1]
		for _, needs := range waiting {
			if needs.UID == pod {
				last.Pods, p.Order = append(last.Pods, needs), append(p.Order, needs)
			}
		}
	}
	p = w.judge(p)
	w.launches.Launched(w.snapshot(), p.Claims)
	for _, c := range p.Claims {
		w.launched++
		w.nodes[c.Name] = model.NodeSpec{Name: c.Name, UID: c.Name, Claim: c.Name, ClaimUID: c.Name + w.now.String(), Pool: "p", Created: w.now, Stage: model.Launching}
	}
	return len(p.Claims) > 0
}

// joins makes the claim's node reach the stage, with the taints.
func (w *world) joins(claim string, stage model.Stage, taints ...model.Taint) {
	n := w.nodes[claim]
	n.Stage, n.Ready, n.Taints = stage, stage == model.Initialized, taints
	w.nodes[claim] = n
}

// pass runs a pass without pending work after the given time.
func (w *world) pass(later time.Duration) {
	w.now = w.now.Add(later)
	w.judge(&plan.Provision{})
}

// preempted is a round of the loop: a node is launched, the pod is bound, a daemon preempts it, and the node is removed.
func (w *world) preempted(i int) bool {
	pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
	w.pend(pod)
	if !w.launch(pod, claim) {
		delete(w.pods, pod)
		return false
	}
	w.joins(claim, model.Initialized)
	w.bind(pod, claim)
	w.pass(2 * time.Second)
	w.leave(pod, claim, true)
	w.pass(time.Second)
	delete(w.nodes, claim)
	w.pass(time.Second)
	return true
}

// loop runs rounds for the given time. A round returns whether a node was launched.
func (w *world) loop(length time.Duration, round func(i int) bool) {
	for i := 0; w.now.Before(plantest.Noon.Add(length)); i++ {
		if !round(i) {
			w.pass(5 * time.Second)
		}
	}
}

// wantLoop verifies that four nodes were launched, and one after each pause, and what the reason is.
func (w *world) wantLoop(t *testing.T, why string) {
	t.Helper()
	var want []time.Duration
	for _, minutes := range []time.Duration{1, 2, 4, 8, 16} {
		want = append(want, minutes*time.Minute)
	}
	for len(want) < len(w.pauses) {
		want = append(want, 30*time.Minute)
	}
	if diff := cmp.Diff(want, w.pauses); diff != "" {
		t.Errorf("pauses (-want +got):\n%s", diff)
	}
	if w.launched > 4+len(w.pauses) {
		t.Errorf("%d nodes were launched with %d pauses", w.launched, len(w.pauses))
	}
	name := "launches for ReplicaSet default/web"
	if w.scope != web.UID {
		name = "launches from NodePool p for pods that do not tolerate the taint surprise:NoSchedule"
	}
	if got := w.paused(); !strings.Contains(got.Why, why) || got.Name != name {
		t.Errorf("the pause is of %q: %q, want %q of %q", got.Name, got.Why, why, name)
	}
}

// TestPreemption: on each node that is launched for a pod, another pod preempts it, and its controller creates it again.
func TestPreemption(t *testing.T) {
	w := newWorld()
	w.loop(3*time.Hour, w.preempted)
	w.wantLoop(t, "was preempted on node claim-")
}

// TestNodesWithoutPods: nodes that are removed while the pod is pending, registered or not. The claims of one plan count
// once.
func TestNodesWithoutPods(t *testing.T) {
	for stage, why := range map[model.Stage]string{model.Launched: "never registered", model.Initialized: "was removed"} {
		w := newWorld()
		w.pend("pod")
		w.loop(3*time.Hour, func(i int) bool {
			one, two := fmt.Sprintf("a-%d", i), fmt.Sprintf("b-%d", i)
			if !w.launch("pod", one, two) {
				return false
			}
			w.launched-- // two for a plan
			w.joins(one, stage)
			w.joins(two, stage)
			w.pass(10 * time.Second)
			delete(w.nodes, one)
			delete(w.nodes, two)
			return true
		})
		w.wantLoop(t, why)
	}
}

// TestRoomOfBuffer: the node for the room of a buffer joins with a taint, and a command removes it as empty while the next
// node is planned. Nothing waits for the room, so its launches pause after the first failure.
func TestRoomOfBuffer(t *testing.T) {
	w := newWorld()
	w.pend("pod")
	pod := w.pods["pod"]
	pod.Virtual = model.VirtualBuffer
	w.pods["pod"] = pod
	launch := func(claim string) bool {
		snap := w.snapshot()
		p := w.judge(&plan.Provision{Virtual: &plan.Provision{Claims: []plan.NewClaim{
			{Name: claim, Pool: "p", PoolUID: "pool-uid", Pods: snap.Virtual[0].Pods}}}})
		if p.Virtual == nil || len(p.Virtual.Claims) == 0 {
			return false
		}
		w.launches.Launched(w.snapshot(), p.Virtual.Claims)
		w.nodes[claim] = model.NodeSpec{Name: claim, UID: claim, Claim: claim, ClaimUID: claim, Pool: "p", Created: w.now}
		return true
	}
	if !launch("first") {
		t.Fatal("the first launch waits")
	}
	w.joins("first", model.Initialized, model.Taint{Key: "surprise", Effect: model.NoSchedule})
	w.pass(time.Second)
	n := w.nodes["first"]
	n.Command = "empty"
	w.nodes["first"] = n
	w.pass(time.Second)
	if launch("second") {
		t.Error("a second node is launched for the room while the first, on which it cannot be, is being removed")
	}
	if why := w.paused().Why; !strings.Contains(why, "surprise:NoSchedule") {
		t.Errorf("the pause is because of %q, want the taint", why)
	}
}

// ask adds virtual pods of the ReplicaSet.
func (w *world) ask(names ...string) {
	for _, name := range names {
		w.pend(name)
		pod := w.pods[name]
		pod.Virtual = model.VirtualReplica
		w.pods[name] = pod
	}
}

// launchVirtual is a pass that plans claims, by name with their virtual pods. It returns those that are launched.
func (w *world) launchVirtual(t *testing.T, planned map[string][]string) []string {
	t.Helper()
	virtual, p := w.snapshot().VirtualPods(), &plan.Provision{Virtual: &plan.Provision{}}
	for _, name := range slices.Sorted(maps.Keys(planned)) {
		claim := plan.NewClaim{Name: name, Pool: "p", PoolUID: "pool-uid"}
		for _, pod := range planned[name] {
			claim.Pods = append(claim.Pods, virtual[pod])
		}
		p.Virtual.Claims = append(p.Virtual.Claims, claim)
		p.Virtual.Order = append(p.Virtual.Order, claim.Pods...)
	}
	kept := w.judge(p).Virtual
	w.launches.Launched(w.snapshot(), kept.Claims)
	var names []string
	pods := 0
	for _, c := range kept.Claims {
		names, pods = append(names, c.Name), pods+len(c.Pods)
		w.launched++
		w.nodes[c.Name] = model.NodeSpec{Name: c.Name, UID: c.Name, Claim: c.Name, ClaimUID: c.Name, Pool: "p",
			Created: w.now, Stage: model.Launching}
	}
	if len(kept.Order) != pods {
		t.Errorf("the plan has %d pods in its order and %d on its claims", len(kept.Order), pods)
	}
	return names
}

// TestReplicasOnce: a virtual pod of a workload has a node launched for it once, also if another pod takes its room. With
// others that have none yet it may be on a further node, and when it exists, or is asked for anew, it gets one.
func TestReplicasOnce(t *testing.T) {
	w := newWorld()
	launched := func(planned map[string][]string) []string { return w.launchVirtual(t, planned) }
	check := func(when string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	w.ask("a", "b", "c")
	check("at first", launched(map[string][]string{"1": {"a"}, "2": {"b"}}), "1", "2")
	check("when their room is taken", launched(map[string][]string{"3": {"a", "b"}, "4": {"c"}}), "4")
	w.ask("d")
	check("with one that is new", launched(map[string][]string{"5": {"a", "d"}, "6": {"b"}}), "5")
	delete(w.pods, "a")
	check("when one exists", launched(map[string][]string{"7": {"b"}}))
	w.ask("a")
	check("when it is asked for again", launched(map[string][]string{"8": {"a"}, "9": {"b", "c"}}), "8")
}

// TestReplicasAgain: when the claim for a virtual pod is gone before it has become a node, another one is launched, also if an
// earlier one for the pod exists. When the node has joined, none is.
func TestReplicasAgain(t *testing.T) {
	w := newWorld()
	w.ask("a", "b")
	check := func(when, claim string, pods []string, want bool) {
		t.Helper()
		if got := len(w.launchVirtual(t, map[string][]string{claim: pods})) > 0; got != want {
			t.Errorf("%s: launched: %t, want %t", when, got, want)
		}
		w.now = w.now.Add(time.Second)
	}
	check("at first", "1", []string{"a"}, true)
	check("while it is launched", "2", []string{"a"}, false)
	delete(w.nodes, "1")
	check("when the cloud has no capacity", "3", []string{"a"}, true)
	check("while another is launched, and the first is remembered", "4", []string{"a"}, false)
	check("with a pod that has none", "5", []string{"a", "b"}, true)
	delete(w.nodes, "3")
	check("when an earlier claim is gone", "6", []string{"a", "b"}, false)
	delete(w.nodes, "5")
	check("when the latest claim is gone", "7", []string{"a", "b"}, true)
	w.joins("7", model.Registered)
	w.pass(time.Second)
	delete(w.nodes, "7")
	check("when a node is gone", "8", []string{"a", "b"}, false)
}

// TestReplicasPause: claims for a virtual pod whose machines never register pause like those for pending pods.
func TestReplicasPause(t *testing.T) {
	w := newWorld()
	w.ask("a")
	w.loop(6*time.Hour, func(i int) bool {
		claim := fmt.Sprintf("claim-%d", i)
		if len(w.launchVirtual(t, map[string][]string{claim: {"a"}})) == 0 {
			return false
		}
		w.joins(claim, model.Launched)
		w.pass(15 * time.Minute)
		delete(w.nodes, claim)
		return true
	})
	w.wantLoop(t, "never registered")
}

// TestSlowFailures: nodes that never register, and whose claims are given up 15 minutes after the launch.
func TestSlowFailures(t *testing.T) {
	w := newWorld()
	w.pend("pod")
	w.loop(6*time.Hour, func(i int) bool {
		claim := fmt.Sprintf("claim-%d", i)
		if !w.launch("pod", claim) {
			return false
		}
		w.joins(claim, model.Launched)
		for range 90 {
			w.pass(10 * time.Second)
		}
		n := w.nodes[claim]
		n.Deleting = true // its machine is terminated while the next node is planned
		w.nodes[claim] = n
		return true
	})
	w.wantLoop(t, "never registered")
}

// TestEmptyNodes: each node joins with a taint that the pod does not tolerate, and remains. The pod remains the same, or
// its controller creates another one each time. The launches of the pool pause.
func TestEmptyNodes(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newWorld()
		w.scope = "p taint surprise:NoSchedule"
		w.pend("pod-0")
		pod := "pod-0"
		w.loop(3*time.Hour, func(i int) bool {
			claim := fmt.Sprintf("claim-%d", i)
			if !w.launch(pod, claim) {
				return false
			}
			w.pass(time.Second)
			w.joins(claim, model.Initialized, model.Taint{Key: "surprise", Effect: model.NoSchedule})
			if again {
				delete(w.pods, pod)
				pod = fmt.Sprintf("pod-%d", i+1)
				w.pend(pod)
			}
			w.pass(time.Second)
			return true
		})
		w.wantLoop(t, "has the taint surprise:NoSchedule, which the pods do not tolerate: add it to startupTaints")
	}
}

// TestRemovedBetweenPasses: each node joins, with a taint or without, and is removed as empty before the next pass, which
// has not seen it. With the taint, launches of the pool pause, otherwise those for the owner.
func TestRemovedBetweenPasses(t *testing.T) {
	for scope, taints := range map[string][]model.Taint{
		web.UID:                       nil,
		"p taint surprise:NoSchedule": {{Key: "surprise", Effect: model.NoSchedule}},
	} {
		w := newWorld()
		w.scope = scope
		w.pend("pod")
		w.loop(3*time.Hour, func(i int) bool {
			claim := fmt.Sprintf("claim-%d", i)
			if !w.launch("pod", claim) {
				return false
			}
			w.joins(claim, model.Initialized, taints...)
			removed := w.nodes[claim]
			w.left = append(w.left, model.Departure{Removed: &removed})
			delete(w.nodes, claim)
			w.now = w.now.Add(time.Second)
			return true
		})
		why := "its node was removed before any of the pods had run on it for a minute"
		if taints != nil {
			why = "its node has the taint surprise:NoSchedule"
		}
		w.wantLoop(t, why)
	}
}

// TestLabelOfAnotherPool: the label of a claim names a NodePool that does not exist. The node counts for its own.
func TestLabelOfAnotherPool(t *testing.T) {
	w := newWorld()
	w.scope = "p taint surprise:NoSchedule"
	w.pend("pod")
	for i := range 4 {
		claim := fmt.Sprintf("claim-%d", i)
		if w.launch("pod", claim) {
			w.joins(claim, model.Initialized, model.Taint{Key: "surprise", Effect: model.NoSchedule})
			n := w.nodes[claim]
			n.Pool = "gone"
			w.nodes[claim] = n
		}
		w.pass(time.Minute)
	}
	if w.paused().Failures == 0 {
		t.Errorf("the pauses are %v, want one of the pool", w.pool.Pauses)
	}
}

// TestLeavingPods: a pod that runs on a node that is being removed cannot be evicted, and each node that is launched for it
// gets a taint, or is removed.
func TestLeavingPods(t *testing.T) {
	for _, taint := range []string{"surprise", ""} {
		w := newWorld()
		w.pend("pod")
		w.nodes["old"] = model.NodeSpec{Name: "old", UID: "old", Claim: "old", ClaimUID: "old", Pool: "p", Created: w.now,
			Stage: model.Initialized, Ready: true, Deleting: true}
		w.bind("pod", "old")
		if taint != "" {
			w.scope = "p taint " + taint + ":NoSchedule"
		}
		w.loop(3*time.Hour, func(i int) bool {
			claim := fmt.Sprintf("claim-%d", i)
			if !w.launch("pod", claim) {
				return false
			}
			w.pass(time.Second)
			if taint == "" {
				w.joins(claim, model.Initialized)
				w.pass(time.Second)
				delete(w.nodes, claim)
				return true
			}
			w.joins(claim, model.Initialized, model.Taint{Key: taint, Effect: model.NoSchedule})
			w.pass(time.Second)
			return true
		})
		why := "its node has the taint surprise:NoSchedule"
		if taint == "" {
			why = "its node was removed before any of the pods had run on it for a minute"
		}
		w.wantLoop(t, why)
	}
}

// TestMissingLabel: the reason names the label that the node lacks.
func TestMissingLabel(t *testing.T) {
	w := newWorld()
	w.scope = "p label example.com/rack"
	w.pend("pod")
	p := w.pods["pod"]
	p.Alternatives = [][]label.Requirement{{{Key: "example.com/rack", Operator: label.In, Values: []string{"a"}}}}
	w.pods["pod"] = p
	for i := range 5 {
		claim := fmt.Sprintf("claim-%d", i)
		if w.launch("pod", claim) {
			w.joins(claim, model.Initialized)
		}
		w.pass(time.Second)
	}
	if got := w.paused(); w.launched != 3 || !strings.Contains(got.Why, "lacks the label example.com/rack") {
		t.Errorf("%d launches, pause %v", w.launched, got)
	}
}

// TestExpiry: with an expireAfter of a second, each claim is gone before its pods have run.
func TestExpiry(t *testing.T) {
	for _, stage := range []model.Stage{model.Launching, model.Launched, model.Initialized} {
		w := newWorld()
		w.pool.ExpireAfter = new(time.Second)
		w.pend("pod")
		w.loop(3*time.Hour, func(i int) bool {
			claim := fmt.Sprintf("claim-%d", i)
			if !w.launch("pod", claim) {
				return false
			}
			if stage == model.Launching { // it is created and removed between two passes
				delete(w.nodes, claim)
			}
			if stage == model.Initialized {
				w.joins(claim, stage)
				w.bind("pod", claim)
				w.pass(500 * time.Millisecond)
				w.pend("pod")
			}
			w.pass(time.Second)
			delete(w.nodes, claim)
			return true
		})
		w.wantLoop(t, "expireAfter")
	}
}

// TestNoLoop: rounds that resemble a loop and are none.
func TestNoLoop(t *testing.T) {
	taint := model.Taint{Key: "surprise", Effect: model.NoSchedule}
	for name, round := range map[string]func(w *world, pod, claim string){
		"short jobs": func(w *world, pod, claim string) {
			w.joins(claim, model.Initialized)
			w.bind(pod, claim)
			w.pass(5 * time.Second)
			w.leave(pod, claim, false)
			delete(w.nodes, claim)
		},
		"the cloud has none": func(w *world, _, claim string) {
			w.pass(5 * time.Second)
			delete(w.nodes, claim)
		},
		"a burst, whose nodes take long": func(*world, string, string) {},
		"the node is being disrupted": func(w *world, _, claim string) {
			w.joins(claim, model.Initialized, taint)
			n := w.nodes[claim]
			n.Disrupted = true
			w.nodes[claim] = n
		},
		"other pods use the node": func(w *world, _, claim string) {
			w.joins(claim, model.Initialized)
			w.pend("other-" + claim)
			w.bind("other-"+claim, claim)
			w.pass(0)
			delete(w.pods, "other-"+claim)
			other := model.PodSpec{UID: "other-" + claim, Namespace: "default", Name: "other-" + claim, State: model.Bound, Node: claim}
			w.pods[other.UID] = other
		},
		"its pods run for two minutes, until it expires": func(w *world, pod, claim string) {
			w.pool.ExpireAfter = new(2 * time.Minute)
			w.joins(claim, model.Initialized)
			w.bind(pod, claim)
			for range 13 {
				w.pass(10 * time.Second)
			}
			delete(w.pods, pod)
			delete(w.nodes, claim)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for i := range 10 {
				pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
				w.pend(pod)
				if !w.launch(pod, claim) {
					t.Fatalf("launch %d waits: %v", i+1, w.paused())
				}
				w.pass(time.Second)
				round(w, pod, claim)
				w.pass(time.Second)
			}
		})
	}
}

// TestParallelLaunches: launches of one round that fail one after the other count once.
func TestParallelLaunches(t *testing.T) {
	w := newWorld()
	for i := range 8 {
		pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
		w.pend(pod)
		w.launch(pod, claim)
		w.joins(claim, model.Launched)
		w.pass(time.Second)
	}
	for i := range 8 {
		delete(w.nodes, fmt.Sprintf("claim-%d", i))
		w.launch("pod-0", fmt.Sprintf("next-%d", i))
		w.pass(time.Second)
	}
	if got := w.paused(); got.Failures != 1 {
		t.Errorf("%d failures, want one for all launches that were in progress at the first", got.Failures)
	}
}

// TestRestart: pauses and counts are stored on the pool. Another process applies them.
func TestRestart(t *testing.T) {
	w := newWorld()
	for i := range 4 {
		w.launches = futile.Launches{}
		if i > 0 {
			w.pend("pod-first")
		}
		w.preempted(i)
		w.pend("pod-judges")
		w.launch("pod-judges", fmt.Sprintf("judges-%d", i))
		delete(w.nodes, fmt.Sprintf("judges-%d", i))
		w.pass(time.Second)
	}
	if len(w.pauses) != 1 {
		t.Fatalf("pauses %v after four futile launches of four processes", w.pauses)
	}
	w.launches = futile.Launches{}
	if w.preempted(10) {
		t.Fatal("a node was launched within the pause")
	}
	w.pass(time.Minute)
	if !w.preempted(11) {
		t.Fatal("no node was launched after the pause")
	}
	if w.preempted(12) || !slices.Equal(w.pauses, []time.Duration{time.Minute, 2 * time.Minute}) {
		t.Errorf("pauses %v, want the second to last two minutes", w.pauses)
	}
}

// loops makes launches for the ReplicaSet wait.
func (w *world) loops(t *testing.T) {
	t.Helper()
	for i := range 5 {
		w.preempted(i)
	}
	if w.launched != 4 || w.preempted(5) {
		t.Fatalf("%d launches, want four and then a pause: %v", w.launched, w.paused())
	}
}

// TestSuccess: a pod of the ReplicaSet that has run for a minute, on any node, ends the pause, also where the pool keeps
// it because the write fails.
func TestSuccess(t *testing.T) {
	for _, unending := range []bool{false, true} {
		w := newWorld()
		w.loops(t)
		w.unending = unending
		w.pool.Pauses[0].Until = w.now.Add(30 * time.Minute)
		w.nodes["other"] = model.NodeSpec{Name: "other", UID: "other", Stage: model.Initialized, Ready: true}
		w.pend("web-0")
		w.pass(time.Second)
		w.bind("web-0", "other")
		for range 65 {
			w.pass(time.Second)
		}
		if unending == (len(w.pool.Pauses) == 0) {
			t.Errorf("unending %t: pauses %v after a minute", unending, w.pool.Pauses)
		}
		w.pend("web-1")
		if !w.launch("web-1", "next") {
			t.Errorf("unending %t: the next launch waits", unending)
		}
		w.unending = false
		w.pass(time.Second)
		if len(w.pool.Pauses) > 0 {
			t.Errorf("pauses %v, once they can be removed", w.pool.Pauses)
		}
	}
}

// TestUnwritten: a pause that cannot be written holds launches too.
func TestUnwritten(t *testing.T) {
	w := newWorld()
	w.deaf = true
	w.loops(t)
	if len(w.pool.Pauses) > 0 {
		t.Fatalf("pauses %v", w.pool.Pauses)
	}
	w.pass(time.Minute)
	if !w.preempted(6) {
		t.Error("no node was launched after the pause")
	}
}

// TestLifted: a pause that is removed from the pool is over, and so is the count.
func TestLifted(t *testing.T) {
	w := newWorld()
	w.loops(t)
	w.pool.Pauses = nil
	for i := range 4 {
		if !w.preempted(10 + i) {
			t.Fatalf("launch %d waits: %v", i+1, w.paused())
		}
	}
	if w.preempted(20) {
		t.Error("four further futile launches begin no pause")
	}
}

// TestRefusal: the pods of a paused owner are refused with the pause. Those that share a claim with others are not.
func TestRefusal(t *testing.T) {
	w := newWorld()
	w.loops(t)
	w.pend("next")
	w.pods["job"] = model.PodSpec{UID: "job", Namespace: "default", Name: "job", State: model.Pending, Reschedulable: true}
	snap := w.snapshot()
	byUID := snap.PendingPods()
	p := &plan.Provision{Order: []*model.Pod{byUID["next"], byUID["job"]}, Claims: []plan.NewClaim{
		{Name: "alone", Pool: "p", Pods: []*model.Pod{byUID["next"]}},
		{Name: "shared", Pool: "p", Pods: []*model.Pod{byUID["next"], byUID["job"]}},
	}}
	got := new(futile.Launches).Restrain(snap, p)
	if len(got.Claims) != 1 || got.Claims[0].Name != "shared" || len(got.Refused) != 1 {
		t.Fatalf("claims %v, refused %v", got.Claims, got.Refused)
	}
	if v := got.Refused[0].Verdict; v.Code != plan.Paused || v.Pool != "p" || *v.Pause != w.paused() {
		t.Errorf("verdict %+v", v)
	}
}

// TestForgetsPods: of the pods that launches were for, those that exist are kept, and nothing of what succeeded.
func TestForgetsPods(t *testing.T) {
	w := newWorld()
	w.loop(24*time.Hour, func(i int) bool {
		pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
		w.pend(pod)
		if !w.launch(pod, claim) {
			t.Fatalf("launch %d waits", i)
		}
		w.joins(claim, model.Initialized)
		w.bind(pod, claim)
		w.pass(time.Second)
		w.pass(2 * time.Minute)
		delete(w.pods, pod)
		delete(w.nodes, claim)
		return true
	})
	if n := w.launches.Remembered(); n > 1 {
		t.Errorf("%d pods are remembered of %d", n, w.launched)
	}
}

// TestSmallerSibling: that a smaller pod of the same owner runs proves nothing for the larger one.
func TestSmallerSibling(t *testing.T) {
	w := newWorld()
	size := func(name string, milli int64) {
		w.pend(name)
		p := w.pods[name]
		p.Requests = []quantity.Amount{{Name: "cpu", Value: milli}}
		w.pods[name] = p
	}
	size("large", 900)
	for i := range 6 {
		claim, small := fmt.Sprintf("claim-%d", i), fmt.Sprintf("small-%d", i)
		size(small, 100)
		if !w.launch("large", claim) {
			break
		}
		w.launch(small, "for-"+small)
		w.joins("for-"+small, model.Initialized)
		w.bind(small, "for-"+small)
		w.joins(claim, model.Launched)
		w.pass(2 * time.Minute)
		delete(w.nodes, claim)
		if i%2 == 0 {
			w.leave(small, "for-"+small, false)
		}
		w.pass(time.Second)
	}
	if got := w.paused(); !got.Active(w.now) || got.Failures != 4 {
		t.Errorf("after %d launches the pause is %v, want one after 4 failures", w.launched, got)
	}
}
