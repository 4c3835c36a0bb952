package model_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

const keyFeature = "feature.example.org/gpu"

// shownNode describes a node of the pool p.
type shownNode struct {
	kind string
	// feature is the value of the label, "" for none.
	feature string
	age     time.Duration
	stage   model.Stage
}

// shownWorld is a pool with the types ten and six, the nodes, and a DaemonSet that requests 2 CPUs where nodes have the label.
func shownWorld(nodes []shownNode, pool ...label.Requirement) (*model.Builder, model.DaemonSpec) {
	catalog := &model.Catalog{WellKnown: map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}}
	for name, size := range map[string]int64{"ten": 10, "six": 6} {
		catalog.Types = append(catalog.Types, model.InstanceType{Name: name, Capacity: cpus(size), Allocatable: cpus(size),
			Requirements: []label.Requirement{oneOf(model.LabelType, name)},
			Offerings:    []model.Offering{{Zone: "a", CapacityType: "spot", Price: size, Available: true}}})
	}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: catalog, Requirements: pool})
	feature := daemonOf("feature", 2000, 0, oneOf(keyFeature, "true", "yes"))
	b.UpsertDaemon(feature)
	for i, n := range nodes {
		labels := map[string]string{model.LabelPool: "p", model.LabelType: n.kind, model.LabelZone: "a", model.LabelCapacityType: "spot"}
		if n.feature != "" {
			labels[keyFeature] = n.feature
		}
		name := fmt.Sprint("n", i)
		b.UpsertNode(model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "p", Stage: n.stage, Ready: true, Labels: labels,
			InitializedAt: epoch.Add(-n.age), Capacity: cpus(10), Allocatable: cpus(10)})
	}
	return b, feature
}

// TestShownLabels: a DaemonSet that selects a label which nodes get after they have joined takes room of the new nodes
// of those types whose nodes all have it, and of the types without nodes if all nodes of the pool have it.
func TestShownLabels(t *testing.T) {
	const hour = time.Hour
	ten := shownNode{"ten", "true", hour, model.Initialized}
	for name, c := range map[string]struct {
		nodes    []shownNode
		pool     []label.Requirement
		ten, six int64 // CPUs for pods
	}{
		"no nodes":                    {nil, nil, 10, 6},
		"a node that has it":          {[]shownNode{ten}, nil, 8, 4},
		"another value, selected":     {[]shownNode{ten, {"ten", "yes", hour, model.Initialized}}, nil, 8, 4},
		"a value that is not":         {[]shownNode{{"ten", "no", hour, model.Initialized}}, nil, 10, 6},
		"a node of the type lacks it": {[]shownNode{ten, {"ten", "", hour, model.Initialized}}, nil, 10, 6},
		"another type lacks it":       {[]shownNode{ten, {"six", "", hour, model.Initialized}}, nil, 8, 6},
		"a young node lacks it":       {[]shownNode{ten, {"ten", "", time.Minute, model.Initialized}}, nil, 8, 4},
		"a node that joins lacks it":  {[]shownNode{ten, {"ten", "", hour, model.Registered}}, nil, 8, 4},
		"the pool excludes it":        {[]shownNode{ten}, []label.Requirement{{Key: keyFeature, Operator: label.DoesNotExist}}, 10, 6},
	} {
		t.Run(name, func(t *testing.T) {
			b, feature := shownWorld(c.nodes, c.pool...)
			check := func(wantTen, wantSix int64) {
				t.Helper()
				p := b.Snapshot(epoch).Pool("p")
				got := map[string]int64{}
				for i, kind := range p.Types.Catalog.Types {
					got[kind.Name] = p.Rooms.Of(0).Net[i][0] / 1000
				}
				if diff := cmp.Diff(map[string]int64{"ten": wantTen, "six": wantSix}, got); diff != "" {
					t.Errorf("CPUs for pods (-want +got):\n%s", diff)
				}
			}
			check(c.ten, c.six)
			check(c.ten, c.six)
			b.DeleteDaemon(feature.UID)
			check(10, 6)
		})
	}
}

// TestShownInFlight: claims in flight, and nodes that join, have the room that the plan of their launch counted on. A pod
// that requires the label has no node, as before.
func TestShownInFlight(t *testing.T) {
	b, _ := shownWorld([]shownNode{{"ten", "true", time.Hour, model.Initialized}, {"ten", "", 0, model.Registered}, {"ten", "true", 0,
		model.Registered}})
	b.UpsertNode(model.NodeSpec{Name: "c", UID: "c", Claim: "c", ClaimUID: "c", Pool: "p", Stage: model.Launching,
		Requirements: []label.Requirement{oneOf(model.LabelType, "ten")}, Requests: cpus(1)})
	s := b.Snapshot(epoch)
	for node, want := range map[string]int64{"n0": 10, "n1": 8, "n2": 8, "c": 8} {
		if got := s.Node(node).Free()[0] / 1000; got != want {
			t.Errorf("%s has %d CPUs for pods, want %d", node, got, want)
		}
	}
	labels, because := s.Pool("p").Shown("six")
	if diff := cmp.Diff([]model.ShownLabel{{Key: keyFeature, Values: []string{"true"}}}, labels); diff != "" || len(because) != 1 {
		t.Errorf("shown because of %d DaemonSets (-want +got):\n%s", len(because), diff)
	}
	b.DeleteNode("n0")
	b.DeleteNode("n2")
	if got := b.Snapshot(epoch).Node("c").Free()[0] / 1000; got != 10 {
		t.Errorf("after the last node that shows it: %d CPUs for pods, want 10", got)
	}
	k, _ := s.Space.Lookup(keyFeature)
	if p := s.Pool("p"); !s.Space.HasAtom(p.Start, k, s.Space.Absent(k)) || s.Space.HasAtom(p.Start, k, s.Space.Atom(k, "true")) {
		t.Error("the pool's nodes count as labeled for pods")
	}
}
