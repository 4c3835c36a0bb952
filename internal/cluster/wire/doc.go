// Package wire reads pods from the API server without what no code reads: before a pod is decoded, its environments,
// mounts, probes, statuses of containers and managed fields are cut out of its bytes. Those of watches are not copied before.
//
//	watch --frame--> WatchEvent --Raw--> cut --> v1.Pod.Unmarshal --> convert.Trim
//
// Invariant: a pod that was cut is trimmed to the same pod as the whole one (TestCut). What is not a pod in protobuf is
// decoded as always.
//
// The package must not know what is done with pods.
package wire
