// Package label is the algebra of label requirements: it represents the sets of nodes that a pod, a pool, a volume or
// an offering allows, and reports whether two of them have a node in common.
//
// Every operation on labels, with the six operators of node affinity and the pool's Gte and Lte, is an AND of a few
// machine words. The infinitely many values of a label key are divided into finitely many classes that no known
// requirement distinguishes. Such a class is an atom:
//
//	key "cpus", mentioned in   In [4 six]   and   Gt 3
//
//	atom:    "4"   "six"   ..3          4..             other          absent
//	means:   4     six     0, 2, -7     5, 16, 04       seven, ""      no such label
//	         own atoms     integers between the cuts    anything else
//
// Mentions collects the keys, values and bounds of requirements. It creates a Space, an immutable numbering of keys
// and atoms. A Row is, for every key of a space, a set of atoms:
//
//	In [4 six]   = { "4" "six" }                  NotIn [4]    = all but "4": absence is allowed
//	Gt 3         = { "4" 4.. }                    Exists       = all but absent
//	DoesNotExist = { absent }                     contradiction = the empty set
//
// A row is valid only with its space: both operands of an operation must belong to the same *Space. When
// Mentions.Version changes, rows must be encoded again.
//
// The sets have no exceptions. Upstream Karpenter turns an empty intersection into DoesNotExist, so that a
// contradiction fits nodes without the label, and it drops Exists when Exists or a bound is combined with NotIn. Here
// the first stays empty and the second keeps Exists.
//
// The rule "a well-known label that the pool does not mention is unconstrained, a custom label must be defined by the
// pool" is not part of the algebra: it is the initial row of a pool (Template). Likewise, "a node has only its own
// labels" is Labels.
//
// The package must not know pods, pools or nodes, nor which labels are well known or restricted.
package label
