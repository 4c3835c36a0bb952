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
func TestLastPlan(t *testing.T) {
	w := plantest.New(t, 2)
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
	kept := snap.WithReservations(reserve.Derive(snap, reserve.Sources{Last: last}))
	reservation := func(uid string) model.Reservation {
		return model.Reservation{Pod: model.PodRef{UID: uid}, Source: model.FromLastPlan}
	}
	want := map[string][]model.Reservation{"n0": {reservation("uid-placed")}, "n1": {reservation("uid-bought"), reservation("uid-joined")}}
	got := map[string][]model.Reservation{}
	for _, n := range kept.Nodes {
		got[n.Name] = n.Reservations
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reservations (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]int{"uid-joined": 1, "uid-placed": 2, "uid-bought": 4}, kept.Turns); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(last.Renamed, kept.ClaimNames); diff != "" {
		t.Errorf("names of claims (-want +got):\n%s", diff)
	}
	if snap.Node("n0").Reservations != nil || snap.ClaimNames != nil {
		t.Error("the original snapshot has changed")
	}
	if snap.WithReservations(reserve.Derive(snap, reserve.Sources{})) != snap {
		t.Error("without a previous plan, the snapshot differs")
	}
}
