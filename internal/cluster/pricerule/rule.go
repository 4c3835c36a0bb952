// Package pricerule reads the price file: the user's own prices, and what is committed to the cloud.
//
//	rules:
//	- name: compute-savings-plan
//	  families: [m7g, c7g]
//	  factor: 0.66
//	  upTo: {usdPerHour: 10}
//	- name: contract
//	  factor: 0.95
//
// The first rule without upTo that matches an offering sets its price. A rule with upTo is a commitment: up to that amount,
// machines of matching offerings have its price. Package overlay applies the rules, before all NodeOverlays, and
// engine/model counts what commitments cover.
//
// An error names the file, the rule and the field, the value, and what would be right.
//
// The package is a function of its input: no clients, no clocks, no I/O. It does not know how prices are used.
package pricerule

import (
	"maps"
	"path"
	"slices"
	"strings"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Rule is one rule of a price file. All of its lists must match; an empty list matches everything.
type Rule struct {
	// Name is a DNS label, unique in the file.
	Name string `json:"name"`
	// InstanceTypes, Families and Sizes are patterns of names, of the part before the dot, and of the part after it, in the
	// syntax of path.Match: m7g.*, c*, *xlarge.
	InstanceTypes []string `json:"instanceTypes,omitempty"`
	Families      []string `json:"families,omitempty"`
	Sizes         []string `json:"sizes,omitempty"`
	// CapacityTypes are on-demand, spot or reserved; on-demand only if the rule has a limit and none are named.
	CapacityTypes []string `json:"capacityTypes,omitempty"`
	// Regions are names of regions, Zones patterns of zones.
	Regions []string `json:"regions,omitempty"`
	Zones   []string `json:"zones,omitempty"`
	// Requirements are those of a NodeOverlay.
	Requirements []karpv1alpha1.Requirement `json:"requirements,omitempty"`
	// Factor of the provider's price, or Price in USD per hour, or Prices in USD per hour by instance type: the rule
	// matches no other types.
	Factor *float64           `json:"factor,omitempty"`
	Price  *float64           `json:"price,omitempty"`
	Prices map[string]float64 `json:"prices,omitempty"`
	// UpTo limits the rule.
	UpTo *Limit `json:"upTo,omitempty"`
	// OfCloud says that the provider has stated the rule, not a file. Captures have it, files must not.
	OfCloud bool `json:"ofCloud,omitempty"`
}

// Limit is the amount of a commitment, in one of two units.
type Limit struct {
	VCPUs float64 `json:"vCPUs,omitempty"`
	// USDPerHour is at the price of the rule, not the list price.
	USDPerHour float64 `json:"usdPerHour,omitempty"`
	// Paid says that the commitment is paid whether it is used or not. Plans count the price of the rule divided by
	// PaidScale; USDPerHour is used up at the whole price.
	Paid bool `json:"paid,omitempty"`
}

// PaidScale is the number by which the price of a machine is divided in plans if a paid commitment covers it. The result is
// small enough that such machines are preferred to nearly all others. It is not 0, so that smaller machines cost less than
// larger ones, and none counts as one without a price.
const PaidScale = 100

// Matches reports whether the rule applies to an offering, apart from its requirements.
func (r *Rule) Matches(typeName string, o *cloud.Offering) bool {
	family, size, _ := strings.Cut(typeName, ".")
	if _, priced := r.Prices[typeName]; !priced && r.Prices != nil {
		return false
	}
	return matches(r.InstanceTypes, typeName) && matches(r.Families, family) && matches(r.Sizes, size) &&
		(len(r.CapacityTypes) == 0 || slices.Contains(r.CapacityTypes, o.CapacityType)) &&
		(len(r.Regions) == 0 || slices.ContainsFunc(r.Regions, func(region string) bool { return inRegion(o.Zone, region) })) &&
		matches(r.Zones, o.Zone)
}

// Unmatched returns the values of the rule that match no offering of the types on their own, as "families c7gg", in the order
// of the fields. Of a rule with an effect, values that may be there on purpose are left out: regions and prices of a file for
// several clusters.
func (r *Rule) Unmatched(types []*cloud.InstanceType, effect bool) []string {
	var unmatched []string
	check := func(field, value string, alone Rule) {
		if !slices.ContainsFunc(types, func(t *cloud.InstanceType) bool {
			return slices.ContainsFunc(t.Offerings, func(o cloud.Offering) bool { return alone.Matches(t.Name, &o) })
		}) {
			unmatched = append(unmatched, field+" "+value)
		}
	}
	for i, v := range r.InstanceTypes {
		check("instanceTypes", v, Rule{InstanceTypes: r.InstanceTypes[i : i+1]})
	}
	for i, v := range r.Families {
		check("families", v, Rule{Families: r.Families[i : i+1]})
	}
	for i, v := range r.Sizes {
		check("sizes", v, Rule{Sizes: r.Sizes[i : i+1]})
	}
	for i, v := range r.Zones {
		check("zones", v, Rule{Zones: r.Zones[i : i+1]})
	}
	if effect {
		return unmatched
	}
	for i, v := range r.Regions {
		check("regions", v, Rule{Regions: r.Regions[i : i+1]})
	}
	for i, v := range r.CapacityTypes {
		check("capacityTypes", v, Rule{CapacityTypes: r.CapacityTypes[i : i+1]})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Prices)) {
		check("prices", name, Rule{Prices: map[string]float64{name: 1}})
	}
	return unmatched
}

// inRegion reports whether the zone is the region with a letter or a local zone's name after it, as us-east-1a and
// us-east-1-bos-1a.
func inRegion(zone, region string) bool {
	rest, within := strings.CutPrefix(zone, region)
	return within && (rest == "" || rest[0] < '0' || rest[0] > '9')
}

func matches(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(pattern string) bool {
		matched, _ := path.Match(pattern, name)
		return matched
	})
}

// Of returns the price of the rule for an offering of a type with the provider's price, both in USD per hour.
func (r *Rule) Of(typeName string, usd float64) float64 {
	switch {
	case r.Prices != nil:
		return r.Prices[typeName]
	case r.Price != nil:
		return *r.Price
	}
	return usd * *r.Factor
}

// Commitment returns what a rule with a limit, at its place in the list, offers for a type with the provider's price in USD
// per hour.
func (r *Rule) Commitment(rank int, typeName string, usd float64) cloud.Commitment {
	c := cloud.Commitment{Name: r.Name, Rank: rank, Price: r.Of(typeName, usd), VCPUs: r.UpTo.VCPUs, USD: r.UpTo.USDPerHour}
	if r.UpTo.Paid {
		c.Price, c.Scale = c.Price/PaidScale, PaidScale
	}
	return c
}

// complete sets the defaults.
func (r *Rule) complete() {
	if r.UpTo != nil && len(r.CapacityTypes) == 0 {
		r.CapacityTypes = []string{karpv1.CapacityTypeOnDemand}
	}
}
