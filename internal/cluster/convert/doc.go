// Package convert turns Kubernetes and cloud objects into the specs of package model, and sets of specs into bytes
// and back.
//
//	Pod --------> model.PodSpec, Disposition     to be placed, using a node, or neither
//	Node, NodeClaim -> model.NodeSpec            one machine, in any stage
//	NodePool ---> model.PoolSpec                 the nodes that may be launched, or why none may
//	DaemonSet --> model.DaemonSpec               the pod that it creates on every node that it admits
//	CSINode ----> amounts of a model.NodeSpec    how many volumes of each driver the node can attach
//	[]cloud.InstanceType -> *model.Catalog     float USD become nano-USD, labels become requirements
//	Capture <---> []byte                         the complete input, for replay
//
// An object that cannot be used is a value, not an error: a Rejection contains the field, the problem and the
// correction, and distinguishes "invalid" from "valid, but not supported yet". The caller ignores this one object and
// continues.
//
// The conversion of a pod depends on more than its manifest: on its claims, volumes and storage classes (volume.go),
// on the labels of namespaces (between.go), on the Services and controllers that select it (defaultspread.go). Around
// looks these up. The owner of the objects converts a pod again when an object that it looked up changes.
//
// Constraints of pods that the engine does not support yet are rejected in constraint.go, in one small function each:
// such a pod stays pending with an event that states the reason.
//
// Units are those of the engine: cpu in millicores, other resources in bytes or whole units. Requests are rounded up,
// capacity is rounded down. Times are UTC. Equal objects give equal specs: lists made from maps are sorted.
//
// The package is pure: no client, no clock, no I/O. It must not know the store, plans or placement.
package convert
