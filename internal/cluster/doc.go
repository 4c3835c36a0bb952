// Package cluster mirrors the API, adds what we wrote ourselves and the watch has not shown yet, and makes Snapshots.
//
//	informers --Saw, Gone--> mirror --+
//	executor --Wrote, Deleted--> own writes --+--> convert --> model.Builder --> Snapshot(now)
//	provider --Catalogue (per pool, a goroutine each)--+                     \-> Subscribe: "look again"
//
// One mutex guards all of it. An event costs O(1): it changes one entry, converts one object (a node together with its
// claim) and tells the builder. Nothing is rebuilt.
//
// What a pod means depends on its claims, volumes, storage classes and on labels of namespaces; a pod is converted again
// when one of those that it asked for changes (around.go). How many volumes a node holds is in its CSINode. Services and
// controllers are watched only where the cluster has default topology spread. PodDisruptionBudgets are told as they are:
// which pods they select is asked of the snapshot.
//
// An object's present state is the newest of what the watch showed and what we wrote. An own write is kept until the
// watch shows that UID at that version or later, or its deletion. When Options.WriteVisible has passed, or a watch
// broke (after which it may relist and skip events), a live read decides: a claim that was created and deleted inside
// one gap of the watch must not stay for ever. Versions of resources are compared as apimachinery's resourceversion
// does; where they cannot be compared the watch wins.
//
// There is no "unsynced" state beyond the first list of the informers. An object that makes no sense (a claim whose
// requirements cannot be read, a pod that asks for a restricted label, a second node with the same provider id) is set
// aside, named in Aside and counted; everything else goes on. A claim that is not launched is a node of the snapshot,
// never a reason to wait.
//
// Nodes and claims meet by provider id (machine.go). The mirror holds the informers' own objects; nobody may change
// an object that a lookup returned.
//
// The package must not know placement, disruption or controllers.
package cluster
