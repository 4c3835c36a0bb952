package discovery

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// Subnet is a subnet that a selector matched.
type Subnet struct {
	ID     string
	Zone   string // such as us-east-1a
	ZoneID string // such as use1-az2
	VPC    string
	Free   int64 // IPv4 addresses that EC2 can still assign
}

// Subnets finds subnets.
type Subnets struct {
	api       EC2API
	calls     *Caller
	opts      Options
	addresses *Addresses
	found     *cache[revision, []Subnet]
}

func newSubnets(api EC2API, addresses *Addresses, calls *Caller, opts Options) *Subnets {
	return &Subnets{api: api, calls: calls, opts: opts, addresses: addresses, found: newCache[revision, []Subnet](opts.Now)}
}

// Find returns the subnets that the class selects, those with the most free addresses first, then by ID. It passes what
// it reads to Addresses. Errors: *CallError.
func (s *Subnets) Find(ctx context.Context, class *awsv1.EC2NodeClass) ([]Subnet, error) {
	found, err := s.found.value(ctx, revisionOf(class), s.opts.Lifetimes.Subnets, func(ctx context.Context) ([]Subnet, error) {
		return s.describe(ctx, subnetQueries(class.Spec.SubnetSelectorTerms))
	})
	if err != nil {
		return nil, fmt.Errorf("finding the subnets of EC2NodeClass %q: %w", class.Name, err)
	}
	return slices.Clone(found), nil
}

func (s *Subnets) describe(ctx context.Context, queries []query) ([]Subnet, error) {
	byID := map[string]Subnet{}
	sieve := s.calls.Sieve("EC2", "DescribeSubnets")
	defer sieve.Close()
	began := s.opts.Now()
	for _, q := range queries {
		pages := ec2.NewDescribeSubnetsPaginator(s.api, &ec2.DescribeSubnetsInput{Filters: q.ec2(), MaxResults: aws.Int32(500)})
		for page, err := range call.Pages(ctx, s.calls, "EC2", "DescribeSubnets", pages) {
			if err != nil {
				return nil, err
			}
			for i := range page.Subnets {
				read := &page.Subnets[i]
				id := value(read.SubnetId)
				if !sieve.Keep(q.asksFor(map[string]string{"subnet-id": id}, read.Tags), id) {
					continue
				}
				byID[id] = Subnet{ID: id, Zone: value(read.AvailabilityZone), ZoneID: value(read.AvailabilityZoneId),
					VPC: value(read.VpcId), Free: int64(value(read.AvailableIpAddressCount))}
			}
		}
	}
	found := make([]Subnet, 0, len(byID))
	for _, subnet := range byID {
		found = append(found, subnet)
	}
	slices.SortFunc(found, func(a, b Subnet) int { return cmp.Or(cmp.Compare(b.Free, a.Free), cmp.Compare(a.ID, b.ID)) })
	s.addresses.Seen(found, began)
	return found, nil
}

// subnetQueries returns one query for all IDs, and one for each other term.
func subnetQueries(terms []awsv1.SubnetSelectorTerm) []query {
	var ids []string
	var queries []query
	for _, term := range terms {
		switch {
		case term.ID != "":
			ids = append(ids, term.ID)
		case len(term.Tags) > 0:
			queries = append(queries, query{filters: tagFilters(term.Tags)})
		}
	}
	return append(mentioned("subnet-id", ids), queries...)
}
