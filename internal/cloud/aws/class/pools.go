package class

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// poolsOf returns the pools that refer to the class.
func (r *Reconciler) poolsOf(ctx context.Context, class *awsv1.EC2NodeClass) ([]karpv1.NodePool, error) {
	var all karpv1.NodePoolList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the pools of EC2NodeClass %q: %w", class.Name, err)
	}
	var pools []karpv1.NodePool
	for i := range all.Items {
		ref := all.Items[i].Spec.Template.Spec.NodeClassRef
		if ref.Group == awsv1.Group && ref.Kind == awsv1.Kind && ref.Name == class.Name {
			pools = append(pools, *all.Items[i].DeepCopy())
		}
	}
	return pools, nil
}
