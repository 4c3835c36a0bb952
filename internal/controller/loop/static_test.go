package loop_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/loop"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

func (w *world) Act(ctx context.Context, newest func() *model.Snapshot, decide func(*model.Snapshot) []plan.Action) []execute.Outcome {
	return w.Do(ctx, decide(newest()))
}

// static makes the world's pool static and gives it an available offering.
func (w *world) static(replicas int64) {
	amounts := []quantity.Amount{{Name: "pods", Value: 10}}
	w.pool.Static, w.pool.Replicas, w.pool.Blocked = true, replicas, model.StaticBlock()
	w.pool.Catalogue = &model.Catalogue{Types: []model.InstanceType{{Name: "m", Capacity: amounts, Allocatable: amounts,
		Requirements: []label.Requirement{{Key: model.LabelType, Operator: label.In, Values: []string{"m"}}},
		Offerings:    []model.Offering{{Zone: "z", CapacityType: "on-demand", Price: 1, Available: true}}}},
		WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
}

func (w *world) staticLoop(on bool) (*loop.Static, *events.FakeRecorder) {
	sink := events.NewFakeRecorder(20)
	return &loop.Static{
		Snapshot: w.Snapshot, Actor: w, On: on, Timers: controller.Production(), Clock: w.clock, Recorder: telemetry.NewRecorder(sink, w.clock),
		Why: func(_ *model.Snapshot, v plan.Verdict) string { return fmt.Sprintf("code %d", v.Code) },
	}, sink
}

// TestStaticTick verifies that the loop scales a pool up and down, creates nothing twice, and does not constantly
// retry a pool whose claims fail.
func TestStaticTick(t *testing.T) {
	w := newWorld()
	w.static(2)
	s, _ := w.staticLoop(true)
	did := func() []string {
		s.Tick(t.Context())
		text := w.took()
		if text == "" {
			return nil
		}
		return strings.Split(text, "\n")
	}
	first := did()
	if len(first) != 2 || !strings.HasPrefix(first[0], "create claim p-") || first[0] == first[1] {
		t.Fatalf("from zero to two: %q", first)
	}
	if again := did(); again != nil {
		t.Errorf("with two claims in flight: %q", again)
	}
	lost := strings.TrimPrefix(first[0], "create claim ")
	delete(w.nodes, lost) // its launch was refused
	if again := did(); again != nil {
		t.Errorf("at once after a claim failed: %q", again)
	}
	w.clock.Step(30 * time.Second)
	if again := did(); len(again) != 1 || again[0] != first[0] {
		t.Errorf("30 s after a claim failed: %q, want %q", again, first[0])
	}
	w.pool.Replicas = 0
	if down := did(); len(down) != 2 || !strings.HasPrefix(down[0], "delete claim p-") {
		t.Errorf("to zero: %q", down)
	}
	if again := did(); again != nil {
		t.Errorf("to zero, again: %q", again)
	}
}

// TestStaticComesBack verifies that a pool at its limit is checked more often than one with the desired number of
// nodes, and gets an event.
func TestStaticComesBack(t *testing.T) {
	w := newWorld()
	w.static(2)
	w.pool.Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: 1}}
	s, sink := w.staticLoop(true)
	asleep := started(t, w.clock, s.Start)
	asleep()
	if got := w.took(); strings.Count(got, "create claim") != 1 {
		t.Errorf("with room for one: %q", got)
	}
	if got := emitted(sink); len(got) != 1 || !strings.Contains(got[0], fmt.Sprintf("StaticPoolShort Nodes that spec.replicas asks for and that are not bought: 1: code %d", plan.NodeLimitReached)) {
		t.Errorf("events %q", got)
	}
	w.mu.Lock()
	w.pool.Limits = nil
	w.mu.Unlock()
	w.clock.Step(30 * time.Second)
	until(t, "the second claim", func() bool { return strings.Contains(w.took(), "create claim") })
}

// TestStaticGate verifies that without the feature gate a static pool is not changed, and gets an event with the
// reason.
func TestStaticGate(t *testing.T) {
	w := newWorld()
	w.static(2)
	s, sink := w.staticLoop(false)
	s.Tick(t.Context())
	if got := w.took(); got != "" {
		t.Errorf("actions %q", got)
	}
	if got := emitted(sink); len(got) != 1 || !strings.Contains(got[0], "StaticPoolIgnored") || !strings.Contains(got[0], "StaticCapacity") {
		t.Errorf("events %q", got)
	}
	w.pool.Static = false
	w.clock.Step(2 * time.Hour)
	s.Tick(t.Context())
	if got := emitted(sink); len(got) != 0 {
		t.Errorf("for a pool that is not static: %q", got)
	}
}

// TestProvisionPlansForLeavingNodes verifies that pods on a node that is being deleted are planned together with the
// pending pods, but get neither nominations nor events.
func TestProvisionPlansForLeavingNodes(t *testing.T) {
	w := newWorld()
	w.node("leaving", model.Initialized).Deleting = true
	w.node("here", model.Initialized)
	w.bound("goes", "leaving")
	w.bound("homeless", "leaving")
	w.bound("buys", "leaving")
	w.bound("stays", "here")
	w.pending("waits", "")
	p := w.provision(func(snap *model.Snapshot) *plan.Provision {
		if stays := podsOf(snap, "stays"); len(stays) > 0 {
			t.Error("a pod of a node that is kept is planned")
		}
		return &plan.Provision{
			Claims:  []plan.NewClaim{{Name: "claim-1", Pool: "p", PoolUID: "pool-uid", Pods: podsOf(snap, "buys")}},
			Placed:  []plan.Placement{{Node: "here", Pods: podsOf(snap, "goes", "waits")}},
			Refused: []plan.Refusal{{Pods: podsOf(snap, "homeless"), Verdict: plan.Verdict{Code: plan.NoPools}}},
		}
	})
	sink := events.NewFakeRecorder(20)
	p.Recorder = telemetry.NewRecorder(sink, w.clock)
	promised := 0
	p.Promise = func(string, time.Time) { promised++ }
	p.Tick(t.Context())
	want(t, w, "create claim claim-1\nnominate pod default/waits to node here\nreserve claim c-here for 1 pods")
	if got := emitted(sink); len(got) != 1 || !strings.Contains(got[0], "Nominated") {
		t.Errorf("events %q, want one about the pending pod", got)
	}
	if promised != 1 {
		t.Errorf("%d nodes are protected, want the one for which pods are planned", promised)
	}
}

// TestStaticDriftLife verifies that drifted nodes of a static pool are replaced in waves. While the two loops run
// concurrently, there are never fewer ready nodes than the pool specifies, never more than the budget adds, and
// nothing is launched twice.
func TestStaticDriftLife(t *testing.T) {
	w := newWorld()
	w.static(3)
	w.pool.Budgets = []model.Budget{{Count: 1}}
	for i := range 3 {
		n := w.node(fmt.Sprint("old-", i), model.Initialized)
		n.Drifted, n.DriftedSince = "NodePoolDrifted", noon.Add(time.Duration(i)*time.Second)
	}
	s, _ := w.staticLoop(true)
	d := w.disrupt()
	d.Propose = func(snap *model.Snapshot, _ bool) disruption.Proposal {
		commands, kept := disruption.StaticDrift(snap, plan.NewGuard(snap))
		return disruption.Proposal{Commands: commands, Kept: kept}
	}
	created := 0
	for round := range 40 {
		d.Tick(t.Context())
		s.Tick(t.Context())
		created += strings.Count(w.took(), "create claim")
		ready := 0
		for _, n := range w.nodes {
			if n.Stage == model.Initialized && !n.Deleting {
				ready++
			}
		}
		if ready < 3 || len(w.nodes) > 4 {
			t.Fatalf("round %d: %d nodes are ready of %d, want 3 or 4", round, ready, len(w.nodes))
		}
		if round%3 == 2 {
			w.settle()
		}
		w.clock.Step(2 * time.Second)
	}
	if created != 3 {
		t.Errorf("%d claims were created for 3 drifted nodes", created)
	}
	for claim, n := range w.nodes {
		if n.Drifted != "" || n.Disrupted || n.Command != "" {
			t.Errorf("remaining: %s drifted %q, tainted %v, command %q", claim, n.Drifted, n.Disrupted, n.Command)
		}
	}
}

// settle simulates what happens meanwhile: deleted claims disappear, and created ones become nodes.
func (w *world) settle() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for claim, n := range w.nodes {
		if n.Deleting {
			delete(w.nodes, claim)
			continue
		}
		if n.Stage != model.Initialized {
			n.Stage, n.UID, n.Ready, n.InitializedAt = model.Initialized, "uid-"+n.Name, true, w.clock.Now()
			n.Capacity = []quantity.Amount{{Name: "pods", Value: 10}}
			n.Allocatable, n.Labels = n.Capacity, map[string]string{model.LabelPool: "p"}
		}
	}
}

// TestStaticDriftSetBack verifies that while the replacement of a drifted node of a static pool is refused, another
// one is requested once per retry period, not at once.
func TestStaticDriftSetBack(t *testing.T) {
	w := newWorld()
	w.static(1)
	n := w.node("old", model.Initialized)
	n.Drifted, n.DriftedSince = "NodePoolDrifted", noon
	d := w.disrupt()
	d.Propose = func(snap *model.Snapshot, _ bool) disruption.Proposal {
		return disruption.Propose(snap, disruption.Options{Static: true})
	}
	created := 0
	for i := range int(2 * d.Timers.StaticRetry / time.Second) {
		w.pending(fmt.Sprint("news-", i), "") // constant changes
		d.Tick(t.Context())
		if log := w.took(); strings.Contains(log, "create claim") {
			created++
			w.mu.Lock()
			for claim := range w.nodes { // the provider has none
				if claim != n.Claim {
					delete(w.nodes, claim)
				}
			}
			w.mu.Unlock()
		}
		w.clock.Step(time.Second)
	}
	if created != 2 {
		t.Errorf("%d replacements were requested in two retry periods, want 2", created)
	}
}
