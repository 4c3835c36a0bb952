package cloud

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// Need is what a claim asks of a machine.
type Need struct {
	// Labels holds, per label key that the claim restricts, the values that all its requirements leave.
	Labels map[string]Values
	// Requests is the least allocatable amount by resource name, in the units of InstanceType.
	Requests map[string]int64
}

// NeedOf reads a claim's requirements and requests.
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

// Allows says whether a node that satisfies the requirement can satisfy the need too. A key that the need does not
// restrict is allowed, and so is one that only the need mentions.
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

// AllowsType says whether the type's labels and allocatable amounts meet the need. Offerings are not looked at.
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

// AllowsOffering says whether the offering's zone, capacity type and further labels meet the need, available or not.
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

// Choice is one thing that can be bought. Both pointers lead into the catalogue that it was chosen from.
type Choice struct {
	Type     *InstanceType
	Offering *Offering
}

// Choices lists every offering that meets the need, available or not, cheapest first. Equal prices are in the order of
// type name, zone, capacity type and reservation, so that the same need is always met in the same way.
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
		strings.Compare(a.Type.Name, b.Type.Name),
		compareOfferings(a.Offering, b.Offering),
	)
}

// compareOfferings orders the offerings of one type by what makes them unique.
func compareOfferings(a, b *Offering) int {
	return cmp.Or(
		strings.Compare(a.Zone, b.Zone),
		strings.Compare(a.CapacityType, b.CapacityType),
		strings.Compare(a.ReservationID, b.ReservationID),
	)
}

// SortCatalogue puts types in the order of their names, and the offerings of each in the order of zone, capacity type
// and reservation.
func SortCatalogue(types []InstanceType) {
	slices.SortFunc(types, func(a, b InstanceType) int { return strings.Compare(a.Name, b.Name) })
	for i := range types {
		slices.SortFunc(types[i].Offerings, func(a, b Offering) int { return compareOfferings(&a, &b) })
	}
}

// MachineLabels are the labels of a node bought as c for the need: type, zone and capacity type; what the type's and
// the offering's requirements say; and every other label for which the need leaves one value. Where a type leaves a
// choice (an image for two operating systems), the first allowed value in alphabetical order is taken.
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

// hugePages begins the names of the resources that are taken out of a node's memory.
const hugePages = corev1.ResourceHugePagesPrefix

// Allocatable is what the type offers to pods: capacity less overhead, memory less huge pages, never below zero.
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

// Amounts turns quantities into the units of InstanceType: cpu in millicores, all else in whole units, rounded up.
func Amounts(list corev1.ResourceList) map[string]int64 {
	amounts := make(map[string]int64, len(list))
	for name, quantity := range list {
		amounts[string(name)] = Amount(string(name), quantity)
	}
	return amounts
}

// Amount is one quantity in the unit of its resource.
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
