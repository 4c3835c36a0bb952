package placement

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestReservationOfTwoPools verifies (RS-4) that a reservation that one pool shows with room for three nodes, and another
// with room for five, gets at most three in all, and none in a what-if after which these three are decided. That it is not
// available in a third pool, whose placement group has no room, takes nothing from the others.
func TestReservationOfTwoPools(t *testing.T) {
	cpu := func(n int64) []quantity.Amount {
		return []quantity.Amount{{Name: "cpu", Value: n * 1000}, {Name: "pods", Value: 10}}
	}
	known := map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}
	b := model.NewBuilder()
	for pool, count := range map[string]int{"a": 3, "b": 5, "full": 1} {
		at := label.Requirement{Key: model.LabelType, Operator: label.In, Values: []string{"t"}}
		b.UpsertPool(model.PoolSpec{Name: pool, Requirements: []label.Requirement{{Key: "pool", Operator: label.In, Values: []string{pool}}},
			Catalog: &model.Catalog{WellKnown: known, Types: []model.InstanceType{{Name: "t", Capacity: cpu(1),
				Allocatable: cpu(1), Requirements: []label.Requirement{at}, Offerings: []model.Offering{
					{Zone: "z", CapacityType: "on-demand", Price: model.Nano, Available: true},
					{Zone: "z", CapacityType: "reserved", Available: pool != "full", ReservationID: "r", ReservationCount: count}}}}}})
		for i := range 4 {
			name := fmt.Sprint(pool, i)
			b.UpsertPod(model.PodSpec{UID: name, Namespace: "n", Name: name, State: model.Pending, Reschedulable: true, Requests: cpu(1)[:1],
				Alternatives: [][]label.Requirement{{{Key: "pool", Operator: label.In, Values: []string{pool}}}}})
		}
	}
	snap := b.Snapshot(time.Unix(0, 0))
	p := Schedule(snap, Options{})
	reserved := reservedBy(p)
	if len(p.Claims) != 12 || reserved["a"]+reserved["b"] != 3 {
		t.Errorf("of %d claims, reserved are %v, want twelve and three in all; refused %v", len(p.Claims), reserved, p.Refused)
	}
	p = Schedule(snap, Options{DecidedClaims: p.Claims})
	if reserved := reservedBy(p); len(p.Claims) != 12 || len(reserved) > 0 {
		t.Errorf("of %d further claims, reserved are %v, want twelve and none", len(p.Claims), reserved)
	}
}

// reservedBy counts the claims that are in a reservation first, by pool.
func reservedBy(p *plan.Provision) map[string]int {
	reserved := map[string]int{}
	for i := range p.Claims {
		if c := &p.Claims[i]; c.Options[0].CapacityType == "reserved" {
			reserved[c.Pool]++
		}
	}
	return reserved
}

// TestReservationsOfOneType: each of several reservations of a type gets its nodes, then a commitment, and the rest is bought
// at the list price.
func TestReservationsOfOneType(t *testing.T) {
	cpu := []quantity.Amount{{Name: "cpu", Value: 1000}, {Name: "pods", Value: 10}}
	at := func(zone, capacityType, id string, price, units int64) model.Offering {
		return model.Offering{Zone: zone, CapacityType: capacityType, Price: price, Available: true, ReservationID: id, ReservationCount: 1,
			Units: units, Limit: units}
	}
	known := map[string]bool{model.LabelType: true, model.LabelZone: true, model.LabelCapacityType: true}
	b := model.NewBuilder()
	b.UpsertPool(model.PoolSpec{Name: "p",
		Catalog: &model.Catalog{WellKnown: known, Types: []model.InstanceType{{Name: "t", Capacity: cpu, Allocatable: cpu,
			Offerings: []model.Offering{at("x", "reserved", "r", 10, 0), at("y", "reserved", "s", 11, 0), at("y", "reserved", "u", 11, 0),
				at("x", "on-demand", model.CommitmentID(0, "plan"), model.Nano/2, 1000), at("x", "on-demand", "", model.Nano, 0)}}}}})
	for i := range 6 {
		b.UpsertPod(model.PodSpec{UID: fmt.Sprint(i), Namespace: "n", Name: fmt.Sprint(i), State: model.Pending, Reschedulable: true,
			Requests: cpu[:1]})
	}
	var got []string
	for _, c := range Schedule(b.Snapshot(time.Unix(0, 0)), Options{}).Claims {
		got = append(got, c.Reservation)
	}
	if slices.Sort(got); !slices.Equal(got, []string{"", "", model.CommitmentID(0, "plan"), "r", "s", "u"}) {
		t.Errorf("the claims are in %q", got)
	}
}
