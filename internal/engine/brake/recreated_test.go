package brake_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// TestBrakeCountsNodesOfRecreatedPods: a pod is replaced every five minutes while it is pending. Its successor waits
// for the same claim, whose node never registers. Without the brake, four machines an hour are launched.
func TestBrakeCountsNodesOfRecreatedPods(t *testing.T) {
	w := newBraked()
	pod, claim := "", ""
	var ends time.Time
	for i := 0; w.now.Before(plantest.Noon.Add(8 * time.Hour)); i++ {
		if i%30 == 0 {
			delete(w.pods, pod)
			pod = fmt.Sprintf("pod-%d", i)
			w.pend(pod)
		}
		if claim != "" && !ends.After(w.now) {
			delete(w.nodes, claim)
			claim = ""
			w.pass(0)
		}
		if name := fmt.Sprintf("claim-%d", i); claim == "" && w.launch(name, pod) {
			w.stage(name, model.Launched)
			claim, ends = name, w.now.Add(15*time.Minute)
		}
		w.pass(10 * time.Second)
	}
	if len(w.starts) == 0 || w.starts[0].Sub(plantest.Noon) > 62*time.Minute {
		t.Fatalf("pauses from %v, want the first after four launches", w.starts)
	}
	if w.launched > 20 {
		t.Errorf("%d launches in eight hours, want at most 20", w.launched)
	}
	if why := w.pool.Holds[0].Why; !strings.Contains(why, "never registered") {
		t.Errorf("the reason does not mention nodes that never registered: %s", why)
	}
}

// TestBrakeCountsPreemptedSuccessors: a pod is replaced before its node joins, and its successor is preempted there.
func TestBrakeCountsPreemptedSuccessors(t *testing.T) {
	w := newBraked()
	rounds := 0
	for ; rounds < 10; rounds++ {
		pod, next, claim := fmt.Sprintf("pod-%d", rounds), fmt.Sprintf("next-%d", rounds), fmt.Sprintf("claim-%d", rounds)
		w.pend(pod)
		if !w.launch(claim, pod) {
			break
		}
		w.pass(time.Second)
		delete(w.pods, pod)
		w.pend(next)
		w.stage(claim, model.Initialized)
		w.bind(next, claim)
		w.pass(time.Second)
		w.left = append(w.left, model.Departure{UID: next, Namespace: "default", Name: next, Node: claim, Ran: time.Second, Preempted: true,
			Controller: model.Owner{Kind: "ReplicaSet", Name: "web", UID: "web-uid"}})
		delete(w.pods, next)
		delete(w.nodes, claim)
		w.pass(time.Second)
	}
	w.wantPause(t, rounds, "pod next-3 was preempted on node claim-3")
}

// TestBrakeLetsSuccessorsRun: the successor of a pod runs on the node. When the node goes, and the next pod of the
// controller is pending, the launch was of use. The same holds while the pod itself runs on another node.
func TestBrakeLetsSuccessorsRun(t *testing.T) {
	for name, round := range map[string]func(w *braked, pod, claim string){
		"the successor runs": func(w *braked, pod, claim string) {
			delete(w.pods, pod)
			w.pend(pod + "-next")
			w.stage(claim, model.Initialized)
			w.bind(pod+"-next", claim)
			w.pass(5 * time.Second)
			delete(w.pods, pod+"-next")
		},
		"the pod runs elsewhere": func(w *braked, pod, claim string) {
			w.nodes["other"] = model.NodeSpec{Name: "other", UID: "other", Stage: model.Initialized, Ready: true}
			w.bind(pod, "other")
			w.stage(claim, model.Registered)
			w.pass(5 * time.Second)
		},
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
				w.pend("waiting")
				delete(w.nodes, claim)
				w.pass(time.Second)
				delete(w.pods, "waiting")
			}
		})
	}
}
