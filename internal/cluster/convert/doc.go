// Package convert turns Kubernetes and cloud objects into the specs of model, and sets of specs into bytes and back.
//
//	Pod --------> model.PodSpec, Disposition     is it ours to place, does it use a node, or neither
//	Node, NodeClaim -> model.NodeSpec            one machine, whatever stage it is at
//	NodePool ---> model.PoolSpec                 what may be bought, or why nothing may
//	DaemonSet --> model.DaemonSpec               what will come to every node that it admits
//	CSINode ----> amounts of a model.NodeSpec    how many volumes of each driver the node holds
//	[]cloud.InstanceType -> *model.Catalogue     float USD become nano-USD, labels become requirements
//	Capture <---> []byte                         a whole world, for replay
//
// A thing that cannot be used is a value, not an error: a Rejection names the field, what was wrong and what would be
// right, and tells "wrong" from "right, but not supported yet". The caller sets the one object aside and goes on.
//
// What a pod means depends on more than its manifest: on its claims, volumes and storage classes (volume.go), on the
// labels of namespaces (between.go), on the Services and controllers that select it (defaultspread.go). Around looks
// these up; who holds the objects converts a pod again when one that it asked for changes.
//
// What a pod may ask for and this engine cannot honour yet is refused in constraint.go, one small function each: such
// a pod stays pending with an event that says why.
//
// Units are the engine's: cpu in millicores, the rest in bytes or whole units. What is asked for is rounded up, what
// is there is rounded down. Times are UTC. Equal objects give equal specs: lists made from maps are sorted.
//
// The package is pure: no client, no clock, no I/O. It must not know the store, plans or placement.
package convert
