package launch

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// Hold is how a machine uses a capacity reservation. The zero Hold means that it uses none.
type Hold struct {
	ID string
	// Type is default or capacity-block. Interruptible means that the owner of the reservation can reclaim the machine.
	Type          string
	Interruptible bool
}

// holdOf returns how machines of an offering use its reservation.
func holdOf(o *cloud.Offering) Hold {
	return Hold{ID: o.ReservationID, Type: labelOf(o, awsv1.LabelCapacityReservationType),
		Interruptible: labelOf(o, awsv1.LabelCapacityReservationInterruptible) == "true"}
}

// labelOf returns the only value that the requirements of the offering allow for a label, or an empty string.
func labelOf(o *cloud.Offering, key string) string {
	for _, r := range o.Requirements {
		if r.Key == key && r.Operator == "In" && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}

// addTo adds the labels of a node in the reservation.
func (h Hold) addTo(labels map[string]string) {
	if h.ID == "" {
		return
	}
	labels[karpv1.LabelCapacityType] = karpv1.CapacityTypeReserved
	labels[awsv1.LabelCapacityReservationID], labels[awsv1.LabelCapacityReservationType] = h.ID, h.Type
	labels[awsv1.LabelCapacityReservationInterruptible] = strconv.FormatBool(h.Interruptible)
}

// market returns the market type of a launch, which is empty for on-demand reservations.
func (h Hold) market() ec2types.MarketType {
	switch {
	case h.Interruptible:
		return ec2types.MarketTypeInterruptibleCapacityReservation
	case h.Type == awsv1.ReservationTypeCapacityBlock:
		return ec2types.MarketTypeCapacityBlock
	}
	return ""
}

// rank orders the groups of reservations whose cheapest offerings have the same price.
func (h Hold) rank() int {
	return slices.Index([]ec2types.MarketType{"", ec2types.MarketTypeCapacityBlock, ec2types.MarketTypeInterruptibleCapacityReservation},
		h.market())
}

// reservedWays returns the ways into capacity reservations that one fleet can use, cheapest first: those of the group,
// by market type, with the cheapest offering; one capacity block only, and otherwise, for each type in a zone, the
// reservation with the most room, because EC2 refuses a type that is in a zone twice. Their tenancy is the given one: EC2
// refuses others.
func reservedWays(ways []cloud.Choice, tenancy string) []cloud.Choice {
	ways = keep(ways, func(w cloud.Choice) bool {
		of := labelOf(w.Offering, awsv1.LabelInstanceTenancy)
		return hasCapacityType(karpv1.CapacityTypeReserved)(w) && (of == "" || of == tenancy)
	})
	if len(ways) == 0 {
		return nil
	}
	best := ways[0]
	for _, w := range ways {
		if w.Offering.Price == best.Offering.Price && holdOf(w.Offering).rank() < holdOf(best.Offering).rank() {
			best = w
		}
	}
	group := holdOf(best.Offering)
	ways = keep(ways, func(w cloud.Choice) bool { return holdOf(w.Offering).market() == group.market() })
	if group.market() == ec2types.MarketTypeCapacityBlock {
		return ways[:1]
	}
	return roomiest(ways)
}

// roomiest keeps, for each type in a zone, the reservation with the most room, by ID if several have the same.
func roomiest(ways []cloud.Choice) []cloud.Choice {
	best := map[string]*cloud.Offering{}
	for _, w := range ways {
		key := placeKey(w.Type.Name, w.Offering.Zone)
		if known := best[key]; known == nil || w.Offering.ReservationCount > known.ReservationCount {
			best[key] = w.Offering
		}
	}
	return keep(ways, func(w cloud.Choice) bool { return best[placeKey(w.Type.Name, w.Offering.Zone)] == w.Offering })
}

// selectReserved returns the selection of reserved capacity, and false if there is none that meets the minValues.
func selectReserved(ways []cloud.Choice, tenancy string, least []minValues) (Selection, bool) {
	ways = reservedWays(ways, tenancy)
	if len(ways) == 0 {
		return Selection{}, false
	}
	s := Selection{CapacityType: karpv1.CapacityTypeReserved, Tenancy: tenancy, Ways: fewer(ways, least)}
	s.market = holdOf(ways[0].Offering).market()
	return s, meets(s.Ways, least)
}

// useReservation makes a template launch into the reservation of its variant, and into no other one. Without a
// reservation, machines use none, unless the order allows open ones.
func (o *Order) useReservation(data *ec2types.RequestLaunchTemplateData, v templateFor) {
	type specification = ec2types.LaunchTemplateCapacityReservationSpecificationRequest
	switch {
	case v.hold.ID != "":
		data.CapacityReservationSpecification = &specification{
			CapacityReservationPreference: ec2types.CapacityReservationPreferenceCapacityReservationsOnly,
			CapacityReservationTarget:     &ec2types.CapacityReservationTarget{CapacityReservationId: aws.String(v.hold.ID)}}
		if market := v.hold.market(); market != "" {
			data.InstanceMarketOptions = &ec2types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: market}
		}
	case !o.OpenReservations:
		data.CapacityReservationSpecification = &specification{CapacityReservationPreference: ec2types.CapacityReservationPreferenceNone}
	}
}

// targetOf returns the target capacity type of a fleet.
func targetOf(s *Selection) ec2types.DefaultTargetCapacityType {
	switch {
	case s.CapacityType != karpv1.CapacityTypeReserved:
		return ec2types.DefaultTargetCapacityType(s.CapacityType)
	case s.market == ec2types.MarketTypeCapacityBlock:
		return ec2types.DefaultTargetCapacityTypeCapacityBlock
	case s.market == ec2types.MarketTypeInterruptibleCapacityReservation:
		return ec2types.DefaultTargetCapacityTypeReservedCapacity
	}
	return ec2types.DefaultTargetCapacityTypeOnDemand
}

// reservedStrategies sets the options of a fleet for capacity blocks and interruptible reservations, and reports
// whether it is one. EC2 refuses an on-demand strategy for them.
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-launch-instances-interruptible-cr-walkthrough.html
func (p *plan) reservedStrategies(request *ec2.CreateFleetInput) bool {
	if p.selection.market == ec2types.MarketTypeInterruptibleCapacityReservation {
		request.ReservedCapacityOptions = &ec2types.ReservedCapacityOptionsRequest{
			ReservationTypes: []ec2types.FleetReservationType{ec2types.FleetReservationTypeInterruptibleCapacityReservation}}
	}
	return p.selection.market != ""
}

// placeKey is the key of a type in a zone.
func placeKey(typeName, zone string) string { return typeName + "/" + zone }

// holds returns the reservations that the plan launches into, by placeKey. It is nil for other capacity types.
func (p *plan) holds() map[string]Hold {
	if p.selection.CapacityType != karpv1.CapacityTypeReserved {
		return nil
	}
	holds := map[string]Hold{}
	for _, w := range p.selection.Ways {
		holds[placeKey(w.Type.Name, w.Offering.Zone)] = holdOf(w.Offering)
	}
	return holds
}

// capacityType returns that of the request's machines. In requests of earlier versions it is the target's.
func (r request) capacityType() string {
	if r.Holds != nil {
		return karpv1.CapacityTypeReserved
	}
	return string(r.Sent.TargetCapacitySpecification.DefaultTargetCapacityType)
}

// holdFrom returns how an instance uses a reservation. Those that EC2 placed into an open reservation without being
// asked count as on-demand. Older endpoints omit the specification.
func holdFrom(i *ec2types.Instance) Hold {
	h := Hold{ID: aws.ToString(i.CapacityReservationId), Type: awsv1.ReservationTypeDefault}
	spec := i.CapacityReservationSpecification
	asked := spec == nil || spec.CapacityReservationPreference == ec2types.CapacityReservationPreferenceCapacityReservationsOnly ||
		spec.CapacityReservationTarget != nil
	if h.ID == "" || !asked || aws.ToString(i.SpotInstanceRequestId) != "" {
		return Hold{}
	}
	switch i.InstanceLifecycle {
	case ec2types.InstanceLifecycleTypeCapacityBlock:
		h.Type = awsv1.ReservationTypeCapacityBlock
	case ec2types.InstanceLifecycleTypeInterruptibleCapacityReservation:
		h.Interruptible = true
	}
	return h
}

// markReserved records the reservations that have no room according to a fleet's errors, and reports whether the fleet
// used reservations. A full placement group, or subnet, says nothing about them.
func markReserved(o *Options, holds map[string]Hold, refusals []ec2types.CreateFleetError, s *Selection) bool {
	for _, r := range refusals {
		code, message := aws.ToString(r.ErrorCode), aws.ToString(r.ErrorMessage)
		typeName, zone, subnet := placeOf(r)
		id := holds[placeKey(typeName, zone)].ID
		switch {
		case holds == nil:
		case code == codeNoAddresses && subnet != "":
			o.Unavailable.MarkSubnet(subnet)
		case isSpreadLimit(message):
			markPlacement(o.Unavailable, instance.Offer{Zone: zone}, message, s)
		case id != "" && outOfCapacity(code):
			o.Reserved.SoldOut(id)
		}
	}
	return holds != nil
}

// markRefused records that no reservation of a request has room, which EC2 refused as a whole.
func markRefused(counts *instance.Reserved, r request) {
	for _, hold := range r.Holds {
		counts.SoldOut(hold.ID)
	}
}
