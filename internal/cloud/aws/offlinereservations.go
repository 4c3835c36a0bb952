package aws

import (
	"context"
	"fmt"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// CountReservations reads from AWS which capacity reservations the class selects, and how many more instances each has
// room for. Without it, they have none. Errors: *discovery.CallError.
func (s *OfflineCatalog) CountReservations(ctx context.Context, clients Clients,
	class *awsv1.EC2NodeClass) ([]awsv1.CapacityReservation, error) {
	calls := &discovery.Caller{Timeout: 30 * time.Second, Now: time.Now, Observe: func(discovery.Call) {}}
	found, err := discovery.NewReservations(clients.EC2, calls, time.Now).Find(ctx, class)
	if err != nil {
		return nil, fmt.Errorf("counting what is reserved: %w", err)
	}
	s.reserved.Read(countedOf(found), found.AskedAt)
	var list []awsv1.CapacityReservation
	for i := range found.List {
		list = append(list, found.List[i].CapacityReservation)
	}
	return list, nil
}

// Uncounted returns the IDs of the capacity reservations in the class's status of which the room is not known.
func (s *OfflineCatalog) Uncounted(class *awsv1.EC2NodeClass) []string {
	var ids []string
	for i := range class.Status.CapacityReservations {
		if id := class.Status.CapacityReservations[i].ID; !s.reserved.CountedSince(id, time.Time{}) {
			ids = append(ids, id)
		}
	}
	return ids
}
