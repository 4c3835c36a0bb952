package reserve_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/reserve"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// Pods that are still pending keep the reservations of the previous plan, on nodes and on claims regardless of the
// names of their nodes, in addition to those of claims. No other pod has one.
func TestReseated(t *testing.T) {
	w := plantest.New(t, 2)
	w.Nodes["c1"].Promised = []string{"uid-bought"}
	for _, pod := range []string{"bought", "joined", "placed", "new"} {
		w.Pend(pod, "")
	}
	w.Bind("bound-since", "n0")
	snap := w.Snapshot()
	pods := func(names ...string) (list []*model.Pod) {
		for _, name := range names {
			list = append(list, &model.Pod{UID: "uid-" + name, Name: name})
		}
		return list
	}
	last := &plan.Provision{
		Claims:  []plan.NewClaim{{Name: "c1", Pods: pods("bought", "joined")}, {Name: "never-created", Pods: pods("new")}},
		Placed:  []plan.Placement{{Node: "n0", Pods: pods("gone", "placed", "bound-since")}},
		Order:   pods("gone", "joined", "placed", "bound-since", "bought"),
		Renamed: map[string]string{"first": "second"},
	}
	seated := reserve.Reseated(snap, last)
	want := map[string][]string{"n0": {"uid-placed"}, "n1": {"uid-bought", "uid-joined"}}
	got := map[string][]string{}
	for _, n := range seated.Nodes {
		got[n.Name] = n.Promised
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("promised (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"uid-joined": 1, "uid-placed": 2, "uid-bought": 4}, seated.Turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"uid-joined": "n1", "uid-placed": "n0", "uid-bought": "n1"}, seated.Planned); diff != "" {
		t.Errorf("planned (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(last.Renamed, seated.Renamed); diff != "" {
		t.Errorf("renamed (-want +got):\n%s", diff)
	}
	if snap.Node("n0").Promised != nil || snap.Renamed != nil {
		t.Error("the original snapshot has changed")
	}
	if reserve.Reseated(snap, nil) != snap {
		t.Error("without a previous plan, the snapshot differs")
	}
}
