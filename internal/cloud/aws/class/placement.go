package class

import (
	"context"
	"slices"
	"strconv"
	"strings"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/launch"
)

// placement checks that no pool of the class requires dedicated instances where its placement group takes none: a group for
// spread instances takes none at all, and one of partitions in two partitions only
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/limitations-placement-groups.html).
func (r *Reconciler) placement(ctx context.Context, class *awsv1.EC2NodeClass) (*finding, error) {
	group, _ := r.Sources.Placements.Find(ctx, class) // the condition PlacementGroupReady has the error
	if group == nil || group.Strategy == string(ec2types.PlacementStrategyCluster) {
		return nil, nil
	}
	pools, err := r.poolsOf(ctx, class)
	if err != nil {
		return nil, err
	}
	var partitions []string
	for n := range min(group.Partitions, launch.DedicatedPartitions) {
		partitions = append(partitions, strconv.Itoa(n+1))
	}
	for i := range pools {
		template := &pools[i].Spec.Template
		switch {
		case allows(template, awsv1.LabelInstanceTenancy, awsv1.TenancyDefault):
		case group.Strategy == string(ec2types.PlacementStrategySpread):
			return wrong(awsv1.ReasonPlacementGroupTenancy,
				"spec.placementGroupSelector: placement group %s is for spread instances, which EC2 does not run with the tenancy "+
					"dedicated that NodePool %q requires; use another class for the pool",
				group.ID, pools[i].Name), nil
		case !allows(template, awsv1.LabelPlacementGroupPartition, partitions...):
			return wrong(awsv1.ReasonPlacementGroupTenancy,
				"spec.placementGroupSelector: EC2 runs instances with the tenancy dedicated, which NodePool %q requires, in at most %d "+
					"partitions of placement group %s; the requirement of the pool on %s allows none of %s",
				pools[i].Name, launch.DedicatedPartitions, group.ID, awsv1.LabelPlacementGroupPartition, strings.Join(partitions, ", ")), nil
		}
	}
	return nil, nil
}

// allows reports whether the nodes of a pool may have one of the values of a label.
func allows(template *karpv1.NodeClaimTemplate, key string, values ...string) bool {
	if value, is := template.ObjectMeta.Labels[key]; is {
		return slices.Contains(values, value)
	}
	need := cloud.NeedOf(&karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: template.Spec.Requirements}})
	wanted, restricted := need.Labels[key]
	return !restricted || slices.ContainsFunc(values, wanted.Has)
}
