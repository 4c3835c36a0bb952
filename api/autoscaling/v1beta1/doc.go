// Package v1beta1 holds the wire types of the API group autoscaling.x-k8s.io, version v1beta1. A CapacityBuffer keeps
// room for pods that do not exist yet, and a CapacityQuota limits nodes by their labels. The API belongs to SIG Autoscaling and is shared by node autoscalers
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/proposals/buffers.md).
//
//	CapacityBuffer --> shape and number of pods --> nodes with room for them
//
// Alpha: the controller reads CapacityBuffers only with the feature gate CapacityBuffer. The definition is always
// installed.
//
// The package does no I/O, and does not depend on the code that provides the room.
//
// +kubebuilder:object:generate=true
// +groupName=autoscaling.x-k8s.io
package v1beta1
