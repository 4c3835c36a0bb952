// Package label is the algebra of label requirements: which nodes may a pod, a pool, a volume or an offering mean, and
// do two of them have a node in common?
//
// Every question about labels, the six operators of node affinity and the pool's Gte and Lte included, becomes AND on a
// few machine words. A label key's possible values, of which there are infinitely many, fall into finitely many classes
// that no requirement in sight tells apart. Such a class is an atom:
//
//	key "cpus", mentioned in   In [4 six]   and   Gt 3
//
//	atom:    "4"   "six"   ..3          4..             other          absent
//	means:   4     six     0, 2, -7     5, 16, 04       seven, ""      no such label
//	         own atoms     integers between the cuts    anything else
//
// Mentions collects what requirements mention, and makes of it a Space, an immutable numbering of keys and atoms. A Row
// is, for every key of a space, a set of atoms:
//
//	In [4 six]   = { "4" "six" }                  NotIn [4]    = all but "4": absence is allowed
//	Gt 3         = { "4" 4.. }                    Exists       = all but absent
//	DoesNotExist = { absent }                     contradiction = the empty set
//
// A row is only as good as its space: the same pointer must have made both operands. When Mentions.Version changes, rows
// are to be encoded again.
//
// These are clean sets, with no exceptions. Upstream Karpenter lets an empty intersection turn into DoesNotExist, so that
// a contradiction fits nodes without the label, and forgets that a label must exist when Exists or a bound meets NotIn;
// here the first stays empty and the second keeps its Exists.
//
// "A well-known label that the pool does not mention is unconstrained, a custom label must be defined by the pool" is no
// rule of the algebra: it is the row that a pool starts from (Template), as "a node has just its labels" is Labels.
//
// The package must not know pods, pools or nodes, nor which labels are well known or restricted.
package label
