package neutral

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

const reserved = "reserved"

// boughtChanges are reservations that nothing uses, price rules that change no price, and a zone that is not used.
func boughtChanges() []Change {
	return []Change{
		{Name: "reservation that no pool allows", edit: always(func(in *Input) { in.reserve(5) })},
		{Name: "reservation with nothing left", edit: always(func(in *Input) {
			in.reserve(0)
			for _, p := range of[*karpv1.NodePool](in) {
				for i := range p.Spec.Template.Spec.Requirements {
					if r := &p.Spec.Template.Spec.Requirements[i]; r.Key == karpv1.LabelCapacityType {
						r.Values = append(slices.Clip(r.Values), reserved)
					}
				}
			}
		})},
		{Name: "price rule for no type", edit: rules("{name: none, families: [none], factor: 0.1}")},
		{Name: "price rule that changes nothing", edit: rules("{name: same, factor: 1}")},
		{Name: "commitment for no type", edit: rules("{name: none, families: [none], factor: 0.1, upTo: {vCPUs: 100}}")},
		{Name: "commitment in no zone", edit: rules("{name: none, zones: [none], factor: 0.1, upTo: {vCPUs: 100}}")},
		{Name: "commitment with nothing left", edit: rules("{name: used, factor: 0.5, upTo: {vCPUs: 0.001}}")},
		{Name: "commitment in USD with nothing left", edit: rules("{name: used, factor: 0.5, upTo: {usdPerHour: 0.000001}}")},
		{Name: "zone that is shifted away from and that no pool uses", edit: always(func(in *Input) {
			for _, p := range of[*karpv1.NodePool](in) {
				require(p, required(corev1.LabelTopologyZone, "In", zones...))
			}
			for i := range in.Types {
				t := &in.Types[i]
				t.Offerings = append(t.Offerings, Offering{CapacityType: onDemand, Zone: "zone-shifted", Price: 0.0001})
			}
		})},
	}
}

// reserve adds a reservation of each type that is bought on demand.
func (in *Input) reserve(count int) {
	for i := range in.Types {
		t := &in.Types[i]
		if at := slices.IndexFunc(t.Offerings, func(o Offering) bool { return o.CapacityType == onDemand }); at >= 0 {
			t.Offerings = append(t.Offerings, Offering{CapacityType: reserved, Zone: t.Offerings[at].Zone, Price: 0.0001, Available: true,
				ReservationID: fmt.Sprintf("reservation-%d", i), ReservationCount: count})
		}
	}
}

func rules(rule string) func(*Input) bool {
	return always(func(in *Input) { in.Prices = "rules: [" + rule + "]\n" })
}
