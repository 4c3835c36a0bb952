package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// apart returns a pod with anti-affinity to the pods of its app in its domain, and with a node affinity of its own.
func apart(name, app, key string) model.PodSpec {
	return model.PodSpec{UID: name, Name: name, Namespace: "default", Created: epoch, Labels: map[string]string{"app": app},
		Requests:     []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "pods", Value: 1}},
		Alternatives: [][]label.Requirement{{{Key: "only", Operator: label.NotIn, Values: []string{app}}}},
		Terms: []model.Term{{Key: key, Anti: true, Selector: model.Selector{Namespaces: []string{"default"},
			Requirements: []label.Requirement{in("app", app)}}}}}
}

func forgetting(nodes int) *model.Builder {
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Catalog: catalog(1), Requirements: []label.Requirement{in(model.LabelPool, "p")}})
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		amounts := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 20}}
		b.UpsertNode(model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Ready: true, Capacity: amounts, Allocatable: amounts,
			Labels: map[string]string{model.LabelZone: "a", "rack": name, model.LabelHostname: name}})
	}
	return b
}

// TestMarksGo checks that marks, topology keys and mentioned values are released with the shapes that used them, and
// that the remaining ones keep their meaning.
func TestMarksGo(t *testing.T) {
	b := forgetting(3)
	stay := apart("stay", "stay", model.LabelZone)
	stay.State, stay.Node = model.Bound, "node-1"
	b.UpsertPod(stay)
	b.UpsertPod(apart("waits", "stay", model.LabelZone))
	most := 0
	for i := range 5000 {
		app := fmt.Sprintf("app-%d", i)
		b.UpsertPod(apart(app, app, "rack"))
		if i%100 == 0 {
			most = max(most, len(b.Snapshot(epoch).Marks))
		}
		b.DeletePod(app)
	}
	got := b.Snapshot(epoch)
	if len(got.Marks) > 200 || most > 400 {
		t.Errorf("%d marks remain of 10,000, with a maximum of %d", len(got.Marks), most)
	}
	only, _ := got.Space.Lookup("only")
	if n := got.Space.Atoms(only); n > 4200 {
		t.Errorf("label only has %d atoms, but one pod mentions one value", n)
	}
	fresh := forgetting(3)
	fresh.UpsertPod(stay)
	fresh.UpsertPod(apart("waits", "stay", model.LabelZone))
	want := fresh.Snapshot(epoch)
	if diff := cmp.Diff(explain.Provision(want, placement.Schedule(want, placement.Options{})), explain.Provision(got, placement.Schedule(got, placement.Options{}))); diff != "" {
		t.Errorf("the plan differs from that of a builder that never had them (-fresh +after):\n%s", diff)
	}
	if !cmp.Equal(got.Node("node-1").Counts[0].Count, 1) {
		t.Errorf("counts of the node are %v", got.Node("node-1").Counts)
	}
}

// TestNewMark checks that a new selector freezes anew only the nodes with pods that it selects.
func TestNewMark(t *testing.T) {
	b := forgetting(10)
	for i := range 10 {
		p := apart(fmt.Sprintf("bound-%d", i), fmt.Sprintf("app-%d", i), model.LabelHostname)
		p.Terms, p.State, p.Node = nil, model.Bound, fmt.Sprintf("node-%d", i)
		b.UpsertPod(p)
	}
	before := b.Snapshot(epoch)
	p := apart("new", "app-7", model.LabelHostname)
	p.Alternatives = nil
	b.UpsertPod(p)
	after := b.Snapshot(epoch)
	for i, n := range after.Nodes {
		if frozen := n != before.Nodes[i]; frozen != (n.Name == "node-7") {
			t.Errorf("%s was frozen anew: %t", n.Name, frozen)
		}
	}
	if counts := after.Node("node-7").Counts; len(counts) != 1 || counts[0].Count != 1 {
		t.Errorf("counts of the node are %v, want one pod", counts)
	}
	if again := b.Snapshot(epoch); again.Nodes[0] != after.Nodes[0] || again.Groups[0] != after.Groups[0] {
		t.Error("a snapshot without changes is not shared")
	}
}

// BenchmarkNewMark measures the snapshot after adding and removing a pod with its own selector, at 5,000 nodes with
// 20 pods each.
func BenchmarkNewMark(b *testing.B) {
	w := forgetting(5000)
	for i := range 100_000 {
		p := apart(fmt.Sprintf("bound-%d", i), fmt.Sprintf("app-%d", i%500), model.LabelHostname)
		p.Terms, p.Alternatives, p.State, p.Node = nil, nil, model.Bound, fmt.Sprintf("node-%d", i/20)
		w.UpsertPod(p)
	}
	w.Snapshot(epoch)
	for i := 0; b.Loop(); i++ {
		p := apart("new", fmt.Sprintf("app-x-%d", i), model.LabelHostname)
		p.Alternatives = nil
		w.UpsertPod(p)
		w.Snapshot(epoch)
		w.DeletePod("new")
	}
}
