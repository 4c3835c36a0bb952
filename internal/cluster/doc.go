// Package cluster mirrors the API, adds this controller's own writes that the watch has not shown yet, and creates
// Snapshots.
//
//	informers --Saw, Gone--> mirror --+
//	executor --Wrote, Deleted--> own writes --+--> convert --> model.Builder --> Snapshot(now)
//	provider --Catalog (per pool, a goroutine each)--+                     \-> Subscribe: signals changes
//
// One mutex guards all state. An event costs O(1): it changes one entry, converts one object (a node together with
// its claim) and updates the builder. Nothing is rebuilt.
//
// The conversion of a pod depends on its claims, volumes, storage classes and on labels of namespaces; a pod is
// converted again when one of the objects that it looked up changes (dependencies.go). The CSINode contains how many
// volumes a node can attach. Services and controllers are watched only if the cluster has default topology spread.
// PodDisruptionBudgets are passed on unchanged: the snapshot evaluates which pods they select.
//
// The current state of an object is the newest of the watched state and this controller's own writes. An own write is
// kept until the watch shows that UID at that version or later, or its deletion. When Options.WriteVisible has
// passed, or a watch broke (after which it may relist and skip events), a live read decides: a claim that was created
// and deleted inside one gap of the watch must not be kept forever. Resource versions are compared by apimachinery's
// resourceversion package; where they cannot be compared the watch takes precedence.
//
// There is no "unsynced" state after the first list of the informers. An invalid object (a claim with invalid
// requirements, a pod that requires a restricted label, a second node with the same provider ID) is ignored, listed
// in Rejected and counted; all other objects are processed. A claim that is not launched is a node of the snapshot, and
// no reason to wait.
//
// Nodes and claims are matched by provider ID (machine.go). The mirror holds the informers' own objects; callers must
// not change an object that a lookup returned.
//
// The package must not know placement, disruption or controllers.
package cluster
