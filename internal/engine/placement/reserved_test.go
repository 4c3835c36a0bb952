package placement_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestReservationThatCannotBeUsed: a pod that no longer fits on the node it is nominated to still has the claim launched
// for it since, and no other pod gets that capacity. (After a crash between the creation of the claim and the removal
// of the nomination, one node more was launched.)
func TestReservationThatCannotBeUsed(t *testing.T) {
	cpu := func(n int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: n}, {Name: "memory", Value: n}, {Name: "pods", Value: 1}}
	}
	room := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1000}, {Name: "pods", Value: 10}}
	pending := func(uid string, amount int64) model.PodSpec {
		return model.PodSpec{UID: uid, Namespace: "default", Name: uid, Requests: cpu(amount), Reschedulable: true}
	}
	node := func(name, launchedFor string) model.NodeSpec {
		return model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "pool", Stage: model.Registered, Ready: true,
			Labels: map[string]string{model.LabelPool: "pool"}, Capacity: room, Allocatable: room, LaunchedFor: model.ParsePodRefs(launchedFor)}
	}
	tests := map[string]struct {
		nominated string
		launched  string
	}{
		"nominated to a full node":       {nominated: "full"},
		"launched for the pod, and full": {launched: "pod"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := model.NewBuilder()
			b.UpsertPool(model.PoolSpec{Name: "pool", UID: "pool", Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{"pool"}}}})
			bound := pending("bound", 1000)
			bound.State, bound.Node = model.Bound, "full"
			b.UpsertPod(bound)
			b.UpsertNode(node("full", test.launched))
			b.UpsertNode(node("bought", "pod"))
			pod := pending("pod", 500)
			pod.Nominated = test.nominated
			b.UpsertPod(pod)
			b.UpsertPod(pending("larger", 600))

			p := placement.Schedule(b.Snapshot(time.Unix(0, 0)), placement.Options{})

			got := map[string][]string{}
			for _, placed := range p.Placed {
				for _, q := range placed.Pods {
					got[placed.Node] = append(got[placed.Node], q.Name)
				}
			}
			if diff := cmp.Diff(map[string][]string{"bought": {"pod"}}, got); diff != "" {
				t.Errorf("placed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPlannedBeforeNominated: the node from the last plan precedes the pod's nomination, which is written after the
// plan and may be older. Otherwise the pod takes the capacity of another pod that the plan placed there, and one node
// more is launched.
func TestPlannedBeforeNominated(t *testing.T) {
	amounts := func(cpu int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: cpu}, {Name: "pods", Value: 1}}
	}
	room := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1000}, {Name: "pods", Value: 10}}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "pool", UID: "pool", Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{"pool"}}}})
	for _, name := range []string{"a", "b"} {
		b.UpsertNode(model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "pool", Stage: model.Registered, Ready: true,
			Labels: map[string]string{model.LabelPool: "pool", "name": name}, Capacity: room, Allocatable: room})
	}
	moved := model.PodSpec{UID: "moved", Namespace: "default", Name: "moved", Requests: amounts(600), Reschedulable: true, Nominated: "b"}
	only := model.PodSpec{UID: "only", Namespace: "default", Name: "only", Requests: amounts(700), Reschedulable: true,
		Alternatives: [][]label.Requirement{{{Key: "name", Operator: label.In, Values: []string{"b"}}}}}
	b.UpsertPod(moved)
	b.UpsertPod(only)
	last := &plan.Provision{Placed: []plan.Placement{{Node: "a", Pods: []*model.Pod{{UID: "moved"}}}, {Node: "b", Pods: []*model.Pod{{UID: "only"}}}}}

	p := placement.Schedule(keeping(b.Snapshot(time.Unix(0, 0)), last), placement.Options{})

	got := map[string]string{}
	for _, placed := range p.Placed {
		for _, q := range placed.Pods {
			got[q.Name] = placed.Node
		}
	}
	if diff := cmp.Diff(map[string]string{"moved": "a", "only": "b"}, got); diff != "" {
		t.Errorf("placed (-want +got):\n%s", diff)
	}
}

// TestNewestReservationHolds: of several reservations of a pod the newest applies. Claims that were created for the pod
// keep their reservation while they are in flight, also after a newer claim was created for it. An older reservation is
// used only where it takes no capacity from a pod with a current one.
func TestNewestReservationHolds(t *testing.T) {
	amounts := func(cpu int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: cpu}, {Name: "memory", Value: cpu}, {Name: "pods", Value: 1}}
	}
	room := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "memory", Value: 1000}, {Name: "pods", Value: 10}}
	noon := time.Unix(0, 0).Add(12 * time.Hour)
	node := func(name string, created time.Time, launchedFor ...model.PodRef) model.NodeSpec {
		return model.NodeSpec{Name: name, UID: name, Claim: name, ClaimUID: name, Pool: "pool", Stage: model.Registered, Ready: true, Created: created,
			Labels: map[string]string{model.LabelPool: "pool"}, Capacity: room, Allocatable: room,
			LaunchedFor: launchedFor}
	}
	moved, other := model.PodRef{UID: "moved"}, model.PodRef{UID: "other"}
	tests := map[string]struct {
		nodes     []model.NodeSpec
		full      string
		nominated string
		want      map[string]string
	}{
		"a newer claim": {
			nodes: []model.NodeSpec{node("a", noon, moved, other), node("b", noon.Add(time.Second), moved)},
			want:  map[string]string{"moved": "b", "other": "a"}},
		"a nomination before claims": {
			nodes: []model.NodeSpec{node("a", noon.Add(time.Second), moved, other), node("b", noon, moved)}, nominated: "b",
			want: map[string]string{"moved": "b", "other": "a"}},
		"the newest node is full": {
			nodes: []model.NodeSpec{node("a", noon, moved), node("b", noon.Add(time.Second), moved)}, full: "b",
			want: map[string]string{"moved": "a"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := model.NewBuilder()
			b.UpsertPool(model.PoolSpec{Name: "pool", UID: "pool", Requirements: []label.Requirement{{Key: model.LabelPool, Operator: label.In, Values: []string{"pool"}}}})
			for _, n := range test.nodes {
				b.UpsertNode(n)
			}
			if test.want["other"] != "" {
				b.UpsertPod(model.PodSpec{UID: "other", Namespace: "default", Name: "other", Requests: amounts(700), Reschedulable: true})
			}
			b.UpsertPod(model.PodSpec{UID: "moved", Namespace: "default", Name: "moved", Requests: amounts(600), Reschedulable: true, Nominated: test.nominated})
			if test.full != "" {
				b.UpsertPod(model.PodSpec{UID: "bound", Namespace: "default", Name: "bound", Requests: amounts(1000), State: model.Bound, Node: test.full})
			}

			p := placement.Schedule(b.Snapshot(noon), placement.Options{})

			got := map[string]string{}
			for _, placed := range p.Placed {
				for _, q := range placed.Pods {
					got[q.Name] = placed.Node
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("placed (-want +got):\n%s", diff)
			}
		})
	}
}
