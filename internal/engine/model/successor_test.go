package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestSuccessor checks that a pod whose requests were reduced counts with these on its node, and with those of its
// successor wherever it moves; resources that are numbered again change nothing.
func TestSuccessor(t *testing.T) {
	amounts := func(cpu, memory int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: memory}, {Name: "pods", Value: 1}}
	}
	b := model.NewBuilder()
	for _, name := range []string{"a", "b"} {
		b.UpsertNode(model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Stage: model.Initialized,
			Allocatable: amounts(4000, 8000)})
	}
	pod := model.PodSpec{UID: "p", Name: "p", Namespace: "default", State: model.Bound, Node: "a", Reschedulable: true,
		Requests: amounts(300, 1000), Successor: amounts(3700, 1000)}
	b.UpsertPod(pod)
	b.Snapshot(epoch)
	b.UpsertNode(model.NodeSpec{Name: "c", UID: "c", Claim: "c", ClaimUID: "c", Stage: model.Initialized,
		Allocatable: []quantity.Amount{{Name: "a.example.com/x", Value: 1}}})
	snap := b.Snapshot(epoch)
	all := func(*model.Node, *model.Pod) bool { return true }
	vacated := snap.Vacated(func(n *model.Node) bool { return n.Name == "a" }, all)
	moved := snap.Without("a")
	bound := moved.Bound([]model.Assignment{{Node: "b", Pods: moved.Groups[0].Pods}})
	got := map[string]int64{
		"on its node":      snap.Node("a").Used.At(quantity.CPU),
		"pending":          moved.Groups[0].Requests.At(quantity.CPU),
		"on another node":  bound.Node("b").Used.At(quantity.CPU),
		"vacated, pending": vacated.Groups[0].Requests.At(quantity.CPU),
		"vacated, left":    vacated.Node("a").Used.At(quantity.CPU),
		"memory":           moved.Groups[0].Requests.At(quantity.Memory),
	}
	b.DeletePod("p")
	got["deleted"] = b.Snapshot(epoch).Node("a").Used.At(quantity.CPU)
	want := map[string]int64{"on its node": 300, "pending": 3700, "on another node": 3700, "vacated, pending": 3700,
		"vacated, left": 0, "memory": 1000, "deleted": 0}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cpu (-want +got):\n%s", diff)
	}
}
