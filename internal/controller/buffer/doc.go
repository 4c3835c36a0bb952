// Package buffer says for how many pods, and of which shape, CapacityBuffers ask for room
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/proposals/buffers.md).
//
//	CapacityBuffer, PodTemplate, workload, ResourceQuota --cluster/room--> virtual pods --> cluster.Store
//	provision loop --room of each buffer--> status of the buffer
//
// The virtual pods are planned by the provision loop, after all pods that exist, and removals of nodes keep their room
// (engine/disruption). What a buffer asks for is decided by cluster/room. The package reads the objects, and writes the
// status, in which the room is what the provision loop has reported. It must not plan, and must not depend on any provider
// or loop.
package buffer
