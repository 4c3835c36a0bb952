package awssim

import (
	"slices"
	"time"
)

// describeCapacityReservations implements ec2:DescribeCapacityReservations.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityReservations.html
func describeCapacityReservations(c *Cloud, r *request, _ time.Time) (any, error) {
	ids := r.form.strings("CapacityReservationId")
	if len(ids) > 0 && r.form.has("MaxResults") {
		return nil, refuse("InvalidParameterCombination",
			"The parameter capacityReservationIdSet cannot be used with the parameter maxResults")
	}
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	found, err := chosen(ids, c.reservations, func(r *CapacityReservation) string { return r.ID },
		notFound("cr-", "InvalidCapacityReservationId.Malformed", "InvalidCapacityReservationId.NotFound", "capacity reservation ID"))
	if err != nil {
		return nil, err
	}
	if found, err = keep(filters, found, func(x *CapacityReservation) facts {
		return r.facts(x.Tags, func() any { return c.reservationXML(x) })
	}); err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlCapacityReservation `xml:"capacityReservationSet>item,omitempty"`
		Next  string                   `xml:"nextToken,omitempty"`
	}
	found, out.Next, err = cut(c, r.form, pages{1, 1000, 1000}, found, func(r *CapacityReservation) string { return r.ID })
	for _, r := range found {
		out.Items = append(out.Items, c.reservationXML(r))
	}
	return out, err
}

func (r *CapacityReservation) endType() string {
	if r.End.IsZero() {
		return "unlimited"
	}
	return "limited"
}

type xmlCapacityReservation struct {
	ID            string   `xml:"capacityReservationId"`
	ARN           string   `xml:"capacityReservationArn"`
	OwnerID       string   `xml:"ownerId"`
	Type          string   `xml:"instanceType"`
	Platform      string   `xml:"instancePlatform"`
	Zone          string   `xml:"availabilityZone"`
	ZoneID        string   `xml:"availabilityZoneId,omitempty"`
	Tenancy       string   `xml:"tenancy"`
	Total         int      `xml:"totalInstanceCount"`
	Available     int      `xml:"availableInstanceCount"`
	State         string   `xml:"state"`
	Created       string   `xml:"createDate"`
	Start         string   `xml:"startDate"`
	End           string   `xml:"endDate,omitempty"`
	EndType       string   `xml:"endDateType"`
	Criteria      string   `xml:"instanceMatchCriteria"`
	Kind          string   `xml:"reservationType"`
	Interruptible bool     `xml:"interruptible"`
	GroupARN      string   `xml:"placementGroupArn,omitempty"`
	OutpostARN    string   `xml:"outpostArn,omitempty"`
	Tags          []ec2Tag `xml:"tagSet>item,omitempty"`
}

func (c *Cloud) reservationXML(r *CapacityReservation) xmlCapacityReservation {
	return xmlCapacityReservation{ID: r.ID, ARN: "arn:aws:ec2:" + c.opts.Region + ":" + r.Owner + ":capacity-reservation/" + r.ID,
		OwnerID: r.Owner, Type: r.Type, Platform: r.Platform, Zone: r.Zone, ZoneID: c.zoneIDOf(r.Zone), Tenancy: r.Tenancy, Total: r.Total,
		Available: max(0, r.Available), State: r.State, Created: iso(r.created), Start: iso(r.created), End: iso(r.End),
		EndType: r.endType(), Criteria: r.Criteria, Kind: r.Kind, Interruptible: r.Interruptible, GroupARN: r.GroupARN,
		OutpostARN: r.OutpostARN, Tags: ec2Tags(r.Tags)}
}

// zoneIDOf returns the ID of a zone, an empty string if it is not of the region.
func (c *Cloud) zoneIDOf(name string) string {
	k := slices.IndexFunc(c.zones, func(z *zone) bool { return z.name == name })
	if k < 0 {
		return ""
	}
	return c.zones[k].id
}

// targetReserved is the target capacity type of fleets with ReservedCapacityOptions.
const targetReserved = "reserved-capacity"

// parseReserved parses the options of a fleet that uses reserved capacity.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ReservedCapacityOptionsRequest.html
func (f *fleetRequest) parseReserved(n *node) error {
	options := n.at("ReservedCapacityOptions")
	if err := options.only("ReservedCapacityOptions", "ReservationType"); err != nil {
		return err
	}
	switch {
	case n.has("ReservedCapacityOptions.ReservationType.1") != (f.lifecycle == targetReserved):
		return refuse("InvalidParameterCombination",
			"ReservedCapacityOptions must be specified with DefaultTargetCapacityType '%s', and only then", targetReserved)
	case f.lifecycle == marketBlock && n.has("OnDemandOptions.AllocationStrategy"):
		return refuse("InvalidParameterCombination", "OnDemandOptions may not be specified with DefaultTargetCapacityType '%s'", marketBlock)
	case f.lifecycle != targetReserved:
		return nil
	}
	kinds := options.strings("ReservationType")
	if !slices.Equal(kinds, []string{marketInterruptible}) {
		return refuse("UnsupportedOperation", "ReservationTypes %v are not simulated, only %s", kinds, marketInterruptible)
	}
	f.lifecycle = marketInterruptible
	return nil
}

// checkReserved rejects launch templates of another market type than that of the fleet, and a type that is in a zone
// twice, even in different launch templates.
func (f *fleetRequest) checkReserved() error {
	taken := map[pool]bool{}
	for _, o := range f.overrides {
		if market := o.spec.market; (f.lifecycle == marketBlock || f.lifecycle == marketInterruptible) && market != f.lifecycle {
			return refuse("InvalidFleetConfiguration", "The market type of launch template %s must be %s", o.template.name, f.lifecycle)
		}
		if o.permanent == nil && taken[o.pool] {
			return refuse("InvalidFleetConfiguration", "The instance type %s is specified for the Availability Zone %s more than once",
				o.pool.name, o.pool.zone)
		}
		taken[o.pool] = true
	}
	return nil
}
