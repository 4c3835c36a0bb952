package model_test

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// namer returns a pod that names labels and resources that no node has: half of the labels must be absent, half must
// exist.
func namer(name string, labels, resources int) model.PodSpec {
	p := model.PodSpec{UID: name, Name: name, Namespace: "tenant", Created: epoch, Reschedulable: true,
		Requests: []quantity.Amount{{Name: "cpu", Value: 100}, {Name: "pods", Value: 1}}}
	var reqs []label.Requirement
	for i := range labels {
		operator := label.DoesNotExist
		if i%2 == 1 {
			operator = label.Exists
		}
		reqs = append(reqs, label.Requirement{Key: fmt.Sprintf("%s-%d", name, i), Operator: operator})
	}
	if labels > 0 {
		p.Alternatives = [][]label.Requirement{reqs}
	}
	for i := range resources {
		p.Requests = append(p.Requests, quantity.Amount{Name: fmt.Sprintf("a.io/%s-%d", name, i), Value: 1})
	}
	return p
}

// answers returns what a plan says about each pending pod: its node or claim, or why it has none.
func answers(s *model.Snapshot) map[string]string {
	p := placement.Schedule(s, placement.Options{AskNodes: true})
	said := map[string]string{}
	for _, pod := range p.Order {
		said[pod.Name] = "placed"
	}
	for _, r := range p.Refused {
		for _, pod := range r.Pods {
			said[pod.Name] = explain.Refusal(s, r)
		}
	}
	return said
}

// TestNamesOfOnePod checks that the labels and resources that one pod names, and no node has, take no memory of nodes,
// instance types and other pods.
func TestNamesOfOnePod(t *testing.T) {
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) >> 20
	}
	b := forgetting(1000)
	b.UpsertPod(namer("plain", 0, 0))
	first := b.Snapshot(epoch)
	before := live()
	b.UpsertPod(namer("resources", 0, 25_000))
	b.UpsertPod(namer("labels", 30_000, 0))
	for i := range 25 {
		b.UpsertPod(namer(fmt.Sprintf("some-%d", i), 1000, 1000))
	}
	s := b.Snapshot(epoch)
	if more := live() - before; more > 50 {
		t.Errorf("%d MiB more", more)
	} else {
		t.Logf("%d MiB more", more)
	}
	if words, resources := s.Space.Words(), len(s.Resources); words > first.Space.Words()+1 || resources > len(first.Resources)+1 {
		t.Errorf("a row has %d words and a vector %d resources, before %d and %d", words, resources, first.Space.Words(), len(first.Resources))
	}
	said := answers(s)
	for name, want := range map[string]string{
		"plain": "placed", "resources": "needs 1 of a.io/resources-0, none of ", "labels": "label labels-1",
	} {
		if !strings.Contains(said[name], want) {
			t.Errorf("%s: %q, want %q", name, said[name], want)
		}
	}
	runtime.KeepAlive(first)
}

// TestNamesBecomeKnown checks that a pod is placed as soon as a node or an instance type has what it names, and no
// longer when that is gone, whether or not the names share a number.
func TestNamesBecomeKnown(t *testing.T) {
	for _, crowded := range []bool{false, true} {
		t.Run(fmt.Sprintf("crowded %t", crowded), func(t *testing.T) {
			b := forgetting(2)
			if crowded {
				crowd := namer("crowd", 100, 100)
				crowd.Rejected = &model.Rejection{Reason: "is odd"}
				b.UpsertPod(crowd)
			}
			device, labeled, absent := namer("device", 0, 0), namer("labeled", 0, 0), namer("absent", 0, 0)
			device.Requests = append(device.Requests, quantity.Amount{Name: "z.io/device", Value: 1})
			labeled.Alternatives = [][]label.Requirement{{in("z.io/label", "x")}}
			absent.Alternatives = [][]label.Requirement{
				{{Key: "z.io/label", Operator: label.DoesNotExist}},
				{{Key: "z.io/label", Operator: label.NotIn, Values: []string{"x", "y"}}},
			}
			for _, p := range []model.PodSpec{device, labeled, absent} {
				b.UpsertPod(p)
			}
			expect := func(when string, want map[string]string) {
				t.Helper()
				said := answers(b.Snapshot(epoch))
				for name, text := range want {
					if !strings.Contains(said[name], text) {
						t.Errorf("%s: %s: %q, want %q", when, name, said[name], text)
					}
				}
			}
			missing := map[string]string{"device": "z.io/device", "labeled": "z.io/label", "absent": "placed"}
			all := map[string]string{"device": "placed", "labeled": "placed", "absent": "placed"}
			expect("nothing has it", missing)

			amounts := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 20}, {Name: "z.io/device", Value: 1}}
			node := model.NodeSpec{Name: "late", UID: "late", Stage: model.Initialized, Ready: true, Capacity: amounts, Allocatable: amounts,
				Labels: map[string]string{"z.io/label": "x"}}
			b.UpsertNode(node)
			expect("a node has it", all)
			b.DeleteNode("late")
			expect("the node is gone", missing)
			b.UpsertNode(node)
			expect("the node is back", all)
			node.Allocatable, node.Capacity, node.Labels = amounts[:2], amounts[:2], nil
			b.UpsertNode(node)
			expect("the node has lost it", missing)

			special := catalog(1)
			for i := range special.Types {
				special.Types[i].Capacity = append(slices.Clone(special.Types[i].Capacity), amounts[2])
				special.Types[i].Allocatable = special.Types[i].Capacity
			}
			b.UpsertPool(model.PoolSpec{Name: "q", UID: "q", Catalog: special,
				Requirements: []label.Requirement{in(model.LabelPool, "q"), in("z.io/label", "x", "y")}})
			expect("a pool has it", all)
			b.DeletePool("q")
			expect("the pool is gone", missing)
		})
	}
}

// TestNamesGo checks that the names of resources do not stay for longer than what uses them, but for a few.
func TestNamesGo(t *testing.T) {
	b := forgetting(1)
	first := len(b.Snapshot(epoch).Resources)
	for i := range 200 {
		name := fmt.Sprintf("n-%d", i)
		amounts := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 20}, {Name: "a.io/" + name, Value: 1}}
		b.UpsertNode(model.NodeSpec{Name: name, UID: name, Stage: model.Initialized, Capacity: amounts, Allocatable: amounts})
		b.UpsertPod(namer(name, 3, 3))
		b.UpsertDaemon(model.DaemonSpec{UID: name, Name: name, Requests: []quantity.Amount{{Name: "a.io/daemon-" + name, Value: 1}}})
		if i >= 2 {
			old := fmt.Sprintf("n-%d", i-2)
			b.DeleteNode(old)
			b.DeletePod(old)
			b.DeleteDaemon(old)
		}
		if n := len(b.Snapshot(epoch).Resources); n > first+40 {
			t.Fatalf("%d resources after %d nodes, at first %d", n, i, first)
		}
	}
}

// TestVolumesWithoutNumber checks that a pod whose volumes have no number can be removed from its node although names got
// a number that they share after it was bound.
func TestVolumesWithoutNumber(t *testing.T) {
	b := forgetting(1)
	b.Snapshot(epoch)
	p := namer("p", 0, 0)
	p.State, p.Node, p.Volumes = model.Bound, "node-0", []model.Volume{{Driver: "v.example.com"}}
	b.UpsertPod(p)
	crowd := namer("crowd", 0, 100)
	crowd.Rejected = &model.Rejection{Reason: "is odd"}
	b.UpsertPod(crowd)
	if s := b.Snapshot(epoch).Without("node-0"); len(s.Groups) != 1 {
		t.Errorf("%d groups without the node, want 1", len(s.Groups))
	}
	b.DeletePod("p")
	if used := b.Snapshot(epoch).Node("node-0").Used; !used.IsZero() {
		t.Errorf("the node's pods use %v", used)
	}
}
