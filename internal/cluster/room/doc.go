// Package room says what CapacityBuffers ask for, and which of it a plan gives them
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/proposals/buffers.md).
//
//	CapacityBuffer --Referent--> PodTemplate, workload --ShapeOf--> Shape --Allot(ResourceQuotas)--> number of pods
//	Request        --Pods------> virtual pods, which the engine plans
//	plan of them   --Rooms-----> Room of each buffer --SetStatus--> conditions and numbers of its status
//
// The controller and the commands that read files share it. Only Resolve reads anything, and nothing is written. The
// package must not depend on the store or on any provider.
package room
