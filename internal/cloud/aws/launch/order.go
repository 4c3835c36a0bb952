package launch

import (
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// Order is a claim with everything that is needed to launch for it. What it points to must not be modified.
type Order struct {
	Claim *karpv1.NodeClaim
	// Class is the claim's node class. It is ready and has its status.
	Class *awsv1.EC2NodeClass
	// Types are the types of the class with current offerings.
	Types []cloud.InstanceType
	// Image returns the ID of the image for a type.
	Image func(typeName string) string
	// Resolved returns the results of the class's expressions for a type. It may be nil if the class has none.
	Resolved func(typeName string) instance.Resolved
	// Cluster holds the cluster facts for user data.
	Cluster userdata.Cluster
	// PodsElsewhere means that pods take no addresses of the machine's subnet.
	PodsElsewhere bool
	// OpenReservations lets EC2 start the machines in open capacity reservations that match them, which is EC2's
	// default. Otherwise they use none.
	OpenReservations bool
	// Placement is the placement group of the class, which Types are for. Partition returns the one of several partitions
	// to request. The first is requested if it is nil.
	Placement instance.PlacementGroup
	Partition func(among []int) int
}

// Subnets selects subnets and tracks their free addresses.
type Subnets interface {
	// Choose returns the subnet of the class to launch into in the zone, and reserves the given number of its
	// addresses. It returns false if the class has none there.
	Choose(class *awsv1.EC2NodeClass, zone string, addresses int64) (id string, found bool)
	// ChooseCrowded is Choose for the case that no zone is expected to have enough addresses. It returns false only if
	// EC2 has reported that no address is left.
	ChooseCrowded(class *awsv1.EC2NodeClass, zone string, addresses int64) (id string, found bool)
	// Room returns the most free addresses of a subnet of the class in the zone, and false if EC2's count is not known of
	// each of them.
	Room(class *awsv1.EC2NodeClass, zone string) (addresses int64, known bool)
	// Return releases reserved addresses that were not used.
	Return(id string, addresses int64)
}
