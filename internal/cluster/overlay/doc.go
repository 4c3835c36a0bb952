// Package overlay applies NodeOverlays to catalogs of instance types.
//
//	NodeOverlays --New--> Set --Resolve(catalogs of all pools)--> Outcome --Apply--> the catalog of a pool
//	                                                                 |
//	                                                                 +--Reports--> conditions, explain
//
// Overlays are ordered by weight, then by name, both descending. The first one that matches an offering sets its price;
// the first one that matches a type sets each of its resources. Two of the same weight that change the same price or
// resource conflict, in whichever pool: the later one has no effect at all. An invalid overlay has no effect and
// conflicts with none.
//
// A requirement is compared with the labels of the pool's template, and with the requirements of the type and of the
// offering. The pool's own requirements do not count (https://karpenter.sh/docs/concepts/nodeoverlays/).
//
// What no overlay changes is shared with the provider's answer: a pool without changes keeps the very same slice, and a
// type without changes keeps its maps and slices.
//
// The package is a function of its input: no clients, no I/O.
package overlay
