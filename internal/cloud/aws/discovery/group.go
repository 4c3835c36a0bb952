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

// Group is a security group that a selector matched.
type Group struct {
	ID   string
	Name string
	VPC  string
	// ByID means that the class refers to it by its ID.
	ByID bool
}

// Groups finds security groups.
type Groups struct {
	api   EC2API
	calls *Caller
	opts  Options
	found *cache[revision, []Group]
}

func newGroups(api EC2API, calls *Caller, opts Options) *Groups {
	return &Groups{api: api, calls: calls, opts: opts, found: newCache[revision, []Group](opts.Now)}
}

// Find returns the security groups that the class selects, sorted by ID, in any network. Errors: *CallError.
func (g *Groups) Find(ctx context.Context, class *awsv1.EC2NodeClass) ([]Group, error) {
	found, err := g.found.value(ctx, revisionOf(class), g.opts.Lifetimes.SecurityGroups, func(ctx context.Context) ([]Group, error) {
		return g.describe(ctx, class.Spec.SecurityGroupSelectorTerms)
	})
	if err != nil {
		return nil, fmt.Errorf("finding the security groups of EC2NodeClass %q: %w", class.Name, err)
	}
	return slices.Clone(found), nil
}

func (g *Groups) describe(ctx context.Context, terms []awsv1.SecurityGroupSelectorTerm) ([]Group, error) {
	byID := map[string]Group{}
	sieve := g.calls.Sieve("EC2", "DescribeSecurityGroups")
	defer sieve.Close()
	for _, q := range groupQueries(terms) {
		pages := ec2.NewDescribeSecurityGroupsPaginator(g.api, &ec2.DescribeSecurityGroupsInput{Filters: q.ec2(), MaxResults: aws.Int32(500)})
		for page, err := range call.Pages(ctx, g.calls, "EC2", "DescribeSecurityGroups", pages) {
			if err != nil {
				return nil, err
			}
			for i := range page.SecurityGroups {
				read := &page.SecurityGroups[i]
				id := value(read.GroupId)
				if !sieve.Keep(q.asksFor(map[string]string{"group-id": id, "group-name": value(read.GroupName)}, read.Tags), id) {
					continue
				}
				named := slices.ContainsFunc(terms, func(t awsv1.SecurityGroupSelectorTerm) bool { return t.ID == id })
				byID[id] = Group{ID: id, Name: value(read.GroupName), VPC: value(read.VpcId), ByID: named}
			}
		}
	}
	found := make([]Group, 0, len(byID))
	for _, group := range byID {
		found = append(found, group)
	}
	slices.SortFunc(found, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	return found, nil
}

// groupQueries returns one query for all IDs, one for all names, and one for each other term.
func groupQueries(terms []awsv1.SecurityGroupSelectorTerm) []query {
	var ids, names []string
	var queries []query
	for _, term := range terms {
		switch {
		case term.ID != "":
			ids = append(ids, term.ID)
		case term.Name != "":
			names = append(names, term.Name)
		case len(term.Tags) > 0:
			queries = append(queries, query{filters: tagFilters(term.Tags)})
		}
	}
	return slices.Concat(mentioned("group-id", ids), mentioned("group-name", names), queries)
}

// OfNetwork splits the groups into those that machines in the subnets can use, and those of other networks that have a
// matching name or tag. EC2 refuses a launch that mixes them. Groups that the class refers to by ID are always used,
// because a group may be associated with further networks. Without subnets all groups are used.
func OfNetwork(groups []Group, subnets []Subnet) (used, elsewhere []Group) {
	for _, group := range groups {
		near := slices.ContainsFunc(subnets, func(s Subnet) bool { return s.VPC == group.VPC })
		if near || group.ByID || len(subnets) == 0 {
			used = append(used, group)
		} else {
			elsewhere = append(elsewhere, group)
		}
	}
	return used, elsewhere
}
