package disrupt_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/disrupt"
	"github.com/karpenter-go/karpenter/internal/controller/static"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/internal/testing/loopcluster"
)

// TestStaticDriftLife verifies that drifted nodes of a static pool are replaced in waves. While the two loops run
// concurrently, there are never fewer ready nodes than the pool specifies, never more than the budget adds, and
// nothing is launched twice.
func TestStaticDriftLife(t *testing.T) {
	w := loopcluster.New(t)
	w.Static(3)
	w.Pool.Budgets = []model.Budget{{Count: 1}}
	for i := range 3 {
		n := w.Node(fmt.Sprint("old-", i), model.Initialized)
		n.Drifted, n.DriftedSince = "NodePoolDrifted", loopcluster.Noon.Add(time.Duration(i)*time.Second)
	}
	s := &static.Loop{Snapshot: w.Snapshot, Writer: w, On: true, Timers: controller.Production(), Clock: w.Clock,
		Report: static.Reporter{Why: func(_ *model.Snapshot, v plan.Verdict) string { return fmt.Sprintf("code %d", v.Code) }}}
	d := newLoop(w)
	d.Propose = func(snap *model.Snapshot, _ bool) disruption.Proposal {
		commands, kept := disruption.StaticDrift(snap, guard.New(snap))
		return disruption.Proposal{Commands: commands, Kept: kept}
	}
	created := 0
	for round := range 40 {
		d.Tick(t.Context())
		s.Tick(t.Context())
		created += strings.Count(w.Took(), "create claim")
		ready := 0
		for _, n := range w.Nodes {
			if n.Stage == model.Initialized && !n.Deleting {
				ready++
			}
		}
		if ready < 3 || len(w.Nodes) > 4 {
			t.Fatalf("round %d: %d nodes are ready of %d, want 3 or 4", round, ready, len(w.Nodes))
		}
		if round%3 == 2 {
			settle(w)
		}
		w.Clock.Step(2 * time.Second)
	}
	if created != 3 {
		t.Errorf("%d claims were created for 3 drifted nodes", created)
	}
	for claim, n := range w.Nodes {
		switch {
		case n.Drifted != "":
			t.Errorf(`remaining: n.Drifted is %v, want "", %s`, n.Drifted, claim)
		case n.Disrupted:
			t.Errorf("remaining: n.Disrupted is true, %s", claim)
		case n.Command != "":
			t.Errorf(`remaining: n.Command is %v, want "", %s`, n.Command, claim)
		}
	}
}

// TestStaticLimit verifies that claims never exceed the limit of a static pool while all nodes drift and the number of
// nodes grows. Machines take longer to end than others take to start, so claims that are being deleted accumulate.
func TestStaticLimit(t *testing.T) {
	for name, c := range map[string]struct{ nodes, replicas, limit, budget, drifted int64 }{
		"several at once":              {nodes: 10, replicas: 10, limit: 12, budget: 5},
		"one at a time":                {nodes: 4, replicas: 4, limit: 5, budget: 4},
		"growth up to the limit":       {nodes: 3, replicas: 5, limit: 5, budget: 5, drifted: 3},
		"growth with room for renewal": {nodes: 3, replicas: 5, limit: 6, budget: 5},
	} {
		for grown := range 6 { // growth is requested in each phase of the first commands
			t.Run(fmt.Sprintf("%s, after %d rounds", name, grown), func(t *testing.T) {
				w, s, d := drifting(t, int(c.nodes), c.limit, c.budget)
				deleted := map[string]int{}
				for round := range 400 {
					if round == grown {
						w.Pool.Replicas = c.replicas
					}
					d.Tick(t.Context())
					s.Tick(t.Context())
					if len(w.Nodes) > int(c.limit) {
						t.Fatalf("round %d: %d claims exist, limit %d", round, len(w.Nodes), c.limit)
					}
					settleLate(w, round, deleted)
					w.Clock.Step(2 * time.Second)
				}
				drifted := int64(0)
				for _, n := range w.Nodes {
					if n.Drifted != "" {
						drifted++
					}
				}
				if len(w.Nodes) != int(c.replicas) || drifted > c.drifted {
					t.Errorf("%d nodes remain, %d of them drifted, want %d and %d", len(w.Nodes), drifted, c.replicas, c.drifted)
				}
			})
		}
	}
}

// drifting returns a cluster whose static pool has as many nodes as it should, all drifted, and its loops.
func drifting(t *testing.T, nodes int, limit, budget int64) (*loopcluster.Cluster, *static.Loop, *disrupt.Loop) {
	w := loopcluster.New(t)
	w.Static(int64(nodes))
	w.Pool.Budgets = []model.Budget{{Count: budget}}
	w.Pool.Limits = []quantity.Amount{{Name: model.ResourceNodes, Value: limit}}
	for i := range nodes {
		n := w.Node(fmt.Sprint("old-", i), model.Initialized)
		n.Drifted, n.DriftedSince = "NodePoolDrifted", loopcluster.Noon.Add(time.Duration(i)*time.Second)
	}
	s := &static.Loop{Snapshot: w.Snapshot, Writer: w, On: true, Timers: controller.Production(), Clock: w.Clock,
		Report: static.Reporter{Why: func(_ *model.Snapshot, v plan.Verdict) string { return fmt.Sprintf("code %d", v.Code) }}}
	d := newLoop(w)
	d.Propose = func(snap *model.Snapshot, _ bool) disruption.Proposal {
		return disruption.Propose(snap, disruption.Options{Static: true})
	}
	return w, s, d
}

// settleLate initializes a claim after a round, and ends a deleted one after seven.
func settleLate(w *loopcluster.Cluster, round int, deleted map[string]int) {
	w.Lock()
	var ending []*model.NodeSpec
	for claim, n := range w.Nodes {
		if !n.Deleting {
			continue
		}
		if _, known := deleted[claim]; !known {
			deleted[claim] = round
		}
		if round < deleted[claim]+7 {
			ending = append(ending, n)
			delete(w.Nodes, claim)
		}
	}
	w.Unlock()
	settle(w)
	for _, n := range ending {
		w.Nodes[n.Claim] = n
	}
}

// settle simulates what happens meanwhile: deleted claims disappear, and created ones become nodes.
func settle(w *loopcluster.Cluster) {
	w.Lock()
	defer w.Unlock()
	for claim, n := range w.Nodes {
		if n.Deleting {
			delete(w.Nodes, claim)
			continue
		}
		if n.Stage != model.Initialized {
			n.Stage, n.UID, n.Ready, n.InitializedAt = model.Initialized, "uid-"+n.Name, true, w.Clock.Now()
			n.Capacity = []quantity.Amount{{Name: "pods", Value: 10}}
			n.Allocatable, n.Labels = n.Capacity, map[string]string{model.LabelPool: "p"}
		}
	}
}

// TestStaticDriftPauses verifies that while the replacement of a drifted node of a static pool is refused, another one
// is requested after each pause, not at once.
func TestStaticDriftPauses(t *testing.T) {
	w := loopcluster.New(t)
	w.Static(1)
	n := w.Node("old", model.Initialized)
	n.Drifted, n.DriftedSince = "NodePoolDrifted", loopcluster.Noon
	d := newLoop(w)
	d.Propose = func(snap *model.Snapshot, _ bool) disruption.Proposal {
		return disruption.Propose(snap, disruption.Options{Static: true})
	}
	created := 0
	for i := range 200 {
		w.Pending(fmt.Sprint("news-", i), "") // constant changes
		d.Tick(t.Context())
		if log := w.Took(); strings.Contains(log, "create claim") {
			created++
			w.Lock()
			for claim := range w.Nodes { // the provider has none
				if claim != n.Claim {
					delete(w.Nodes, claim)
				}
			}
			w.Unlock()
		}
		w.Clock.Step(time.Second)
	}
	if created != 3 {
		t.Errorf("%d replacements were requested in 200 seconds, want 3, after pauses of one and two minutes", created)
	}
}
