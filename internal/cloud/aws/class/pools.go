package class

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// warnedFor is the interval between warnings to a pool: how long the API server keeps events by default.
const warnedFor = time.Hour

// warnPools emits warnings for the pools of a class whose reservation terms are not supported: their machines cost
// money in addition to the reservation.
func (r *Reconciler) warnPools(ctx context.Context, class *awsv1.EC2NodeClass) error {
	reservations := class.NotYetActedOnAt("spec.capacityReservationSelectorTerms")
	if reservations == "" || r.Warn == nil {
		return nil
	}
	pools, err := r.poolsOf(ctx, class)
	if err != nil {
		return err
	}
	for i := range pools {
		if r.memory.warn(class.UID, pools[i].UID, r.Now()) {
			r.Warn(&pools[i], awsv1.ReasonNotYetActedOn, fmt.Sprintf("EC2NodeClass %q: %s", class.Name, reservations))
		}
	}
	return nil
}

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
