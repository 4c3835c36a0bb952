// Package census says how things stand: metrics that are worked out from what is there whenever somebody asks for them.
//
//	GET /metrics --> Census.Collect --+--> store: Snapshot        nodes, prices, offerings, utilisation
//	                                  +--> cache: List            pods, conditions
//	                                  +--> telemetry.Waits        since when pods are planned
//	watches --> transitions --> counters of telemetry.KindSeries
//
// Nothing is kept between two questions, so a series ends with its object, without anybody having to delete it, and
// what is not asked for costs nothing. The numbers that grow with the cluster (a series for each pod, for each node and
// resource, for each claim and condition, for each offering) are sent only where telemetry.Objects says Detail; else
// conditions of claims and nodes are counted, with an empty name. That keeps a cluster of 5,000 nodes under 20,000
// series (a test).
//
// Changes of conditions cannot be worked out from what is there; they are counted as the watches show them, on every
// replica.
//
// Before the mirror is complete nothing is said but for how long it has not been. A list that cannot be had is left
// out, with a line in the log: other metrics must not be lost for it.
//
// The package decides nothing and writes nothing. It must not know placement or disruption.
package census
