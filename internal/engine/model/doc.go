// Package model holds the data types of the decision engine and the immutable Snapshot that every decision reads.
//
//	strings and numbers                 ids, rows, vectors
//	PodSpec, NodeSpec, PoolSpec   -->   Builder   -->   Snapshot{Pools, Nodes, Groups, Daemons, Space, Now}
//	(cluster/convert makes them)        (cluster/state owns one)        (placement, disruption, explain read it)
//
// There are two layers. The Spec types are the input: names, label maps, amounts by resource name. A Builder accepts
// one change at a time, and maintains totals per node, so that a change costs O(1) (O(pods of one node) for a node). It has
// three parts:
//
//   - the interner (interner.go) has what objects share, once: names, values, shapes of pods, marks, instance types;
//   - the Ledger (ledger.go) has what nodes use of the limits of pools and quotas. A Snapshot has a copy, and a planner of
//     launches charges a clone;
//   - the freezer (freezer.go) makes Snapshots: unchanged parts are shared with the last one, changed parts are copied.
//     Rows (the encoded requirements) are encoded again only when the set of mentioned label values changes.
//
// A Snapshot is never written after it is returned. What-ifs read it through an overlay (Without), and neither change
// nor rebuild it. It carries Now: the engine never reads a clock.
//
// Units: cpu in millicores, memory and ephemeral-storage in bytes, other resources in whole units, money as int64
// nano-USD (per hour for a price).
//
// The package must not know plans, placement or Kubernetes types, and does no I/O.
package model
