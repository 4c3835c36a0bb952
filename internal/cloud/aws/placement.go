package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
)

// Placement groups: package discovery finds the group of a class, package instance reduces the types to those that suit
// it, package launch launches into it. Here they are connected, and a machine in a partition that EC2 chose gets its
// label.

// placementOf returns the placement group of a class, empty without one. If the group does not exist or is not known,
// nothing can be launched, which is a *cloud.NodeClassNotReadyError.
func (p *Provider) placementOf(ctx context.Context, class *awsv1.EC2NodeClass) (instance.PlacementGroup, error) {
	if class.Spec.PlacementGroupSelector == nil {
		return instance.PlacementGroup{}, nil
	}
	found, err := p.sources.Placements.Find(ctx, class)
	if found != nil {
		return placementFrom(found, p.launcher), nil // the last known one if it cannot be read now
	}
	unready := &cloud.NodeClassNotReadyError{Class: cloud.ClassRef{Group: awsv1.Group, Kind: awsv1.Kind, Name: class.Name},
		Reason: awsv1.ReasonPlacementGroupNotFound, Message: "its placement group does not exist or is not available"}
	if err != nil {
		unready.Reason, unready.Message = awsv1.ReasonPlacementGroupResolutionFailed, err.Error()
	}
	return instance.PlacementGroup{}, unready
}

func placementFrom(found *discovery.PlacementGroup, l *launch.Launcher) instance.PlacementGroup {
	group := instance.PlacementGroup{ID: found.ID, Strategy: found.Strategy, Partitions: found.Partitions,
		OnHosts: found.SpreadLevel == "host"}
	if group.Strategy == catalog.StrategyCluster {
		group.Zone = launch.GroupZone(l, group.ID)
	}
	return group
}

// partitions has the partitions that were requested for claims. The labels of claims show them when EC2 shows the
// machine. The zero value is empty, and that of a new process.
type partitions struct {
	mu        sync.Mutex
	requested map[types.UID]partition
}

type partition struct {
	group  string
	number int
}

// emptiest returns the one of several partitions that has the fewest claims, without those that are being deleted. A claim
// keeps the partition that was requested for it before, if that is among them.
func (p *partitions) emptiest(ctx context.Context, api client.Client, order *launch.Order, among []int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, group := order.Claim.UID, order.Placement.ID
	if before := p.requested[of]; before.group == group && slices.Contains(among, before.number) {
		return before.number
	}
	var claims karpv1.NodeClaimList
	if err := api.List(ctx, &claims, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "claims cannot be listed: the first partition is requested", "nodeClaim", order.Claim.Name)
		return among[0]
	}
	left, claimed := map[types.UID]partition{}, map[partition]int{}
	for i := range claims.Items {
		c := &claims.Items[i]
		if !c.DeletionTimestamp.IsZero() {
			continue
		}
		number, _ := strconv.Atoi(c.Labels[awsv1.LabelPlacementGroupPartition])
		in := partition{c.Labels[awsv1.LabelPlacementGroupID], number}
		if requested, has := p.requested[c.UID]; has && number == 0 {
			in, left[c.UID] = requested, requested
		}
		claimed[in]++
	}
	least := slices.MinFunc(among, func(a, b int) int {
		return cmp.Compare(claimed[partition{group, a}], claimed[partition{group, b}])
	})
	left[of] = partition{group, least}
	p.requested = left
	return least
}

// Registering implements cloud.Registrar: a machine in a partition that EC2 chose gets the label when EC2 shows its
// number. Claims of an earlier version, and of upstream, may have the label with an empty value.
func (p *Provider) Registering(ctx context.Context, claim *karpv1.NodeClaim) (map[string]string, error) {
	id := claim.Labels[awsv1.LabelPlacementGroupID]
	if id == "" || claim.Labels[awsv1.LabelPlacementGroupPartition] != "" {
		return nil, nil
	}
	class, err := p.class(ctx, refOf(claim.Spec.NodeClassRef))
	if errors.Is(err, cloud.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	group, unread := p.sources.Placements.Find(ctx, class)
	own := group != nil && group.ID == id // otherwise the group is not the class's any more, or not known
	if own && group.Partitions == 0 {
		return nil, nil
	}
	machine, err := p.launcher.Machine(ctx, claim.Status.ProviderID)
	if err != nil {
		return nil, err
	}
	switch partition := machine.Labels[awsv1.LabelPlacementGroupPartition]; {
	case partition != "":
		return map[string]string{awsv1.LabelPlacementGroupPartition: partition}, nil
	case own:
		return nil, fmt.Errorf("EC2 does not show the partition of placement group %s that machine %s is in", id, claim.Status.ProviderID)
	case group == nil:
		return nil, unread
	}
	return nil, nil
}

// placementDrift applies if the machine was launched into another placement group than the one that the class selects
// now. A claim without the label is of a version that launched machines outside of the group: they stay. As long as the
// group is not known, nothing is.
func placementDrift(ctx context.Context, placements *discovery.Placements, class *awsv1.EC2NodeClass,
	claim *karpv1.NodeClaim) (string, error) {
	id := claim.Labels[awsv1.LabelPlacementGroupID]
	if id == "" {
		return "", nil
	}
	group, err := placements.Find(ctx, class)
	switch {
	case group == nil && err != nil:
		return "", fmt.Errorf("checking the placement group of claim %q: %w", claim.Name, err)
	case group == nil && class.Spec.PlacementGroupSelector != nil:
		return "", nil // the group is gone, and nothing could replace the machine
	case group == nil || group.ID != id:
		return awsv1.ReasonPlacementGroupDrift, nil
	}
	return "", nil
}

// addLabels adds the labels of a machine's type. Those of a placement group are of new machines: a machine that exists
// has its own only.
func addLabels(labels map[string]string, requirements []cloud.Requirement) {
	made := maps.Clone(labels)
	for _, r := range requirements {
		if r.Operator == "In" && len(r.Values) == 1 {
			labels[r.Key] = r.Values[0]
		}
	}
	for _, key := range []string{awsv1.LabelPlacementGroupID, awsv1.LabelPlacementGroupPartition} {
		if delete(labels, key); made[key] != "" {
			labels[key] = made[key]
		}
	}
}
