package convert

import (
	"fmt"
	"math"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Catalog converts a provider's instance types. It omits invalid types and returns a rejection for each.
func Catalog(types []cloud.InstanceType, v *Vocabulary) (*model.Catalog, []model.Rejection) {
	catalog := &model.Catalog{Types: make([]model.InstanceType, 0, len(types)), WellKnown: v.wellKnown}
	var refused []model.Rejection
	for i := range types {
		t, why := instanceType(&types[i], v)
		if why != nil {
			refused = append(refused, *why)
			continue
		}
		catalog.Types = append(catalog.Types, t)
	}
	distinguish(catalog)
	return catalog, refused
}

// Alone returns a snapshot of a single pool, ready or not, and the instance types of its provider, restricted to the
// labels that the pool names.
func Alone(pool *karpv1.NodePool, types []cloud.InstanceType, v *Vocabulary) *model.Snapshot {
	spec := Pool(pool, v)
	spec.Blocked = nil
	named := map[string]bool{model.LabelType: true}
	for _, r := range spec.Requirements {
		named[label.Canonical(r.Key)] = true
	}
	bare := make([]cloud.InstanceType, len(types))
	for i := range types {
		bare[i].Name = types[i].Name
		for _, r := range types[i].Requirements {
			if named[label.Canonical(v.Rules.Key(r.Key))] {
				bare[i].Requirements = append(bare[i].Requirements, r)
			}
		}
		if named[model.LabelZone] || named[model.LabelCapacityType] { // labels of offerings
			bare[i].Offerings = types[i].Offerings
		}
	}
	spec.Catalog, _ = Catalog(bare, v)
	b := model.NewBuilder()
	b.UpsertPool(spec)
	return b.Snapshot(time.Time{})
}

func instanceType(from *cloud.InstanceType, v *Vocabulary) (model.InstanceType, *model.Rejection) {
	t := model.InstanceType{
		Name: from.Name, Special: from.Special,
		Capacity: fromMap(from.Capacity), Allocatable: fromMap(from.Allocatable()),
		Offerings: make([]model.Offering, 0, len(from.Offerings)),
	}
	t.Allocatable = withLimits(t.Allocatable, from.AttachLimits)
	var refused *model.Rejection
	if t.Requirements, refused = v.cloud(from.Requirements); refused != nil {
		refused.Field = from.Name + "." + refused.Field
		return t, refused
	}
	if !mentions(t.Requirements, model.LabelType) {
		t.Requirements = append(t.Requirements, label.Requirement{Key: model.LabelType, Operator: label.In, Values: []string{from.Name}})
	}
	for i := range from.Offerings {
		o := &from.Offerings[i]
		price, ok := nano(o.Price)
		if !ok {
			return t, &model.Rejection{
				Field:  fmt.Sprintf("%s.offerings[%d].price", from.Name, i),
				Reason: fmt.Sprintf("%v is not a price; it is USD per hour, zero or more", o.Price),
			}
		}
		reqs, refused := v.cloud(o.Requirements)
		if refused != nil {
			refused.Field = fmt.Sprintf("%s.offerings[%d].%s", from.Name, i, refused.Field)
			return t, refused
		}
		listed := model.Offering{
			Zone: o.Zone, CapacityType: o.CapacityType, Price: price, Available: o.Available, RefusedAt: o.RefusedAt, RetryAt: o.RetryAt,
			Interruptions: o.Interruptions, ZoneShifted: o.ZoneShifted, ReservationID: o.ReservationID, ReservationCount: o.ReservationCount,
			Requirements: v.reserved(reqs, o.ReservationID),
		}
		t.Offerings = append(t.Offerings, listed)
		for k := range o.Commitments {
			t.Offerings = append(t.Offerings, committed(listed, &o.Commitments[k], from.Capacity["cpu"]))
		}
	}
	return t, nil
}

// reserved adds to an offering's requirements that its nodes carry the ID of the reservation, or none, unless the
// provider already requires it.
func (v *Vocabulary) reserved(reqs []label.Requirement, id string) []label.Requirement {
	switch {
	case v.reservation == "" || mentions(reqs, v.reservation):
		return reqs
	case id == "":
		return append(reqs, label.Requirement{Key: v.reservation, Operator: label.DoesNotExist})
	}
	return append(reqs, label.Requirement{Key: v.reservation, Operator: label.In, Values: []string{id}})
}

// nano returns a price in nano-USD, and false if it is not a valid price.
func nano(usd float64) (int64, bool) {
	price := math.Round(usd * model.Nano)
	if math.IsNaN(price) || price < 0 || price >= math.MaxInt64 {
		return 0, false
	}
	return int64(price), true
}

// cloud converts a provider's requirements. The field of a rejection is relative to the type or offering.
func (v *Vocabulary) cloud(from []cloud.Requirement) ([]label.Requirement, *model.Rejection) {
	if len(from) == 0 {
		return nil, nil
	}
	reqs := make([]label.Requirement, 0, len(from)+1)
	for i, r := range from {
		req, ok := v.requirement(r.Key, r.Operator, r.Values)
		if !ok {
			return nil, &model.Rejection{
				Field:  fmt.Sprintf("requirements[%d].operator", i),
				Reason: fmt.Sprintf("%q is not an operator; use In, NotIn, Exists or DoesNotExist", r.Operator),
			}
		}
		reqs = append(reqs, req)
	}
	return reqs, nil
}

func mentions(reqs []label.Requirement, key string) bool {
	for _, r := range reqs {
		if r.Key == key {
			return true
		}
	}
	return false
}
