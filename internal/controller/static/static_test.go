package static_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/static"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/telemetry"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

func newStatic(w *loopcluster.Cluster, on bool) (*static.Loop, *events.FakeRecorder) {
	sink := events.NewFakeRecorder(20)
	return &static.Loop{
		Snapshot: w.Snapshot, Writer: w, On: on, Timers: controller.Production(), Clock: w.Clock,
		Report: static.Reporter{Recorder: telemetry.NewRecorder(sink, w.Clock),
			Why: func(_ *model.Snapshot, v plan.Verdict) string { return fmt.Sprintf("code %d", v.Code) }},
	}, sink
}

// TestStaticTick verifies that the loop scales a pool up and down, creates nothing twice, and does not constantly
// retry a pool whose claims fail.
func TestStaticTick(t *testing.T) {
	w := loopcluster.New(t)
	w.Static(2)
	s, _ := newStatic(w, true)
	did := func() []string {
		s.Tick(t.Context())
		text := w.Took()
		if text == "" {
			return nil
		}
		return strings.Split(text, "\n")
	}
	first := did()
	switch {
	case len(first) != 2:
		t.Fatalf("from zero to two: len(first) is %v, want 2, %q", len(first), first)
	case !strings.HasPrefix(first[0], "create claim p-"):
		t.Fatalf("from zero to two: first[0] is %q, want the prefix %q", first[0], "create claim p-")
	case first[0] == first[1]:
		t.Fatalf("from zero to two: first[0] is %v, want another value than %v", first[0], first[1])
	}
	if again := did(); again != nil {
		t.Errorf("with two claims in flight: %q", again)
	}
	lost := strings.TrimPrefix(first[0], "create claim ")
	delete(w.Nodes, lost) // its launch was refused
	if again := did(); len(again) != 1 || !strings.HasPrefix(again[0], "note failure 1 of launches of static nodes") {
		t.Errorf("at once after a claim failed: %q", again)
	}
	w.Clock.Step(time.Minute)
	if again := did(); len(again) != 1 || again[0] != first[0] {
		t.Errorf("a minute after a claim failed: %q, want %q", again, first[0])
	}
	w.Pool.Replicas = 0
	if down := did(); len(down) != 2 || !strings.HasPrefix(down[0], "delete claim p-") {
		t.Errorf("to zero: %q", down)
	}
	if again := did(); again != nil {
		t.Errorf("to zero, again: %q", again)
	}
}

// TestStaticPauses verifies that each failure of a claim begins a longer pause, that removing the pause from the pool
// ends it, and that a node that is initialized does.
func TestStaticPauses(t *testing.T) {
	w := loopcluster.New(t)
	w.Static(1)
	s, _ := newStatic(w, true)
	created := 0
	for range 400 {
		s.Tick(t.Context())
		if strings.Contains(w.Took(), "create claim") {
			created++
			clear(w.Nodes)
		}
		w.Clock.Step(time.Second)
	}
	if created != 3 {
		t.Errorf("%d claims were created in 400 seconds, want 3: pauses last 1, 2 and 4 minutes", created)
	}
	w.Pool.Pauses = nil
	s.Tick(t.Context())
	if got := w.Took(); !strings.Contains(got, "create claim") {
		t.Errorf("without the pause: %q", got)
	}
	clear(w.Nodes)
	s.Tick(t.Context())
	w.Clock.Step(time.Minute)
	s.Tick(t.Context())
	if len(w.Pool.Pauses) != 1 || len(w.Nodes) != 1 {
		t.Fatalf("pauses %v, nodes %v", w.Pool.Pauses, w.Nodes)
	}
	for _, n := range w.Nodes {
		n.Stage, n.InitializedAt = model.Initialized, w.Clock.Now()
	}
	s.Tick(t.Context())
	if len(w.Pool.Pauses) > 0 {
		t.Errorf("pauses %v with an initialized node", w.Pool.Pauses)
	}
}

// TestStaticComesBack verifies that a pool at its limit is checked more often than one with the desired number of
// nodes, and gets an event.
func TestStaticComesBack(t *testing.T) {
	w := loopcluster.New(t)
	w.Static(2)
	w.Pool.Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 1}}
	s, sink := newStatic(w, true)
	asleep := loopcluster.Started(t, w.Clock, s.Start)
	asleep()
	if got := w.Took(); strings.Count(got, "create claim") != 1 {
		t.Errorf("with room for one: %q", got)
	}
	if got := loopcluster.Emitted(sink); len(got) != 1 || !strings.Contains(got[0],
		fmt.Sprintf("StaticPoolShort Nodes that spec.replicas requires and that are not launched: 1: code %d", plan.NodeLimitReached)) {
		t.Errorf("events %q", got)
	}
	w.Lock()
	w.Pool.Limits = nil
	w.Unlock()
	w.Clock.Step(30 * time.Second)
	loopcluster.Until(t, "the second claim", func() bool { return strings.Contains(w.Took(), "create claim") })
}

// TestStaticGate verifies that without the feature gate a static pool is not changed, and gets an event with the
// reason.
func TestStaticGate(t *testing.T) {
	w := loopcluster.New(t)
	w.Static(2)
	s, sink := newStatic(w, false)
	s.Tick(t.Context())
	if got := w.Took(); got != "" {
		t.Errorf("actions %q", got)
	}
	switch got := loopcluster.Emitted(sink); {
	case len(got) != 1:
		t.Errorf("len(got) is %v, want 1, events %q", len(got), got)
	case !strings.Contains(got[0], "StaticPoolIgnored"):
		t.Errorf(`got[0] lacks "StaticPoolIgnored", events %q`, got)
	case !strings.Contains(got[0], "StaticCapacity"):
		t.Errorf(`got[0] lacks "StaticCapacity", events %q`, got)
	}
	w.Pool.Static = false
	w.Clock.Step(2 * time.Hour)
	s.Tick(t.Context())
	if got := loopcluster.Emitted(sink); len(got) != 0 {
		t.Errorf("for a pool that is not static: %q", got)
	}
}
