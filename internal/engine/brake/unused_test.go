package brake_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// relaunch is a pass whose plan launches a claim for the pod. It reports whether the claim is launched.
func (w *braked) relaunch(claim, pod string) bool {
	snap := w.snapshot()
	p := &plan.Provision{}
	for _, g := range snap.Groups {
		for _, waiting := range g.Pods {
			if waiting.UID == pod {
				p.Claims = append(p.Claims, plan.NewClaim{Name: claim, Pool: "p", PoolUID: "pool-uid", Pods: []*model.Pod{waiting}})
			}
		}
	}
	w.brake.Replanned(snap, p)
	w.pass(0)
	return w.launch(claim, pod)
}

// joins makes the claim's node join with the taints.
func (w *braked) joins(claim string, taints ...model.Taint) {
	w.stage(claim, model.Initialized)
	n := w.nodes[claim]
	n.Taints, n.Ready = taints, true
	w.nodes[claim] = n
}

// TestBrakeCountsNodesThatStayEmpty: each node joins with a taint that the pod does not tolerate, and remains. Four are
// launched, and one after each pause, whether the pod remains the same or its controller creates another one each time.
func TestBrakeCountsNodesThatStayEmpty(t *testing.T) {
	for _, again := range []bool{false, true} {
		w := newBraked()
		w.pend("pod-0")
		pod := "pod-0"
		for i := 0; w.now.Before(plantest.Noon.Add(3 * time.Hour)); i++ {
			claim := fmt.Sprintf("claim-%d", i)
			if w.relaunch(claim, pod) {
				w.pass(time.Second)
				w.joins(claim, model.Taint{Key: "surprise", Effect: model.NoSchedule})
				if again {
					delete(w.pods, pod)
					pod = fmt.Sprintf("pod-%d", i+1)
					w.pend(pod)
				}
			}
			w.pass(time.Second)
		}
		var pauses []time.Duration
		for i := range w.starts {
			pauses = append(pauses, w.ends[i].Sub(w.starts[i]).Round(time.Minute))
		}
		want := []time.Duration{time.Minute, 2 * time.Minute, 4 * time.Minute, 8 * time.Minute, 16 * time.Minute, 30 * time.Minute}
		if !slices.Equal(pauses[:min(len(pauses), len(want))], want) || w.launched > 4+len(pauses) {
			t.Errorf("another pod each time %t: %d nodes were launched in three hours, pauses %v; want %v and so on", again, w.launched, pauses, want)
		}
		for _, part := range []string{"has the taint surprise:NoSchedule, which the pods do not tolerate", "startupTaints"} {
			if hold := w.pool.Holds; len(hold) != 1 || !strings.Contains(hold[0].Why, part) {
				t.Errorf("the reason does not contain %q: %+v", part, hold)
			}
		}
	}
}

// TestBrakeLetsEmptyNodesPass: nodes that have joined and have not received the pod, for a reason that is not a loop.
func TestBrakeLetsEmptyNodesPass(t *testing.T) {
	taint := model.Taint{Key: "surprise", Effect: model.NoSchedule}
	for name, round := range map[string]func(w *braked, claim string){
		"it has not joined": func(*braked, string) {},
		"it is being disrupted": func(w *braked, claim string) {
			w.joins(claim, taint)
			n := w.nodes[claim]
			n.Disrupted = true
			w.nodes[claim] = n
		},
		"pods that had a launch too took the room": func(w *braked, claim string) {
			w.joins(claim)
			w.pend("other-" + claim)
			w.bind("other-"+claim, claim)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBraked()
			w.pend("pod")
			for i := range 10 {
				claim := fmt.Sprintf("claim-%d", i)
				if !w.relaunch(claim, "pod") {
					t.Fatalf("launch %d waits: %+v", i+1, w.pool.Holds)
				}
				w.pass(time.Second)
				round(w, claim)
				w.pass(time.Second)
			}
		})
	}
}

// TestBrakeNamesWhatANodeLacks: the reason of a pause names the label that the node lacks.
func TestBrakeNamesWhatANodeLacks(t *testing.T) {
	w := newBraked()
	w.pend("pod")
	p := w.pods["pod"]
	p.Alternatives = [][]label.Requirement{{{Key: "example.com/rack", Operator: label.In, Values: []string{"a"}}}}
	w.pods["pod"] = p
	for i := range 6 {
		w.relaunch(fmt.Sprintf("claim-%d", i), "pod")
		w.pass(time.Second)
		if claim := fmt.Sprintf("claim-%d", i); w.launched > i {
			w.joins(claim)
		}
	}
	w.wantPause(t, w.launched, "lacks the label example.com/rack")
}

// expire is a round in which the claim expires after a second, in the given stage. The pod's controller creates another
// pod if this one was bound to the node.
func (w *braked) expire(i int, stage model.Stage) bool {
	pod, claim := "pod", fmt.Sprintf("claim-%d", i)
	if _, waits := w.pods[pod]; !waits {
		w.pend(pod)
	}
	if !w.launch(claim, pod) {
		return false
	}
	w.pool.ExpireAfter = new(time.Second)
	n := w.nodes[claim]
	n.Stage, n.ExpiresAt, n.Ready = stage, w.now.Add(time.Second), stage == model.Initialized
	w.nodes[claim] = n
	switch stage {
	case model.Launching: // it is created and removed between two passes
		delete(w.nodes, claim)
	case model.Initialized:
		w.pass(500 * time.Millisecond)
		w.bind(pod, claim)
		w.pass(400 * time.Millisecond)
		delete(w.pods, pod)
		w.pend(pod + "-again")
		n.Deleting = true
		w.nodes[claim] = n
	}
	w.pass(time.Second)
	delete(w.nodes, claim)
	w.pass(5 * time.Second)
	return true
}

// TestBrakeCountsClaimsThatExpire: with an expireAfter of a second, each node is removed before its pods have run, or
// the claim before its node exists. Four are launched, and one after each pause. The reason names a claim once.
func TestBrakeCountsClaimsThatExpire(t *testing.T) {
	for _, stage := range []model.Stage{model.Launching, model.Launched, model.Initialized} {
		w := newBraked()
		for i := 0; w.now.Before(plantest.Noon.Add(time.Hour)); i++ {
			if !w.expire(i, stage) {
				w.pass(time.Second)
			}
		}
		if w.launched > 4+len(w.starts) || len(w.starts) < 5 {
			t.Errorf("%s: %d launches in an hour with %d pauses", stage, w.launched, len(w.starts))
		}
		why := w.pool.Holds[0].Why
		if n := strings.Count(why, "it expired 1s after its creation"); n != 1 {
			t.Errorf("%s: the reason is %q, with %d ages, want one", stage, why, n)
		}
		if len(w.starts) < 2 && !strings.Contains(why, "claim-3, claim-2") {
			t.Errorf("%s: the reason is %q, want the last claims first", stage, why)
		}
	}
}

// TestBrakeLetsExpiryPass: nodes that exist for two minutes and whose pods run until they expire are not a loop.
func TestBrakeLetsExpiryPass(t *testing.T) {
	w := newBraked()
	for i := range 10 {
		pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
		w.pend(pod)
		if !w.launch(claim, pod) {
			t.Fatalf("launch %d waits: %+v", i+1, w.pool.Holds)
		}
		w.joins(claim)
		w.pass(time.Second)
		w.bind(pod, claim)
		n := w.nodes[claim]
		n.ExpiresAt = w.now.Add(2 * time.Minute)
		w.nodes[claim] = n
		for range 12 {
			w.pass(10 * time.Second)
		}
		delete(w.pods, pod)
		delete(w.nodes, claim)
	}
}

// TestBrakeNamesAClaimOnce: a claim that is launched again for the same pods has the same name. The reason contains it
// once.
func TestBrakeNamesAClaimOnce(t *testing.T) {
	w := newBraked()
	w.pend("pod")
	for i := 0; i < 10 && w.launch("again", "pod"); i++ {
		w.stage("again", model.Launched)
		w.pass(10 * time.Second)
		delete(w.nodes, "again")
		w.pass(time.Second)
	}
	if why := w.pool.Holds[0].Why; why != "4 launches as again: its node never registered" {
		t.Errorf("the reason is %q", why)
	}
}
