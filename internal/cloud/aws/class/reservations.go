package class

import (
	"context"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// discoverReservations writes the capacity reservations that the class selects.
func (r *Reconciler) discoverReservations(ctx context.Context, class *awsv1.EC2NodeClass, show discovery.Show) error {
	if r.IgnoreReservations {
		show.WithoutReservations()
		return nil
	}
	show.ExpectReservations()
	found, err := r.Sources.Reservations.Find(ctx, class)
	if err != nil {
		show.Unanswered(awsv1.ConditionCapacityReservationsReady, err)
		return err
	}
	show.Reservations(found)
	if r.Counted != nil {
		r.Counted(found)
	}
	return nil
}

// again returns when the class is to be reconciled again: after a pause, or when a capacity block begins to expire or a
// reservation ends, if that is earlier.
func (r *Reconciler) again(class *awsv1.EC2NodeClass) time.Duration {
	wait := pause
	for i := range class.Status.CapacityReservations {
		one := &class.Status.CapacityReservations[i]
		ends := []time.Time{one.ExpiringAt()}
		if one.EndTime != nil {
			ends = append(ends, one.EndTime.Time)
		}
		for _, at := range ends {
			if left := at.Sub(r.Now()); left > 0 {
				wait = min(wait, left+time.Second) // results are as old as a second
			}
		}
	}
	return wait
}
