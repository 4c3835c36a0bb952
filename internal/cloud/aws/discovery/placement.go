package discovery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// PlacementGroup is the placement group that a class selects.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_PlacementGroup.html
type PlacementGroup struct {
	ID, ARN string
	// Strategy is cluster, partition or spread.
	Strategy string
	// Partitions is the number of partitions, 0 with another strategy.
	Partitions int
	// SpreadLevel is rack or host, and empty with another strategy.
	SpreadLevel string
}

// Placements finds placement groups.
type Placements struct {
	api   EC2API
	calls *Caller
	now   func() time.Time
	found *cache[awsv1.PlacementGroupSelector, *PlacementGroup]

	mu sync.Mutex
	// last holds the last answers, which are used while calls fail.
	last map[awsv1.PlacementGroupSelector]lastPlacement
}

type lastPlacement struct {
	group *PlacementGroup
	at    time.Time
}

const (
	// placementFor is how long an answer is used, and placementKept how long while calls fail. Every machine of a class
	// needs its group: after an error, EC2 is asked again when placementErrorsFor has passed.
	placementFor       = time.Minute
	placementKept      = 24 * time.Hour
	placementErrorsFor = 30 * time.Second

	codeNoPlacement = "InvalidPlacementGroup.Unknown"
)

func newPlacements(api EC2API, calls *Caller, now func() time.Time) *Placements {
	found := newCache[awsv1.PlacementGroupSelector, *PlacementGroup](now)
	found.errorsFor = placementErrorsFor
	return &Placements{api: api, calls: calls, now: now, found: found, last: map[awsv1.PlacementGroupSelector]lastPlacement{}}
}

// Find returns the placement group that the class selects, nil if it selects none or the group does not exist. It must
// not be modified. Errors: *CallError, with the last known group if there is one.
func (p *Placements) Find(ctx context.Context, class *awsv1.EC2NodeClass) (*PlacementGroup, error) {
	if class.Spec.PlacementGroupSelector == nil {
		return nil, nil
	}
	selector := *class.Spec.PlacementGroupSelector
	group, err := p.found.value(ctx, selector, placementFor, func(ctx context.Context) (*PlacementGroup, error) {
		return p.describe(ctx, selector)
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if err == nil {
		p.last[selector] = lastPlacement{group, now}
		return group, nil
	}
	err = fmt.Errorf("finding the placement group of EC2NodeClass %q: %w", class.Name, err)
	if last := p.last[selector]; now.Sub(last.at) < placementKept {
		return last.group, err
	}
	delete(p.last, selector)
	return nil, err
}

// Forget makes the next Find ask again, because EC2 has refused the group of the class.
func (p *Placements) Forget(class *awsv1.EC2NodeClass) {
	if selector := class.Spec.PlacementGroupSelector; selector != nil {
		p.found.forget(func(key awsv1.PlacementGroupSelector, _ *PlacementGroup) bool { return key == *selector })
	}
}

// describe returns nil if no available group matches.
func (p *Placements) describe(ctx context.Context, selector awsv1.PlacementGroupSelector) (*PlacementGroup, error) {
	state := "state"
	in := &ec2.DescribePlacementGroupsInput{Filters: []ec2types.Filter{{Name: &state,
		Values: []string{string(ec2types.PlacementGroupStateAvailable)}}}}
	if selector.ID != "" {
		in.GroupIds = []string{selector.ID}
	} else {
		in.GroupNames = []string{selector.Name}
	}
	sieve := p.calls.Sieve("EC2", "DescribePlacementGroups")
	defer sieve.Close()
	out, err := Do(ctx, p.calls, "EC2", "DescribePlacementGroups", func(ctx context.Context) (*ec2.DescribePlacementGroupsOutput, error) {
		return p.api.DescribePlacementGroups(ctx, in)
	})
	var refused *CallError
	if errors.As(err, &refused) && refused.Code == codeNoPlacement {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range out.PlacementGroups {
		read := &out.PlacementGroups[i]
		named := value(read.GroupId) == selector.ID || selector.ID == "" && value(read.GroupName) == selector.Name
		if sieve.Keep(named && read.State == ec2types.PlacementGroupStateAvailable, value(read.GroupId)) {
			return &PlacementGroup{ID: value(read.GroupId), ARN: value(read.GroupArn), Strategy: string(read.Strategy),
				Partitions: int(value(read.PartitionCount)), SpreadLevel: string(read.SpreadLevel)}, nil
		}
	}
	return nil, nil
}

// Placement writes the result of Placements.Find. As long as the group cannot be read, the condition stays true if it
// was for this generation of the class.
func (s Show) Placement(group *PlacementGroup, err error) {
	old := s.conditions().Get(awsv1.ConditionPlacementGroupReady)
	switch {
	case s.Class.Spec.PlacementGroupSelector == nil, err == nil && group != nil:
		s.conditions().SetTrue(awsv1.ConditionPlacementGroupReady)
	case err == nil:
		s.conditions().SetFalse(awsv1.ConditionPlacementGroupReady, awsv1.ReasonPlacementGroupNotFound,
			"spec.placementGroupSelector: no placement group matches that is available; check the name or the id, and the region")
	case old.IsTrue() && old.ObservedGeneration == s.Class.Generation:
		s.Unanswered(awsv1.ConditionPlacementGroupReady, err)
	case group != nil:
		s.conditions().SetTrue(awsv1.ConditionPlacementGroupReady)
	case old.Reason == awsv1.ReasonPlacementGroupResolutionFailed && SameWords(old.Message, err.Error()):
	default:
		s.conditions().SetFalse(awsv1.ConditionPlacementGroupReady, awsv1.ReasonPlacementGroupResolutionFailed, err.Error())
	}
}
