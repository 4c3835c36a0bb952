package v1

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClassStatus is what has been observed.
type EC2NodeClassStatus struct {
	// Subnets that the selectors found, those with most free addresses first.
	// +listType=atomic
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups that the selectors found, by id.
	// +listType=atomic
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// AMIs that the selectors found, the newest first.
	// +listType=atomic
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
	// CapacityReservations that the selectors found, by id.
	// +listType=atomic
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`
	// InstanceProfile is the name of the profile that machines are launched with.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions: Ready says whether machines can be launched.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// Subnet is one that machines may be launched into.
type Subnet struct {
	// ID of the subnet.
	// +required
	ID string `json:"id"`
	// Zone is the name of its availability zone, which means another zone in another account.
	// +required
	Zone string `json:"zone"`
	// ZoneID is the id of its availability zone, the same in all accounts.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is one that machines are in.
type SecurityGroup struct {
	// ID of the security group.
	// +required
	ID string `json:"id"`
	// Name of the security group.
	// +optional
	Name string `json:"name,omitempty"`
}

// AMI is a machine image.
type AMI struct {
	// ID of the image.
	// +required
	ID string `json:"id"`
	// Deprecated says whether its owner advises against it.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Requirements on the labels of machines that can run the image.
	// +listType=atomic
	// +required
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservation is capacity that is paid for already.
type CapacityReservation struct {
	// AvailabilityZone is the name of the zone that the capacity is in.
	// +required
	AvailabilityZone string `json:"availabilityZone"`
	// EndTime is when the reservation ends. Unset: when somebody cancels it.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern:=`^cr-[0-9a-z]+$`
	// +required
	ID string `json:"id"`
	// InstanceMatchCriteria says how machines come to use it.
	// +kubebuilder:validation:Enum:={open,targeted}
	// +required
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// InstanceType of the capacity.
	// +required
	InstanceType string `json:"instanceType"`
	// Interruptible says whether the owner may take the capacity back.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
	// OwnerID is the account that owns the reservation.
	// +kubebuilder:validation:Pattern:=`^[0-9]{12}$`
	// +required
	OwnerID string `json:"ownerID"`
	// ReservationType is default or capacity-block.
	// +kubebuilder:validation:Enum:={default,capacity-block}
	// +kubebuilder:default:=default
	// +optional
	ReservationType string `json:"reservationType,omitempty"`
	// State is active, or expiring shortly before the end of a capacity block.
	// +kubebuilder:validation:Enum:={active,expiring}
	// +kubebuilder:default:=active
	// +optional
	State string `json:"state,omitempty"`
}
