// Package workload generates the inputs of the engine's benchmarks, writes them as a folder of manifests, and reads
// such a folder.
//
//	Named("diverse-5k", seed) -> Set -> Write(folder) -> kubectl karpenter simulate -f folder
//	                                          |
//	                                          +--> Read(folder) -> World, for arrivals and fleets
//
// A workload is a name and a seed. The bytes depend on nothing else, neither on the machine nor on the version of
// Go. Random numbers come from a splitmix64 implementation of this package, floating point operations are written so
// that no compiler fuses them, and objects are JSON with sorted keys. A test compares the sha256 of every file of
// some small workloads.
//
// A folder contains:
//
//	instance-types.json   the catalog; prices in USD per hour
//	nodepools.json        List of karpenter.sh/v1 NodePools
//	pods.json             List of pending Pods, one a line
//	nodes.json            List of Nodes          } workloads with existing nodes only
//	bound-pods.json       List of bound Pods     }
//	meta.json             name, seed, counts, labels that the provider gives to types
//
// Kinds of workload, N pods (or nodes, for cluster) each:
//
//	inflate-N             one Deployment without any constraint
//	diverse-N             five equal classes: plain, spread over zones, spread over hosts, affine to a zone, one per host
//	heterogeneous-N       500 shapes with selectors, affinities and tolerations, ten pools with weights, taints, limits
//	spread-N              Deployments of 50, spread over zones and hosts
//	antiaffinity-N        Deployments of 40, one pod per host
//	cluster-N             N nodes at half use; with -pending-M, M pending pods as well
//	crowded-N             the same with twice as many pods a node
//	fill-N                N pods of 500 shapes for N/10 existing nodes, which have room for most of them
//	everyday-N            N on-demand nodes at half use, 2 to 6 Deployments without any constraint, a budget of 10%
//
// N is a number, or thousands with a k. The package does not depend on the engine.
package workload
