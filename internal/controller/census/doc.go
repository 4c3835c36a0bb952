// Package census exports metrics that are computed from the current state at each scrape.
//
//	GET /metrics --> Census.Collect --+--> store: Snapshot        nodes, prices, offerings, utilization
//	                                  +--> cache: List            pods, conditions
//	                                  +--> telemetry.Waits        since when pods are planned
//	watches --> transitions --> counters of telemetry.KindSeries
//
// No state is kept between scrapes, so a series ends with its object without explicit deletion, and nothing is
// computed without a scrape. Series that grow with the cluster (per pod, per node and resource, per claim and
// condition, per offering) are sent only if telemetry.Objects has Detail. Otherwise, conditions of claims and nodes
// are counted, with an empty name. That keeps a cluster of 5,000 nodes below 20,000 series (a test verifies it).
//
// Changes of conditions cannot be computed from the current state. They are counted from the watches, on every
// replica.
//
// Before the mirror is complete, the only metric is how long it has been incomplete. A list that cannot be read is
// left out, with a line in the log, so that other metrics are not lost.
//
// The package makes no decisions and writes nothing. It must not depend on placement or disruption.
package census
