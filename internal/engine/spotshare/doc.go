// Package spotshare limits the part of a pool's spot capacity that one type in one zone may have (PoolSpec.MaxSpotShare).
// Clouds reclaim spot machines by type and zone, so this limits the loss in one wave of interruptions.
//
// Representation: by (type, zone), the cpu of the existing nodes and of all that may become one; and the least cpu of
// all of them together. A claim may become any of its types in any of its zones, so it counts for each. If every claim
// listed everything, the second would exceed the limit. Hence a bin is launched in one slot: one zone, and the types
// whose number leaves the same remainder. A claim that may also become something other than spot, created before there
// was a share, counts for each and adds nothing to the whole. The number of slots is sufficient for the share, and each
// has types of all sizes and families.
//
// Invariant: whatever the provider selects, a type in a zone has one node, or no more than its share of the pool's
// capacity; and no node is larger than that share of the pool's final capacity, unless nothing smaller holds its
// content. Bins are examined one by one, and what was within its share remains so, because the whole only grows. Cost:
// the slots of a bin times its types.
//
// The package knows the types of one pool, and claims as options of a plan. It must not know pods, bins, or how a
// placement chooses them.
package spotshare
