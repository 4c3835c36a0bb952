package launch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// plan is the fleet launch that a claim would need. Claims whose plans have the same key are launched together.
type plan struct {
	order     *Order
	selection Selection
	// templates is by variant. variants are ordered by their first way.
	templates map[templateFor]template
	variants  []templateFor
	tags      map[string]string
}

// newPlan selects the ways and renders the templates. Errors: *cloud.InsufficientCapacityError, and those of user data.
func newPlan(o *Order, region string) (*plan, error) {
	s, err := Select(o.Claim, o.Types)
	if err != nil {
		return nil, err
	}
	if s.Placement = o.Placement; s.Placement.ID != "" {
		if s.Partition, err = o.partition(&s); err != nil {
			return nil, err
		}
		s.Ways = oncePerPlace(s.Ways, s.Partition)
	}
	p := &plan{order: o, selection: s, templates: map[templateFor]template{}, tags: TagsOf(o.Class, poolOf(o.Claim), o.Cluster.Name)}
	if p.selection.Ways = o.inConfigs(s.Ways); !o.varied(p.selection.Ways) {
		return nil, &cloud.InsufficientCapacityError{Message: fmt.Sprintf("types with the minValues of the claim's requirements need more than %d launch templates, the limit of EC2 for one fleet", mostConfigs)}
	}
	for _, w := range p.selection.Ways {
		v := o.variantOf(w)
		if _, made := p.templates[v]; made {
			continue
		}
		t, err := o.template(&s, v)
		if err != nil {
			return nil, err
		}
		t.inRegion(region)
		p.templates[v], p.variants = t, append(p.variants, v)
	}
	return p, nil
}

// mostConfigs is the maximum number of launch templates in one fleet
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateFleet.html, LaunchTemplateConfigs).
const mostConfigs = 50

// inConfigs reduces the ways, cheapest first, to those of mostConfigs templates: first the templates of the types that
// minValues need, then the cheapest.
func (o *Order) inConfigs(ways []cloud.Choice) []cloud.Choice {
	needed := map[templateFor]bool{}
	first := varied(ways, minValuesOf(o.Claim))
	for _, preferred := range []bool{true, false} {
		for _, w := range ways {
			if first[w.Type.Name] == preferred && len(needed) < mostConfigs {
				needed[o.variantOf(w)] = true
			}
		}
	}
	return keep(ways, func(w cloud.Choice) bool { return needed[o.variantOf(w)] })
}

// varied reports whether the ways satisfy the claim's minValues, if it has any.
func (o *Order) varied(ways []cloud.Choice) bool {
	return meets(ways, minValuesOf(o.Claim)) || o.Claim.Annotations[karpv1.AnnotationMinValuesRelaxed] == "true"
}

// key returns a hash of everything in the request except the number of instances.
func (p *plan) key() string {
	request := p.request(Record{Size: 1}, nil, nil)
	text, err := json.Marshal(request)
	if err != nil {
		panic("hashing a fleet request: " + err.Error()) // strings and finite numbers always have a JSON form
	}
	sum := sha256.Sum256(append(text, p.order.Class.UID...))
	return hex.EncodeToString(sum[:])
}

// zones returns the zones of the ways, sorted.
func (p *plan) zones() []string {
	zones := map[string]bool{}
	for _, w := range p.selection.Ways {
		zones[w.Offering.Zone] = true
	}
	return slices.Sorted(maps.Keys(zones))
}

// request returns the fleet request for a record, for some of its indexes. subnets is by zone. A zone without a subnet
// is omitted, unless subnets is nil.
func (p *plan) request(e Record, some indexSet, subnets map[string]string) *ec2.CreateFleetInput {
	tags, size := maps.Clone(p.tags), e.Size
	if e.Batch != "" {
		tags[TagFleetLaunch] = e.Token()
	}
	if some != nil {
		tags[TagIndexes], size = some.text(), len(some)
	}
	if e.Batch != "" && size == 1 {
		tags[awsv1.TagNodeClaim] = p.order.Claim.Name
	}
	request := &ec2.CreateFleetInput{
		Type:                  ec2types.FleetTypeInstant,
		LaunchTemplateConfigs: p.configs(subnets),
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(int32(size)), DefaultTargetCapacityType: targetOf(&p.selection),
		},
		TagSpecifications: []ec2types.TagSpecification{
			{ResourceType: ec2types.ResourceTypeInstance, Tags: ec2Tags(tags)},
			{ResourceType: ec2types.ResourceTypeVolume, Tags: ec2Tags(tags)},
			{ResourceType: ec2types.ResourceTypeFleet, Tags: ec2Tags(tags)},
		},
	}
	if e.Batch != "" {
		request.ClientToken = aws.String(e.Token())
	}
	p.strategies(request)
	if p.order.Claim.Annotations[karpv1.AnnotationMinValuesRelaxed] != "true" {
		request.Context = p.order.Class.Spec.Context
	}
	return request
}

func (p *plan) overlaid() bool {
	return p.order.Claim.Annotations[karpv1.AnnotationPriceOverlayApplied] != ""
}

// strategies sets how EC2 chooses among the overrides. If a price overlay applies, its prices take precedence and are
// passed to EC2 as priorities.
func (p *plan) strategies(request *ec2.CreateFleetInput) {
	switch {
	case p.reservedStrategies(request):
	case p.selection.CapacityType == karpv1.CapacityTypeSpot && p.overlaid():
		request.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: ec2types.SpotAllocationStrategyCapacityOptimizedPrioritized}
	case p.selection.CapacityType == karpv1.CapacityTypeSpot:
		request.SpotOptions = &ec2types.SpotOptionsRequest{AllocationStrategy: ec2types.SpotAllocationStrategyPriceCapacityOptimized}
	case p.overlaid():
		request.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyPrioritized}
	default:
		request.OnDemandOptions = &ec2types.OnDemandOptionsRequest{AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyLowestPrice}
	}
}

// tieStep is by how much, in USD per hour, the priority of a type is above that of the type before it at the same
// price.
const tieStep = 1e-6

// priorities returns a number for each way, the lowest for the one that EC2 should use first: its price. If a price
// overlay applies, types of equal price, such as machines that are paid for already, follow each other in their order.
// The offerings of one type stay equal: EC2 chooses among their zones.
func (p *plan) priorities() []float64 {
	list := make([]float64, len(p.selection.Ways))
	for i, w := range p.selection.Ways {
		list[i] = w.Offering.Price
		if before := p.selection.Ways[max(0, i-1)]; p.overlaid() && i > 0 && before.Offering.Price == w.Offering.Price {
			if list[i] = list[i-1]; before.Type.Name != w.Type.Name {
				list[i] += tieStep
			}
		}
	}
	return list
}

func (p *plan) configs(subnets map[string]string) []ec2types.FleetLaunchTemplateConfigRequest {
	var configs []ec2types.FleetLaunchTemplateConfigRequest
	priorities := p.priorities()
	for _, v := range p.variants {
		config := ec2types.FleetLaunchTemplateConfigRequest{LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{
			LaunchTemplateName: aws.String(p.templates[v].name), Version: aws.String("$Latest"),
		}}
		for i, w := range p.selection.Ways {
			subnet, found := subnets[w.Offering.Zone]
			if p.order.variantOf(w) != v || subnets != nil && !found {
				continue
			}
			config.Overrides = append(config.Overrides, ec2types.FleetLaunchTemplateOverridesRequest{
				InstanceType: ec2types.InstanceType(w.Type.Name), AvailabilityZone: aws.String(w.Offering.Zone),
				SubnetId: aws.String(subnet), ImageId: aws.String(v.image), Priority: aws.Float64(priorities[i]),
			})
		}
		if len(config.Overrides) == 0 {
			continue
		}
		slices.SortFunc(config.Overrides, compareOverrides)
		configs = append(configs, config)
	}
	return configs
}

func compareOverrides(a, b ec2types.FleetLaunchTemplateOverridesRequest) int {
	return cmp.Or(cmp.Compare(*a.Priority, *b.Priority), cmp.Compare(a.InstanceType, b.InstanceType),
		cmp.Compare(*a.AvailabilityZone, *b.AvailabilityZone))
}

// launched is an instance as described by the response of its fleet launch, or by a search for it.
type launched struct {
	id, typeName, zone, image, capacityType string
	// hold is how it uses a capacity reservation.
	hold Hold
	// claim and indexes are from the instance's tags, and empty if it has none.
	claim, indexes string
	// terminating is set if the instance has terminated or is terminating.
	terminating bool
	// origin is what the instance is made from, if the response has it. It is empty for an instance from a search.
	origin Origin
}

// launchedOf returns the instances in the response to a request, sorted by ID.
func launchedOf(out *ec2.CreateFleetOutput, r request) []launched {
	var list []launched
	for _, i := range out.Instances {
		b := launched{typeName: string(i.InstanceType), capacityType: karpv1.CapacityTypeOnDemand, origin: r.Made}
		if i.Lifecycle == ec2types.InstanceLifecycleSpot {
			b.capacityType = karpv1.CapacityTypeSpot
		}
		if i.LaunchTemplateAndOverrides != nil && i.LaunchTemplateAndOverrides.Overrides != nil {
			overrides := i.LaunchTemplateAndOverrides.Overrides
			b.zone, b.image = aws.ToString(overrides.AvailabilityZone), aws.ToString(overrides.ImageId)
		}
		if hold := r.Holds[placeKey(b.typeName, b.zone)]; hold.ID != "" {
			b.hold, b.capacityType = hold, karpv1.CapacityTypeReserved
		}
		for _, id := range i.InstanceIds {
			b.id = id
			list = append(list, b)
		}
	}
	slices.SortFunc(list, func(a, b launched) int { return cmp.Compare(a.id, b.id) })
	return list
}
