package awssim

import (
	"fmt"
	"slices"
	"time"
)

// ReservedInstances are instances that the account has paid for in advance: a discount on the bill, not a machine.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ReservedInstances.html
type ReservedInstances struct {
	ID            string            `json:"id"`
	Type          string            `json:"instanceType"`
	Zone          string            `json:"zone"` // empty if the scope is the region
	Count         int               `json:"count"`
	OfferingClass string            `json:"offeringClass"` // standard (when empty) or convertible
	OfferingType  string            `json:"offeringType"`  // All Upfront when empty
	Product       string            `json:"product"`       // Linux/UNIX when empty
	Tenancy       string            `json:"tenancy"`       // default when empty
	State         string            `json:"state"`         // active when empty; retired after the end
	End           time.Time         `json:"end"`           // a year after the purchase when zero
	Tags          map[string]string `json:"tags"`

	start time.Time
}

const stateRetired = "retired"

// reservedYear is the shorter of the two durations of reserved instances.
const reservedYear = 365 * 24 * time.Hour

// AddReservedInstances buys reserved instances, and returns their ID.
func (c *Cloud) AddReservedInstances(r ReservedInstances) string {
	c.locked(func(now time.Time) {
		r.ID, r.start = c.uuid(), now
		defaultTo(&r.Count, 1)
		defaultTo(&r.OfferingClass, "standard")
		defaultTo(&r.OfferingType, "All Upfront")
		defaultTo(&r.Product, linux)
		defaultTo(&r.Tenancy, "default")
		defaultTo(&r.State, stateActive)
		if r.End.IsZero() {
			r.End = now.Add(reservedYear)
		}
		c.reservedInstances = append(c.reservedInstances, &r)
	})
	return r.ID
}

// RetireReservedInstances ends reserved instances now.
func (c *Cloud) RetireReservedInstances(id string) error {
	err := fmt.Errorf("no reserved instances %q", id)
	c.locked(func(now time.Time) {
		for _, r := range c.reservedInstances {
			if r.ID == id {
				r.End, err = now, nil
			}
		}
	})
	return err
}

// describeReservedInstances implements ec2:DescribeReservedInstances, which has one page.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeReservedInstances.html
func describeReservedInstances(c *Cloud, r *request, now time.Time) (any, error) {
	filters, err := filtersOf(r.form)
	if err != nil {
		return nil, err
	}
	found, err := chosen(r.form.strings("ReservedInstancesId"), c.reservedInstances, func(r *ReservedInstances) string { return r.ID },
		notFound("", "InvalidReservedInstancesId", "InvalidReservedInstancesId", "reserved instances ID"))
	if err != nil {
		return nil, err
	}
	for _, parameter := range []string{"OfferingClass", "OfferingType"} {
		known := reservedOfferings[parameter]
		if given := r.form.str(parameter); given != "" && !slices.Contains(known, given) {
			return nil, refuse("InvalidParameterValue", "Value (%s) for parameter %s is invalid", given, parameter)
		}
	}
	class, kind := r.form.str("OfferingClass"), r.form.str("OfferingType")
	found = slices.DeleteFunc(slices.Clone(found), func(x *ReservedInstances) bool {
		return class != "" && x.OfferingClass != class || kind != "" && x.OfferingType != kind
	})
	if found, err = keep(filters, found, func(x *ReservedInstances) facts {
		return r.facts(x.Tags, func() any { return x.xml(now) })
	}); err != nil {
		return nil, err
	}
	var out struct {
		Items []xmlReservedInstances `xml:"reservedInstancesSet>item,omitempty"`
	}
	for _, x := range found {
		out.Items = append(out.Items, x.xml(now))
	}
	return out, nil
}

var reservedOfferings = map[string][]string{
	"OfferingClass": {"standard", "convertible"},
	"OfferingType": {"Heavy Utilization", "Medium Utilization", "Light Utilization", "No Upfront", "Partial Upfront",
		"All Upfront"},
}

type xmlReservedInstances struct {
	ID            string   `xml:"reservedInstancesId"`
	Type          string   `xml:"instanceType"`
	Zone          string   `xml:"availabilityZone,omitempty"`
	Start         string   `xml:"start"`
	End           string   `xml:"end"`
	Duration      int64    `xml:"duration"` // seconds
	UsagePrice    float64  `xml:"usagePrice"`
	FixedPrice    float64  `xml:"fixedPrice"`
	Count         int      `xml:"instanceCount"`
	Product       string   `xml:"productDescription"`
	State         string   `xml:"state"`
	Tenancy       string   `xml:"instanceTenancy"`
	Currency      string   `xml:"currencyCode"`
	OfferingType  string   `xml:"offeringType"`
	OfferingClass string   `xml:"offeringClass"`
	Scope         string   `xml:"scope"`
	Tags          []ec2Tag `xml:"tagSet>item,omitempty"`
}

func (r *ReservedInstances) xml(now time.Time) xmlReservedInstances {
	x := xmlReservedInstances{ID: r.ID, Type: r.Type, Zone: r.Zone, Start: iso(r.start), End: iso(r.End),
		Duration: int64(reservedYear / time.Second), FixedPrice: 1000, Count: r.Count, Product: r.Product, State: r.State,
		Tenancy: r.Tenancy, Currency: "USD", OfferingType: r.OfferingType, OfferingClass: r.OfferingClass, Scope: "Region",
		Tags: ec2Tags(r.Tags)}
	if r.Zone != "" {
		x.Scope = "Availability Zone"
	}
	if r.State == stateActive && !r.End.After(now) {
		x.State = stateRetired
	}
	return x
}
