package model_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestVacated checks that a vacated snapshot equals one in which the moving pods are pending and their nodes closed.
func TestVacated(t *testing.T) {
	for seed := range uint64(120) {
		h := newHistory(seed)
		h.settled = true // shared volumes of pods that move remain in the usage
		for range 70 {
			h.event()
		}
		snap := h.builder.Snapshot(epoch)
		before := describe(snap)
		leaving, moves := map[string]bool{}, map[string]bool{}
		for _, n := range snap.Nodes {
			leaving[n.Name] = h.IntN(2) == 0
			for _, p := range n.Pods {
				moves[p.UID] = h.IntN(4) > 0
			}
		}
		got := describe(snap.Vacated(func(n *model.Node) bool { return leaving[n.Name] }, func(_ *model.Node, p *model.Pod) bool { return moves[p.UID] }))
		if diff := cmp.Diff(before, describe(snap)); diff != "" {
			t.Fatalf("seed %d: the snapshot changed:\n%s", seed, diff)
		}
		for uid, p := range h.pods {
			if p.State == model.Bound && leaving[p.Node] && moves[uid] && p.Reschedulable {
				p.State = model.Pending
				h.pods[uid] = p
			}
		}
		for name, n := range h.nodes {
			n.Disrupted = n.Disrupted || leaving[name]
			h.nodes[name] = n
		}
		if diff := cmp.Diff(describe(h.cold().Snapshot(epoch)), got); diff != "" {
			t.Fatalf("seed %d: with %v being removed, -cold +overlay\n%s", seed, leaving, diff)
		}
	}
}

// TestVacatedCounts checks that moving pods no longer count on the old node in the topology, and that the other pods
// do.
func TestVacatedCounts(t *testing.T) {
	apart := model.Term{Key: model.LabelHostname, Anti: true, Weight: 0, Selector: model.Selector{Namespaces: []string{"default"}}}
	world := func(bound ...string) *model.Snapshot {
		b := model.NewBuilder()
		b.UpsertNode(model.NodeSpec{Name: "n", UID: "n", Claim: "c", ClaimUID: "c", Stage: model.Initialized})
		for i := range 4 {
			p := model.PodSpec{UID: fmt.Sprint(i), Name: fmt.Sprint(i), Namespace: "default", Reschedulable: true, Terms: []model.Term{apart},
				Spread: []model.Spread{{Key: model.LabelHostname, MaxSkew: 1, Selector: apart.Selector}}}
			for _, uid := range bound {
				if uid == p.UID {
					p.State, p.Node = model.Bound, "n"
				}
			}
			b.UpsertPod(p)
		}
		return b.Snapshot(epoch)
	}
	all := world("0", "1", "2")
	for _, test := range []struct {
		name string
		stay []string
	}{{"all but one", []string{"1"}}, {"all", nil}, {"none", []string{"0", "1", "2"}}} {
		t.Run(test.name, func(t *testing.T) {
			stays := map[string]bool{}
			for _, uid := range test.stay {
				stays[uid] = true
			}
			got := all.Vacated(func(*model.Node) bool { return true }, func(_ *model.Node, p *model.Pod) bool { return !stays[p.UID] }).Nodes[0].Counts
			want := world(test.stay...).Nodes[0].Counts
			if len(got)+len(want) > 0 && cmp.Diff(want, got) != "" {
				t.Errorf("counts (-want +got):\n%s", cmp.Diff(want, got))
			}
			if len(test.stay) > 0 && len(got) == 0 {
				t.Error("no counts")
			}
		})
	}
}
