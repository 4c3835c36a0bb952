// Package model holds the nouns of the decision core and the immutable Snapshot that every decision reads.
//
//	strings and numbers                 ids, rows, vectors
//	PodSpec, NodeSpec, PoolSpec   -->   Builder   -->   Snapshot{Pools, Nodes, Groups, Daemons, Space, Now}
//	(cluster/convert makes them)        (cluster.Store owns one)        (placement, disruption, explain read it)
//
// Two layers. The Spec types are what the outside says: names, label maps, amounts by resource name. A Builder takes
// them one event at a time, interns what is to be interned and keeps totals per node and groups of identical pending
// pods up to date, so that an event costs O(1) (O(pods of one node) for a node). Builder.Snapshot freezes the state: what did not change
// since the last snapshot is shared with it, what did is copied. Rows (the encoded requirements) are encoded again
// only when the set of mentioned label values changed.
//
// A Snapshot is never written after it was handed out. What-ifs read it through an overlay (Without), never by
// changing or rebuilding it. It carries Now: nothing in the engine asks a clock.
//
// Units: cpu millicores, memory and ephemeral-storage bytes, other resources whole units, money int64 nano-USD (per
// hour where it is a price).
//
// The package must not know plans, placement or Kubernetes types, and does no I/O.
package model
