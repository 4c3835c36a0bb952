package cloud

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Need is what a claim requires of a machine.
type Need struct {
	// Labels holds the allowed values per label key: the intersection of all requirements of the claim on that key.
	// Keys without requirements are not in the map.
	Labels map[string]Values
	// Requests is the minimum allocatable amount by resource name, in the units of InstanceType.
	Requests map[string]int64
}

// NeedOf converts a claim's requirements and resource requests into a Need.
func NeedOf(claim *karpv1.NodeClaim) Need {
	need := Need{Labels: map[string]Values{}, Requests: Amounts(claim.Spec.Resources.Requests)}
	for _, r := range claim.Spec.Requirements {
		values, restricted := need.Labels[r.Key]
		if !restricted {
			values = AnyValue()
		}
		need.Labels[r.Key] = values.Narrow(string(r.Operator), r.Values)
	}
	return need
}

// Allows reports whether a node that satisfies the requirement can also satisfy the need. It returns true for a key
// that the need does not restrict. A key that only the need mentions has no effect.
func (n Need) Allows(r Requirement) bool {
	wanted, restricted := n.Labels[r.Key]
	if !restricted {
		return true
	}
	if r.Operator == "In" {
		return slices.ContainsFunc(r.Values, wanted.Has)
	}
	return wanted.Meets(AnyValue().Narrow(r.Operator, r.Values))
}

// AllowsType reports whether the type's labels and allocatable amounts meet the need. It does not examine the
// offerings.
func (n Need) AllowsType(t *InstanceType) bool {
	for _, r := range t.Requirements {
		if !n.Allows(r) {
			return false
		}
	}
	if len(n.Requests) == 0 {
		return true
	}
	allocatable := t.Allocatable()
	for name, amount := range n.Requests {
		if allocatable[name] < amount {
			return false
		}
	}
	return true
}

// AllowsOffering reports whether the offering's zone, capacity type and further labels meet the need. It ignores
// availability.
func (n Need) AllowsOffering(o *Offering) bool {
	if !n.Allows(in(corev1.LabelTopologyZone, o.Zone)) || !n.Allows(in(karpv1.LabelCapacityType, o.CapacityType)) {
		return false
	}
	for _, r := range o.Requirements {
		if !n.Allows(r) {
			return false
		}
	}
	return true
}

func in(key, value string) Requirement {
	return Requirement{Key: key, Operator: "In", Values: []string{value}}
}

// Choice is one launch option: an instance type with one of its offerings. Both pointers point into the catalog that
// the choice was made from.
type Choice struct {
	Type     *InstanceType
	Offering *Offering
}

// Choices returns every offering that meets the need, available or not, cheapest first. Ties are ordered by the size of
// the type, because a larger one takes more of limits, then by type name, zone, capacity type, reservation and further
// requirements, so the same need always gets the same result.
func (n Need) Choices(types []InstanceType) []Choice {
	var choices []Choice
	for i := range types {
		t := &types[i]
		if !n.AllowsType(t) {
			continue
		}
		for j := range t.Offerings {
			if o := &t.Offerings[j]; n.AllowsOffering(o) {
				choices = append(choices, Choice{Type: t, Offering: o})
			}
		}
	}
	slices.SortFunc(choices, compareChoices)
	return choices
}

func compareChoices(a, b Choice) int {
	return cmp.Or(
		cmp.Compare(a.Offering.Price, b.Offering.Price),
		compareSizes(a.Type, b.Type),
		strings.Compare(a.Type.Name, b.Type.Name),
		compareOfferings(a.Offering, b.Offering),
	)
}

// compareSizes orders types without devices first, then by cpu and memory.
func compareSizes(a, b *InstanceType) int {
	if a.Special != b.Special {
		return map[bool]int{false: -1, true: 1}[a.Special]
	}
	return cmp.Or(cmp.Compare(a.Capacity["cpu"], b.Capacity["cpu"]), cmp.Compare(a.Capacity["memory"], b.Capacity["memory"]))
}

// compareOfferings orders the offerings of one type by the fields that identify them.
func compareOfferings(a, b *Offering) int {
	if c := cmp.Or(strings.Compare(a.Zone, b.Zone), strings.Compare(a.CapacityType, b.CapacityType),
		strings.Compare(a.ReservationID, b.ReservationID)); c != 0 {
		return c
	}
	return slices.CompareFunc(a.Requirements, b.Requirements, compareRequirements)
}

func compareRequirements(a, b Requirement) int {
	return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Operator, b.Operator), slices.Compare(a.Values, b.Values))
}

// SortCatalog sorts types by name, and the offerings of each type by zone, capacity type, reservation and further
// requirements.
func SortCatalog(types []InstanceType) {
	slices.SortFunc(types, func(a, b InstanceType) int { return strings.Compare(a.Name, b.Name) })
	for i := range types {
		slices.SortFunc(types[i].Offerings, func(a, b Offering) int { return compareOfferings(&a, &b) })
	}
}

// MachineLabels returns the labels of a node launched as c for the need: type, zone and capacity type; the requirements
// of the type and the offering; and every other label that the need restricts to a single value. If a type permits
// several values (such as an image for two operating systems), the first allowed value in alphabetical order is used.
func (n Need) MachineLabels(c Choice) map[string]string {
	labels := map[string]string{}
	for key, wanted := range n.Labels {
		if value, one := wanted.Single(); one {
			labels[key] = value
		}
	}
	for _, r := range slices.Concat(c.Type.Requirements, c.Offering.Requirements) {
		if value, ok := n.valueOf(r); ok {
			labels[r.Key] = value
		} else if r.Operator == "DoesNotExist" {
			delete(labels, r.Key)
		}
	}
	labels[corev1.LabelInstanceTypeStable] = c.Type.Name
	labels[corev1.LabelTopologyZone] = c.Offering.Zone
	labels[karpv1.LabelCapacityType] = c.Offering.CapacityType
	return labels
}

func (n Need) valueOf(r Requirement) (string, bool) {
	if r.Operator != "In" {
		return "", false
	}
	wanted, restricted := n.Labels[r.Key]
	for _, value := range slices.Sorted(slices.Values(r.Values)) {
		if !restricted || wanted.Has(value) {
			return value, true
		}
	}
	return "", false
}

// hugePages is the name prefix of the resources that are subtracted from a node's memory.
const hugePages = corev1.ResourceHugePagesPrefix

// Allocatable returns the amounts that the type offers to pods: capacity minus overhead, with memory also reduced by
// the huge pages, and never below zero.
func (t *InstanceType) Allocatable() map[string]int64 {
	allocatable := make(map[string]int64, len(t.Capacity))
	var huge int64
	for name, amount := range t.Capacity {
		allocatable[name] = max(0, amount-t.Overhead[name])
		if strings.HasPrefix(name, hugePages) {
			huge += amount
		}
	}
	if memory, ok := allocatable["memory"]; ok {
		allocatable["memory"] = max(0, memory-huge)
	}
	return allocatable
}

// Amounts converts quantities to the units of InstanceType: cpu in millicores, all other resources in whole units,
// rounded up.
func Amounts(list corev1.ResourceList) map[string]int64 {
	amounts := make(map[string]int64, len(list))
	for name, quantity := range list {
		amounts[string(name)] = Amount(string(name), quantity)
	}
	return amounts
}

// Amount converts one quantity to the unit of its resource.
func Amount(name string, quantity resource.Quantity) int64 {
	if name == string(corev1.ResourceCPU) {
		return quantity.MilliValue()
	}
	return quantity.Value()
}

// ResourceList is the inverse of Amounts.
func ResourceList(amounts map[string]int64) corev1.ResourceList {
	list := make(corev1.ResourceList, len(amounts))
	for name, amount := range amounts {
		list[corev1.ResourceName(name)] = *quantityOf(name, amount)
	}
	return list
}

func quantityOf(name string, amount int64) *resource.Quantity {
	switch {
	case name == string(corev1.ResourceCPU):
		return resource.NewMilliQuantity(amount, resource.DecimalSI)
	case name == string(corev1.ResourceMemory), name == string(corev1.ResourceEphemeralStorage), strings.HasPrefix(name, hugePages):
		return resource.NewQuantity(amount, resource.BinarySI)
	}
	return resource.NewQuantity(amount, resource.DecimalSI)
}

// WithoutReserved returns the types without reserved offerings. Types without any are not copied.
func WithoutReserved(types []InstanceType) []InstanceType {
	reserved := func(o Offering) bool { return o.CapacityType == karpv1.CapacityTypeReserved }
	types = slices.Clone(types)
	for i := range types {
		if slices.ContainsFunc(types[i].Offerings, reserved) {
			types[i].Offerings = slices.DeleteFunc(slices.Clone(types[i].Offerings), reserved)
		}
	}
	return types
}
