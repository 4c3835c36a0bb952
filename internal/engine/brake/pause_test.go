package brake_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/brake"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// neverRegisters runs passes of ten seconds for the given time. Each pending pod has one claim in flight, planned at
// most once a minute, whose node never registers and which fails after 15 minutes. It returns when claims were
// launched.
func (w *braked) neverRegisters(pods int, until time.Duration) []time.Time {
	type flight struct {
		claim string
		end   time.Time
	}
	var launches []time.Time
	flights, planned := map[string]flight{}, time.Time{}
	for i := 0; w.now.Before(plantest.Noon.Add(until)); i++ {
		for pod, f := range flights {
			if !f.end.After(w.now) {
				delete(w.nodes, f.claim)
				delete(flights, pod)
			}
		}
		for n := range pods {
			pod, claim := fmt.Sprintf("pod-%d", n), fmt.Sprintf("claim-%d-%d", n, i)
			if _, flying := flights[pod]; flying || w.now.Sub(planned) < time.Minute || w.now.Before(plantest.Noon.Add(time.Duration(n)*time.Minute)) {
				continue
			}
			if _, there := w.pods[pod]; !there {
				w.pend(pod)
			}
			if w.launch(claim, pod) {
				w.stage(claim, model.Launched)
				flights[pod] = flight{claim, w.now.Add(15 * time.Minute)}
				planned, launches = w.now, append(launches, w.now)
			}
		}
		w.pass(10 * time.Second)
	}
	return launches
}

// TestBrakeOfParallelLaunches: ten passes, a minute apart, launch for one ReplicaSet, and no node registers. Failures
// of launches that were in progress when a pause began cause no further pause. Each further pause follows a launch
// after the previous one.
func TestBrakeOfParallelLaunches(t *testing.T) {
	w := newBraked()
	launches := w.neverRegisters(10, 65*time.Minute)
	if len(w.starts) < 3 {
		t.Fatalf("pauses from %v, want three or more in 65 minutes", w.starts)
	}
	for i := range w.starts[1:] {
		between := 0
		for _, at := range launches {
			if !at.Before(w.ends[i]) && at.Before(w.starts[i+1]) {
				between++
			}
		}
		if between == 0 {
			t.Errorf("no launch between the pause of %v to %v and that from %v", w.starts[i], w.ends[i], w.starts[i+1])
		}
		if pause, want := w.ends[i].Sub(w.starts[i]).Round(time.Minute), time.Minute<<i; pause != want {
			t.Errorf("pause %d lasts %v, want %v", i+1, pause, want)
		}
	}
	hold, pauses := w.pool.Holds[0], len(w.starts)
	if hold.Pauses != pauses {
		t.Errorf("the annotation counts %d pauses, want %d", hold.Pauses, pauses)
	}
	// After a restart, the next pause is the next longer one, however many launches failed before.
	w.brake, w.nodes = brake.Brake{}, map[string]model.NodeSpec{}
	w.pass(hold.Until.Sub(w.now) + time.Second)
	if !w.preempted(1000) {
		t.Fatal("no node was launched after the pause")
	}
	if pause, want := w.pool.Holds[0].Until.Sub(w.now).Round(time.Minute), time.Minute<<pauses; pause != want {
		t.Errorf("the first pause after a restart lasts %v, want %v", pause, want)
	}
}

// held makes four futile launches, and a pending pod that is then bound to another node.
func held(w *braked) {
	for i := range 4 {
		w.preempted(i)
	}
	w.nodes["other"] = model.NodeSpec{Name: "other", UID: "other", Stage: model.Initialized, Ready: true}
	w.pend("web-0")
	w.pass(time.Second)
	w.bind("web-0", "other")
}

// TestBrakeRepeatsReleases: a pause that has ended, and cannot be removed from its pool, holds no launch. It is removed
// as soon as writes succeed.
func TestBrakeRepeatsReleases(t *testing.T) {
	w := newBraked()
	held(w)
	w.pool.Holds[0].Until = w.now.Add(30 * time.Minute)
	w.unwritable = true
	for range 65 {
		w.pass(time.Second)
	}
	w.pend("web-1")
	if len(w.pool.Holds) != 1 || !w.launch("next", "web-1") {
		t.Fatalf("holds %+v, want one, and that the next launch does not wait for its write", w.pool.Holds)
	}
	w.pass(time.Second)
	w.unwritable = false
	w.pass(time.Second)
	if len(w.pool.Holds) > 0 {
		t.Errorf("holds %+v, once they can be written", w.pool.Holds)
	}
	// A pause that is written to the pool later is effective again.
	w.pass(time.Second)
	w.pool.Holds = []model.LaunchHold{{Owner: "web-uid", Name: "ReplicaSet default/web", Failures: 5, Until: w.now.Add(time.Hour)}}
	w.pass(time.Second)
	w.pend("web-2")
	if w.launch("later", "web-2") {
		t.Error("a pause that was written later has no effect")
	}
}

// TestBrakeReleasesAfterRestart: after a restart, a pause is known but not its pods. It ends when all pods of the
// controller have been on nodes for a minute. Some pods that ran all the time do not end it.
func TestBrakeReleasesAfterRestart(t *testing.T) {
	for _, c := range []struct {
		waits bool
		holds int
	}{{false, 0}, {true, 1}} {
		w := newBraked()
		held(w)
		w.brake = brake.Brake{}
		w.pool.Holds[0].Until = w.now.Add(30 * time.Minute)
		w.pass(time.Second)
		for i := range 12 {
			if i%2 == 0 && c.waits { // it is bound, preempted, and pending again
				w.pend("web-1")
			} else if c.waits {
				w.bind("web-1", "other")
			}
			w.pass(10 * time.Second)
		}
		if len(w.pool.Holds) != c.holds {
			t.Errorf("another pod is pending: %t: holds %+v, want %d", c.waits, w.pool.Holds, c.holds)
		}
	}
}

// TestBrakeForgetsPods: of the pods that launches of a controller were for, the brake keeps existing ones and those of
// the last hour.
func TestBrakeForgetsPods(t *testing.T) {
	w := newBraked()
	for i := 0; w.now.Before(plantest.Noon.Add(24 * time.Hour)); i++ {
		pod, claim := fmt.Sprintf("pod-%d", i), fmt.Sprintf("claim-%d", i)
		w.pend(pod)
		if !w.launch(claim, pod) {
			t.Fatalf("launch %d waits", i)
		}
		w.stage(claim, model.Initialized)
		w.bind(pod, claim)
		w.pass(2 * time.Minute) // the previous pod's node is removed while the next launch is in progress
		delete(w.pods, fmt.Sprintf("pod-%d", i-1))
		delete(w.nodes, fmt.Sprintf("claim-%d", i-1))
		w.pass(2 * time.Minute)
	}
	if n := w.brake.Remembered(); n > 200 {
		t.Errorf("%d pods are remembered of %d, want those of the last hour", n, w.launched)
	}
}

// TestBrakeLiftedBesideAnOlderPause: an earlier pause on another pool does not prolong a pause that was removed.
func TestBrakeLiftedBesideAnOlderPause(t *testing.T) {
	w := newBraked()
	for i := range 4 {
		w.preempted(i)
	}
	w.pass(time.Second)
	older := w.pool.Holds[0]
	older.Until = w.now.Add(-time.Minute)
	w.other = model.PoolSpec{Name: "older", UID: "older-uid", Catalog: &model.Catalog{}, Holds: []model.LaunchHold{older}}
	w.pass(time.Second)
	w.pool.Holds = nil
	w.pass(time.Second)
	if !w.preempted(5) {
		t.Errorf("launches wait, although the pause was removed: %+v", w.pool.Holds)
	}
}
