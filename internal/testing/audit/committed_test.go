package audit_test

import (
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/audit"
)

// paidAhead returns a cluster with one node and two pods, each of which needs a node: a commitment of so many millicores
// halves the price, and a reservation has room for so many nodes.
func paidAhead(limit int64, count int) *model.Snapshot {
	const held = "example.com/reservation"
	none := func(key string) label.Requirement { return label.Requirement{Key: key, Operator: label.DoesNotExist} }
	t := kind("amd-2", "amd64", 2)
	listed := model.Offering{Zone: "a", CapacityType: "on-demand", Price: 100_000_000, Available: true}
	committed, ahead := listed, listed
	listed.Requirements = []label.Requirement{none(held), none(model.FieldCommitment)}
	committed.Requirements = []label.Requirement{none(held), in(model.FieldCommitment, "plan")}
	committed.ReservationID, committed.Price, committed.Units, committed.Limit = model.CommitmentID(0, "plan"), 50_000_000, 2000, limit
	ahead.Requirements = []label.Requirement{in(held, "r"), none(model.FieldCommitment)}
	ahead.CapacityType, ahead.Price, ahead.ReservationID, ahead.ReservationCount, ahead.Available = "reserved", 10, "r", count, count > 0
	t.Offerings = []model.Offering{listed, committed, ahead}
	known := map[string]bool{}
	for _, key := range []string{model.LabelPool, model.LabelCapacityType, model.LabelZone, model.LabelType, keyArch, held,
		model.FieldCommitment} {
		known[key] = true
	}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p", UID: "p", Requirements: []label.Requirement{in(model.LabelPool, "p")},
		Catalog: &model.Catalog{WellKnown: known, Types: []model.InstanceType{t}}})
	b.UpsertNode(model.NodeSpec{Name: "n", Claim: "n", Pool: "p", Stage: model.Initialized, Created: epoch, Capacity: t.Capacity,
		Allocatable: amounts(100, gi, 0), Labels: map[string]string{model.LabelType: "amd-2", model.LabelZone: "a",
			model.LabelCapacityType: "on-demand"}})
	for _, name := range []string{"x", "y"} {
		b.UpsertPod(model.PodSpec{UID: name, Name: name, Namespace: "default", Requests: amounts(1500, gi, 1), Reschedulable: true})
	}
	return b.Snapshot(epoch)
}

// TestPaidAhead: the audit finds claims beyond a commitment, nodes at another price, and claims beside a reservation.
func TestPaidAhead(t *testing.T) {
	first := func(problems []audit.Problem) string {
		if len(problems) == 0 {
			return ""
		}
		return problems[0].Kind
	}
	of := func(snap *model.Snapshot) *plan.Provision { return placement.Schedule(snap, placement.Options{}) }
	snap := paidAhead(4000, 1)
	p := of(snap)
	got := map[string]bool{}
	for i := range p.Claims {
		got[p.Claims[i].Reservation] = true
	}
	if problems := audit.Provision(snap, p); first(problems) != "" || !got["r"] || !got[model.CommitmentID(0, "plan")] {
		t.Fatalf("the plan buys with %v, and has problems %v", got, problems)
	}
	if problems := audit.Provision(paidAhead(3000, 1), p); first(problems) != "commitment" {
		t.Errorf("with a smaller commitment: %v", problems)
	}
	if problems := audit.Provision(paidAhead(4000, 1), of(paidAhead(4000, 0))); first(problems) != "preferred" {
		t.Errorf("with a reservation that the plan does not know: %v", problems)
	}
	snap.Node("n").Price *= 2
	if problems := audit.Provision(snap, p); first(problems) != "commitment" || !strings.Contains(problems[0].Text, "want 50000000") {
		t.Errorf("with a node at the list price: %v", problems)
	}
}
