package provision_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/karpenter-go/karpenter/internal/cluster/room"
	"github.com/karpenter-go/karpenter/internal/cluster/state"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
	"github.com/karpenter-go/karpenter/internal/testing/objecttest"
)

// reported makes the loop report rooms, and returns that of the buffer.
func (s *surprise) reported() func() *room.Room {
	rooms := map[string]*room.Room{}
	s.loop.Report.Room = func(all map[string]*room.Room, at time.Time) {
		if rooms = all; !at.Equal(s.Clock.Now()) {
			s.Errorf("the room is of %s, want %s", at, s.Clock.Now())
		}
	}
	return func() *room.Room { return rooms["spare-uid"] }
}

// TestRoomIsReported checks which room a buffer has while its nodes are launched, when it has them, and when a pod takes the
// room.
func TestRoomIsReported(t *testing.T) {
	s := newSurprise(t, typeOf("c-2x", 2))
	got := s.reported()
	s.spare(2, 2000)
	expect := func(when string, want room.Room) {
		t.Helper()
		if diff := cmp.Diff(want, *got()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	s.step(time.Second)
	expect("when the nodes are launched", room.Room{Missing: 2})
	s.step(time.Second)
	expect("when the nodes are ready", room.Room{Ready: 2, Cost: 2 * 2 * model.Nano / 10})
	pod := s.pod("job", 2000, model.Owner{})
	s.bind()
	s.step(time.Second)
	expect("when a pod takes room", room.Room{Ready: 1, Missing: 1, Cost: 2 * model.Nano / 10})
	if placed := s.loop.Destination("uid-spare-0"); placed == "" || placed == pod.Node {
		t.Errorf("the plan has the first virtual pod on %q, want a node without a pod", placed)
	}
}

// TestRoomPaused checks that a buffer whose launches wait has the reason, and that a launch is tried when the pause is over.
func TestRoomPaused(t *testing.T) {
	s := newSurprise(t, typeOf("c-4x", 4))
	got := s.reported()
	s.spare(2, 4000)
	now := s.Clock.Now()
	paused := pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: "spare-uid"}, Name: "launches for CapacityBuffer default/spare"}
	paused = paused.Fail(now, now, 0, "claim p-1: its node has the taint a:NoSchedule")
	s.Pool.Pauses = pause.List{paused}
	s.step(paused.Until.Sub(now))
	want := "launches for CapacityBuffer default/spare are paused until " + paused.Until.Format(time.RFC3339) +
		", after 1 failure: claim p-1: its node has the taint a:NoSchedule"
	if r := got(); !r.Paused || r.Failed != 2 || !strings.HasPrefix(r.Why, want) || len(s.bought) > 0 {
		t.Errorf("the room is %+v, want %q; bought %v", r, want, s.bought)
	}
	s.step(time.Second)
	if r := got(); !r.Paused || r.Failed != 1 || r.Missing != 1 || !strings.Contains(r.Why, "another attempt is in progress") || len(s.bought) != 1 {
		t.Errorf("after the pause, the room is %+v; bought %v, want one of two nodes", r, s.bought)
	}
}

// TestRoomComesAfterLaunches checks that the room is reported when the claims for pods and virtual pods are written.
func TestRoomComesAfterLaunches(t *testing.T) {
	s := newSurprise(t, typeOf("c-2x", 2))
	s.spare(1, 2000)
	s.pod("a", 2000, model.Owner{})
	claims := -1
	s.loop.Report.Room = func(map[string]*room.Room, time.Time) { claims = len(s.Nodes) }
	s.loop.Tick(t.Context())
	if claims != 2 {
		t.Errorf("%d claims exist when the room is reported, want two", claims)
	}
}

// TestRoomAtRest checks that the loop does not plan again while virtual pods have their room and nothing changes, but does
// when a pod is bound.
func TestRoomAtRest(t *testing.T) {
	w := loopcluster.New(t)
	n := w.Node("here", model.Initialized)
	n.Ready, n.UID = true, "uid-here"
	n.Capacity, n.Allocatable = twoCPU, twoCPU
	passes, changed, looked := loopcluster.NewTicks(), make(chan struct{}, 1), make(chan struct{}, 10)
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		passes.Add(w.Clock.Now())
		return placement.Schedule(snap, placement.Options{})
	})
	w.Pods["uid-spare"] = &model.PodSpec{UID: "uid-spare", Namespace: "default", Name: "spare", Virtual: model.VirtualBuffer, State: model.Pending,
		Requests: slices.Clone(twoCPU), Controller: model.Owner{Kind: "CapacityBuffer", Name: "spare", UID: "spare-uid"}}
	p.Changed = changed
	p.Snapshot = func() *model.Snapshot { looked <- struct{}{}; return w.Snapshot() }
	asleep := loopcluster.Started(t, w.Clock, p.Start)
	asleep()
	w.Clock.Step(10 * time.Second)
	first := passes.Next(t)
	for range 3 {
		asleep()
		for len(looked) > 0 {
			<-looked
		}
		w.Clock.Step(10 * time.Second)
		<-looked // the loop compares versions, and waits again
	}
	asleep()
	changed <- struct{}{}
	loopcluster.WaitForTimers(t, w.Clock, 2)
	w.Clock.Step(time.Second)
	if after := passes.Next(t).Sub(first); after != 31*time.Second {
		t.Errorf("pass after %s, want 31s", after)
	}
}

// TestPlansAtRest checks that a pod that is planned onto a node and not bound, beside virtual pods, costs a plan for each
// interval of the timer: that the node is kept for it wakes no loop.
func TestPlansAtRest(t *testing.T) {
	w, objects, plans := loopcluster.New(t), state.New(state.Config{}), 0
	here := objecttest.Node(t, "here", "uid-here", "1", "", "")
	here.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("10")
	here.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	objects.Saw(here)
	objects.Saw(objecttest.Pod(t, "a", "uid-a", "1", ""))
	objects.SetVirtual(model.VirtualBuffer, "spare", "1", func() []*corev1.Pod {
		return []*corev1.Pod{objecttest.Pod(t, "spare", "uid-spare", "1", "")}
	})
	p := newLoop(w, func(snap *model.Snapshot) *plan.Provision {
		plans++
		return placement.Schedule(snap, placement.Options{})
	})
	p.Snapshot = func() *model.Snapshot { return objects.Snapshot(w.Clock.Now()) }
	p.HoldDisruption, p.Nominate = objects.Nominate, false
	objects.Drain()
	for second := range 60 {
		woken := objects.Drain().Changes&(state.PodsPending|state.PoolsChanged|state.NodesLost|state.PodsMoved|state.NodesChanged) != 0
		if woken || second%int(p.Timers.PodRetrigger/time.Second) == 0 {
			p.Tick(t.Context())
		}
		w.Clock.Step(time.Second)
	}
	kept := p.Snapshot().Node("here").NominatedUntil
	if plans != 6 || !kept.After(w.Clock.Now()) {
		t.Errorf("%d plans in a minute, want 6; the node is kept until %v", plans, kept)
	}
}

var twoCPU = typeOf("", 2).Capacity
