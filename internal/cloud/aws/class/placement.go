package class

import (
	"context"

	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// placement checks that no pool of the class requires dedicated instances if its placement group is one for spread
// instances, which takes none
// (https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/limitations-placement-groups.html#placement-groups-limitations-spread).
func (r *Reconciler) placement(ctx context.Context, class *awsv1.EC2NodeClass) (*finding, error) {
	group, _ := r.Sources.Placements.Find(ctx, class) // the condition PlacementGroupReady has the error
	if group == nil || group.Strategy != string(ec2types.PlacementStrategySpread) {
		return nil, nil
	}
	pools, err := r.poolsOf(ctx, class)
	if err != nil {
		return nil, err
	}
	for i := range pools {
		if dedicated(&pools[i].Spec.Template) {
			return wrong(awsv1.ReasonPlacementGroupTenancy,
				"spec.placementGroupSelector: placement group %s is for spread instances, which EC2 does not run with the tenancy "+
					"dedicated that NodePool %q requires; use another class for the pool",
				group.ID, pools[i].Name), nil
		}
	}
	return nil, nil
}

// dedicated reports whether all instances of a pool have the tenancy dedicated.
func dedicated(template *karpv1.NodeClaimTemplate) bool {
	if template.ObjectMeta.Labels[awsv1.LabelInstanceTenancy] == awsv1.TenancyDedicated {
		return true
	}
	need := cloud.NeedOf(&karpv1.NodeClaim{Spec: karpv1.NodeClaimSpec{Requirements: template.Spec.Requirements}})
	wanted, restricted := need.Labels[awsv1.LabelInstanceTenancy]
	return restricted && !wanted.Has(awsv1.TenancyDefault)
}
