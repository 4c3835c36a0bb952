package v1

import (
	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EC2NodeClassStatus is the observed state of the class.
type EC2NodeClassStatus struct {
	// Subnets that match the selector terms, ordered by the number of available IP addresses, highest first.
	// +listType=atomic
	// +optional
	Subnets []Subnet `json:"subnets,omitempty"`
	// SecurityGroups that match the selector terms, ordered by ID.
	// +listType=atomic
	// +optional
	SecurityGroups []SecurityGroup `json:"securityGroups,omitempty"`
	// AMIs that match the selector terms, newest first.
	// +listType=atomic
	// +optional
	AMIs []AMI `json:"amis,omitempty"`
	// CapacityReservations that match the selector terms, ordered by ID.
	// +listType=atomic
	// +optional
	CapacityReservations []CapacityReservation `json:"capacityReservations,omitempty"`
	// InstanceProfile is the name of the instance profile of launched instances.
	// +optional
	InstanceProfile string `json:"instanceProfile,omitempty"`
	// Conditions of the class. Ready is True if instances can be launched.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []status.Condition `json:"conditions,omitempty"`
}

// Subnet is a subnet for launches.
type Subnet struct {
	// ID of the subnet.
	// +required
	ID string `json:"id"`
	// Zone is the name of the availability zone. Other accounts may use the same name for another zone.
	// +required
	Zone string `json:"zone"`
	// ZoneID is the ID of the availability zone, which is the same in all accounts.
	// +optional
	ZoneID string `json:"zoneID,omitempty"`
}

// SecurityGroup is a security group of the instances.
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
	// Deprecated is true if the owner of the image has deprecated it.
	// +optional
	Deprecated bool `json:"deprecated,omitempty"`
	// Name of the image.
	// +optional
	Name string `json:"name,omitempty"`
	// Requirements on the labels of instances that can run the image.
	// +listType=atomic
	// +required
	Requirements []corev1.NodeSelectorRequirement `json:"requirements"`
}

// CapacityReservation is prepaid capacity.
type CapacityReservation struct {
	// AvailabilityZone is the name of the availability zone of the capacity.
	// +required
	AvailabilityZone string `json:"availabilityZone"`
	// EndTime is the end of the reservation. Unset: the reservation lasts until it is canceled.
	// +optional
	EndTime *metav1.Time `json:"endTime,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern:=`^cr-[0-9a-z]+$`
	// +required
	ID string `json:"id"`
	// InstanceMatchCriteria is open if all instances with matching attributes use the reservation, or targeted
	// if only instances that name it do.
	// +kubebuilder:validation:Enum:={open,targeted}
	// +required
	InstanceMatchCriteria string `json:"instanceMatchCriteria"`
	// InstanceType is the instance type of the capacity.
	// +required
	InstanceType string `json:"instanceType"`
	// Interruptible is true if the owner of the reservation can reclaim the capacity.
	// +optional
	Interruptible bool `json:"interruptible,omitempty"`
	// OwnerID is the ID of the account that owns the reservation.
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
