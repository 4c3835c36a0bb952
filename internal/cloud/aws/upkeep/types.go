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

// EC2API is what the package asks of EC2; *ec2.Client has it.
type EC2API interface {
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeInstanceTypeOfferings(context.Context, *ec2.DescribeInstanceTypeOfferingsInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error)
	DescribeSpotPriceHistory(context.Context, *ec2.DescribeSpotPriceHistoryInput, ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error)
}

// Types are the instance types of the region: those of the embedded catalogue until EC2 has been asked. They may be used
// from several goroutines.
type Types struct {
	api      EC2API
	calls    *discovery.Caller
	embedded *catalog.Catalogue

	mu      sync.RWMutex
	current []catalog.Type
}

// NewTypes begins with the embedded catalogue.
func NewTypes(api EC2API, calls *discovery.Caller, embedded *catalog.Catalogue) *Types {
	return &Types{api: api, calls: calls, embedded: embedded, current: embedded.Types}
}

// Current are the types, which nobody may change.
func (t *Types) Current() []catalog.Type {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.current
}

// Refresh asks EC2 for all types and for the zones that sell them. With an error the types stay as they are. Errors:
// *discovery.CallError, or that EC2 answered with nothing.
func (t *Types) Refresh(ctx context.Context) error {
	live, err := t.describe(ctx)
	if err != nil {
		return fmt.Errorf("asking EC2 for its instance types: %w", err)
	}
	zones, err := t.zones(ctx)
	if err != nil {
		return fmt.Errorf("asking EC2 which zones sell its instance types: %w", err)
	}
	if len(live) == 0 || len(zones) == 0 {
		return errors.New("asking EC2 for its instance types: it answered that there are none; those known before stay in use")
	}
	for i := range live {
		live[i].Zones = zones[live[i].Name]
		if live[i].Zones == nil {
			live[i].Zones = []string{} // sold nowhere, as opposed to not known
		}
	}
	completed := t.embedded.Complete(live)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.current = completed
	return nil
}

// describe reads all types that can be nodes, sorted by name. A type that lacks what nobody could do without is left out.
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

// zones are the zones that sell each type, sorted.
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

// fitsNodes says whether a type is one of those that are asked for: what EC2 leaves out of its answer counts as fitting.
func fitsNodes(i *ec2types.InstanceTypeInfo) bool {
	if len(i.SupportedVirtualizationTypes) > 0 && !slices.Contains(i.SupportedVirtualizationTypes, ec2types.VirtualizationTypeHvm) {
		return false
	}
	return i.ProcessorInfo == nil || slices.ContainsFunc(i.ProcessorInfo.SupportedArchitectures, func(a ec2types.ArchitectureType) bool {
		return a == ec2types.ArchitectureTypeX8664 || a == ec2types.ArchitectureTypeArm64
	})
}
