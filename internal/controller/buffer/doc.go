// Package buffer keeps room for pods that do not exist yet, as CapacityBuffers ask for it
// (https://github.com/kubernetes/autoscaler/blob/master/cluster-autoscaler/proposals/buffers.md).
//
//	CapacityBuffer, PodTemplate, workload, ResourceQuota --cluster/room--> virtual pods --> cluster.Store
//	newest snapshot --placement.ScheduleVirtual--> which of them have room --> status of the buffer
//	                                                \--> the provision loop is called when some have none
//
// Room is a decision of the engine: virtual pods are placed after all pods that exist (engine/placement), and removals of
// nodes keep their room (engine/disruption). What a buffer asks for is decided by cluster/room. The loop reads the objects,
// and tells what has become of the virtual pods. It launches and removes nothing. It must not depend on any provider.
package buffer
