package launch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

const (
	// mostTypes is the maximum number of instance types in a request.
	mostTypes = 60
	// mostWays is the maximum number of overrides in one fleet
	// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/fleet-quotas.html).
	mostWays = 300
)

// Selection holds what may be launched for a claim: ways of one capacity type, market type and tenancy.
type Selection struct {
	// CapacityType is reserved, on-demand or spot.
	CapacityType string
	// market is the market type for capacity blocks and interruptible reservations, and empty otherwise.
	market ec2types.MarketType
	// Tenancy is default or dedicated.
	Tenancy string
	// Placement is the placement group, and Partition the one that is requested, 0 if EC2 chooses.
	Placement instance.PlacementGroup
	Partition int
	// Ways are available offerings, cheapest first.
	Ways []cloud.Choice
}

// Select filters the types for a claim. The error is a *cloud.InsufficientCapacityError with the filter that excluded
// the last type.
func Select(claim *karpv1.NodeClaim, types []cloud.InstanceType) (Selection, error) {
	need := cloud.NeedOf(claim)
	least := minValuesOf(claim)
	ways := available(need, types)
	if len(ways) == 0 {
		return Selection{}, noChoice(need, types)
	}
	either := meets(ways, leastOf(claim, isCapacityType))
	if s, found := selectReserved(ways, TenancyOf(need), least); found && either {
		return s, nil
	}
	ways = keep(ways, func(c cloud.Choice) bool { return c.Offering.CapacityType != karpv1.CapacityTypeReserved })
	if len(least) == 0 {
		ways = withoutExotic(ways)
		ways = withoutExpensiveSpot(ways)
	}
	s := Selection{CapacityType: karpv1.CapacityTypeOnDemand, Tenancy: TenancyOf(need)}
	if slices.ContainsFunc(ways, hasCapacityType(karpv1.CapacityTypeSpot)) {
		s.CapacityType = karpv1.CapacityTypeSpot
	}
	ways = keep(ways, hasCapacityType(s.CapacityType))
	if s.Ways = fewer(ways, least); !(either && meets(s.Ways, least)) && claim.Annotations[karpv1.AnnotationMinValuesRelaxed] != "true" {
		return Selection{}, &cloud.InsufficientCapacityError{Message: fmt.Sprintf("the %s offerings that are available now do not satisfy the minValues of the claim's requirements", s.CapacityType)}
	}
	return s, nil
}

// available returns the offerings that can be launched for the need now, cheapest first.
func available(need cloud.Need, types []cloud.InstanceType) []cloud.Choice {
	return keep(need.Choices(types), func(c cloud.Choice) bool { return c.Offering.Available })
}

func noChoice(need cloud.Need, types []cloud.InstanceType) error {
	allowed := need.Choices(types)
	if len(allowed) == 0 {
		return &cloud.InsufficientCapacityError{Message: fmt.Sprintf("no offering of the %d instance types of the node class meets the claim's requirements and requests", len(types))}
	}
	var names []string
	for _, c := range allowed[:min(3, len(allowed))] {
		names = append(names, strings.Join([]string{c.Type.Name, c.Offering.Zone, c.Offering.CapacityType}, "/"))
	}
	return &cloud.InsufficientCapacityError{Message: fmt.Sprintf("all %d offerings that the claim allows are unavailable: %s ...",
		len(allowed), strings.Join(names, ", "))}
}

// withoutExotic removes types with special hardware, unless there are no others, so that pods which do not need the
// hardware do not occupy it.
func withoutExotic(ways []cloud.Choice) []cloud.Choice {
	ordinary := keep(ways, func(c cloud.Choice) bool { return !c.Type.Special })
	if len(ordinary) == 0 {
		return ways
	}
	return ordinary
}

// withoutExpensiveSpot removes spot offerings that cost more than the cheapest on-demand offering.
func withoutExpensiveSpot(ways []cloud.Choice) []cloud.Choice {
	k := slices.IndexFunc(ways, hasCapacityType(karpv1.CapacityTypeOnDemand))
	if k < 0 {
		return ways
	}
	cheapest := ways[k].Offering.Price
	return keep(ways, func(c cloud.Choice) bool {
		return c.Offering.CapacityType != karpv1.CapacityTypeSpot || c.Offering.Price <= cheapest
	})
}

func hasCapacityType(capacityType string) func(cloud.Choice) bool {
	return func(c cloud.Choice) bool { return c.Offering.CapacityType == capacityType }
}

func keep(ways []cloud.Choice, wanted func(cloud.Choice) bool) []cloud.Choice {
	return slices.DeleteFunc(slices.Clone(ways), func(c cloud.Choice) bool { return !wanted(c) })
}

// TenancyOf returns dedicated if no other tenancy is allowed.
func TenancyOf(need cloud.Need) string {
	if wanted, restricted := need.Labels[awsv1.LabelInstanceTenancy]; restricted && !wanted.Has(awsv1.TenancyDefault) {
		return awsv1.TenancyDedicated
	}
	return awsv1.TenancyDefault
}

// minValues is the minimum number of different values of a label that the types must have.
type minValues struct {
	key   string
	least int
}

// minValuesOf returns the minimums that a request must satisfy. A request has one capacity type, so that a minimum of
// capacity types is one of what is available to the claim.
func minValuesOf(claim *karpv1.NodeClaim) []minValues {
	return leastOf(claim, func(key string) bool { return !isCapacityType(key) })
}

func isCapacityType(key string) bool { return key == karpv1.LabelCapacityType }

// leastOf returns the minimums of the claim's wanted labels. A minimum of one is met by any offering.
func leastOf(claim *karpv1.NodeClaim, wanted func(key string) bool) []minValues {
	var least []minValues
	for _, r := range claim.Spec.Requirements {
		if r.MinValues != nil && *r.MinValues > 1 && wanted(r.Key) {
			least = append(least, minValues{r.Key, *r.MinValues})
		}
	}
	return least
}

// fewer reduces the ways to the limits of a fleet. It keeps the types that the variety needs, and then the cheapest
// ones.
func fewer(ways []cloud.Choice, least []minValues) []cloud.Choice {
	chosen := varied(ways, least)
	for _, w := range ways {
		if len(chosen) < mostTypes {
			chosen[w.Type.Name] = true
		}
	}
	ways = keep(ways, func(c cloud.Choice) bool { return chosen[c.Type.Name] })
	if len(ways) <= mostWays {
		return ways
	}
	return cheapestOfEach(ways)
}

// varied returns the cheapest types that satisfy the variety.
func varied(ways []cloud.Choice, least []minValues) map[string]bool {
	chosen := map[string]bool{}
	for _, v := range least {
		seen := map[string]bool{}
		for _, w := range ways {
			if value := valueOf(w, v.key); len(seen) < v.least && value != "" && !seen[value] {
				seen[value], chosen[w.Type.Name] = true, true
			}
		}
	}
	return chosen
}

// cheapestOfEach reduces the ways to mostWays. It keeps at least the cheapest way of each type.
func cheapestOfEach(ways []cloud.Choice) []cloud.Choice {
	first := map[string]bool{}
	rank := make([]int, len(ways))
	order := make([]int, len(ways))
	for i, w := range ways {
		order[i] = i
		if first[w.Type.Name] {
			rank[i] = 1
		}
		first[w.Type.Name] = true
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rank[a], rank[b]) })
	order = order[:mostWays]
	slices.Sort(order)
	kept := make([]cloud.Choice, len(order))
	for i, k := range order {
		kept[i] = ways[k]
	}
	return kept
}

func meets(ways []cloud.Choice, least []minValues) bool {
	for _, v := range least {
		seen := map[string]bool{}
		for _, w := range ways {
			if value := valueOf(w, v.key); value != "" {
				seen[value] = true
			}
		}
		if len(seen) < v.least {
			return false
		}
	}
	return true
}

// valueOf returns the value of a label of a way, or an empty string if it has none.
func valueOf(w cloud.Choice, key string) string {
	switch key {
	case karpv1.LabelCapacityType:
		return w.Offering.CapacityType
	case "topology.kubernetes.io/zone":
		return w.Offering.Zone
	}
	for _, r := range slices.Concat(w.Offering.Requirements, w.Type.Requirements) {
		if r.Key == key && r.Operator == "In" && len(r.Values) == 1 {
			return r.Values[0]
		}
	}
	return ""
}
