package aws

import (
	"context"
	"fmt"
	"maps"
	"strconv"

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

// partitioned returns the number of claims by partition of a placement group, without those that are being deleted. It
// is nil unless the claim allows some of the partitions only, so that one has to be chosen.
func partitioned(ctx context.Context, api client.Client, claim *karpv1.NodeClaim, group instance.PlacementGroup) (map[int]int, error) {
	if _, restricted := cloud.NeedOf(claim).Labels[awsv1.LabelPlacementGroupPartition]; !restricted || group.Partitions == 0 {
		return nil, nil
	}
	var claims karpv1.NodeClaimList
	if err := api.List(ctx, &claims, client.MatchingLabels{awsv1.LabelPlacementGroupID: group.ID}); err != nil {
		return nil, fmt.Errorf("listing the claims in placement group %s: %w", group.ID, err)
	}
	numbers := map[int]int{}
	for i := range claims.Items {
		if claims.Items[i].DeletionTimestamp.IsZero() {
			n, _ := strconv.Atoi(claims.Items[i].Labels[awsv1.LabelPlacementGroupPartition]) // 0 as long as it is not known
			numbers[n]++
		}
	}
	return numbers, nil
}

// Registering implements cloud.Registrar: a machine in a partition that EC2 chose gets the label when EC2 shows its
// number. Claims of an earlier version, and of upstream, may have the label with an empty value.
func (p *Provider) Registering(ctx context.Context, claim *karpv1.NodeClaim) (map[string]string, error) {
	id := claim.Labels[awsv1.LabelPlacementGroupID]
	if id == "" || claim.Labels[awsv1.LabelPlacementGroupPartition] != "" {
		return nil, nil
	}
	machine, err := p.launcher.Machine(ctx, claim.Status.ProviderID)
	if err != nil {
		return nil, err
	}
	if partition := machine.Labels[awsv1.LabelPlacementGroupPartition]; partition != "" {
		return map[string]string{awsv1.LabelPlacementGroupPartition: partition}, nil
	}
	class, err := p.class(ctx, refOf(claim.Spec.NodeClassRef))
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	group, err := p.sources.Placements.Find(ctx, class)
	switch {
	case group == nil && err != nil:
		return nil, err
	case group != nil && group.ID == id && group.Partitions > 0:
		return nil, fmt.Errorf("EC2 does not show the partition of placement group %s that machine %s is in", id, claim.Status.ProviderID)
	}
	return nil, nil // the group has no partitions, or is not the class's any more
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
