package launch

import (
	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// Order is a claim with all that is needed to buy for it. Nobody changes what it points to.
type Order struct {
	Claim *karpv1.NodeClaim
	// Class of the claim, ready, with its status.
	Class *awsv1.EC2NodeClass
	// Types that the class sells, with today's offerings.
	Types []cloud.InstanceType
	// Image is the id of the image that a type runs.
	Image func(typeName string) string
	// Cluster is what the machines are told of it.
	Cluster userdata.Cluster
	// OpenReservations lets EC2 start the machines in open capacity reservations that match them, which it does by default.
	// Else they ask for none.
	OpenReservations bool
}

// Subnets say where addresses are taken from.
type Subnets interface {
	// Choose is the subnet of the class in the zone to launch into, and sets so many of its addresses aside; false if
	// the class has none there.
	Choose(class *awsv1.EC2NodeClass, zone string, addresses int64) (id string, found bool)
	// ChooseCrowded is Choose for when no zone has room for more, as far as is foreseen: false only if EC2 said that no address
	// is left.
	ChooseCrowded(class *awsv1.EC2NodeClass, zone string, addresses int64) (id string, found bool)
	// Return gives back addresses that were set aside and not used.
	Return(id string, addresses int64)
}
