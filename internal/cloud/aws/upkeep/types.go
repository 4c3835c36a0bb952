package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// EC2API has the methods of *ec2.Client that the package calls.
type EC2API interface {
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeInstanceTypeOfferings(context.Context, *ec2.DescribeInstanceTypeOfferingsInput,
		...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error)
	DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput,
		...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error)
}

// Types holds the instance types of the region: those of the embedded catalog until the first refresh. It is safe for
// concurrent use.
type Types struct {
	api      EC2API
	calls    *discovery.Caller
	embedded *catalog.Catalog

	mu      sync.RWMutex
	current []catalog.Type
}

// NewTypes returns the types of the embedded catalog.
func NewTypes(api EC2API, calls *discovery.Caller, embedded *catalog.Catalog) *Types {
	return &Types{api: api, calls: calls, embedded: embedded, current: embedded.Types}
}

// Current returns the types. They must not be modified.
func (t *Types) Current() []catalog.Type {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.current
}

// Refresh reads all types and the zones that offer them from EC2. If it fails, the types stay as they are. Errors:
// *discovery.CallError, or an empty response.
func (t *Types) Refresh(ctx context.Context) error {
	live, err := t.describe(ctx)
	if err != nil {
		return fmt.Errorf("listing the instance types of EC2: %w", err)
	}
	zones, err := t.zones(ctx)
	if err != nil {
		return fmt.Errorf("listing the zones of the instance types of EC2: %w", err)
	}
	if len(live) == 0 || len(zones) == 0 {
		return errors.New("listing the instance types of EC2: it returned none; the previous ones stay in use")
	}
	for i := range live {
		live[i].Zones = zones[live[i].Name]
		if live[i].Zones == nil {
			live[i].Zones = []string{} // offered in no zone, as opposed to unknown
		}
	}
	completed := t.embedded.Complete(live)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = completed
	return nil
}

// describe returns all types that can be nodes, sorted by name. Types that lack a required attribute are omitted.
func (t *Types) describe(ctx context.Context) ([]catalog.Type, error) {
	pages := ec2.NewDescribeInstanceTypesPaginator(t.api, &ec2.DescribeInstanceTypesInput{
		Filters: []ec2types.Filter{
			{Name: aws.String("supported-virtualization-type"), Values: []string{"hvm"}},
			{Name: aws.String("processor-info.supported-architecture"), Values: []string{"x86_64", "arm64"}},
		},
		MaxResults: aws.Int32(100),
	})
	sieve := t.calls.Sieve("EC2", "DescribeInstanceTypes")
	defer sieve.Close()
	byName := map[string]catalog.Type{}
	for page, err := range discovery.Pages(ctx, t.calls, "EC2", "DescribeInstanceTypes", pages) {
		if err != nil {
			return nil, err
		}
		for i := range page.InstanceTypes {
			read := typeOf(&page.InstanceTypes[i])
			if sieve.Keep(fitsNodes(&page.InstanceTypes[i]), read.Name) && usable(&read) {
				byName[read.Name] = read
			}
		}
	}
	return sortedByName(byName), nil
}

// zones returns the zones that offer each type, sorted.
func (t *Types) zones(ctx context.Context) (map[string][]string, error) {
	pages := ec2.NewDescribeInstanceTypeOfferingsPaginator(t.api, &ec2.DescribeInstanceTypeOfferingsInput{
		LocationType: ec2types.LocationTypeAvailabilityZone, MaxResults: aws.Int32(1000)})
	sieve := t.calls.Sieve("EC2", "DescribeInstanceTypeOfferings")
	defer sieve.Close()
	zones := map[string][]string{}
	for page, err := range discovery.Pages(ctx, t.calls, "EC2", "DescribeInstanceTypeOfferings", pages) {
		if err != nil {
			return nil, err
		}
		for _, offering := range page.InstanceTypeOfferings {
			name := string(offering.InstanceType)
			if !sieve.Keep(offering.LocationType == "" || offering.LocationType == ec2types.LocationTypeAvailabilityZone, name) {
				continue
			}
			zones[name] = append(zones[name], aws.ToString(offering.Location))
		}
	}
	for name := range zones {
		slices.Sort(zones[name])
		zones[name] = slices.Compact(zones[name])
	}
	return zones, nil
}

// fitsNodes reports whether a type passes the filters of the request. Attributes that EC2 omits count as matching.
func fitsNodes(i *ec2types.InstanceTypeInfo) bool {
	if len(i.SupportedVirtualizationTypes) > 0 && !slices.Contains(i.SupportedVirtualizationTypes, ec2types.VirtualizationTypeHvm) {
		return false
	}
	return i.ProcessorInfo == nil || slices.ContainsFunc(i.ProcessorInfo.SupportedArchitectures, func(a ec2types.ArchitectureType) bool {
		return a == ec2types.ArchitectureTypeX8664 || a == ec2types.ArchitectureTypeArm64
	})
}
