// Package wire bounds what objects cost before they are decoded.
//
// Decoding into Go types parses quantities and durations, and a list is decoded as a whole. One stored object with the limit
// 1e-1000000000, which takes for ever to parse, would keep an informer from every other object of its kind; so would one
// with a duration beyond the range of time.Duration. The schema of a definition keeps such objects out, but not those that
// were stored before the schema said so.
//
//	API server --JSON--> Transport: Bound(document) --JSON--> client, informer --> Go types
//	file       --JSON--> Bound(document) -----------------------------------------> Go types
//
// Bound looks at the bytes once. Only a document that has a suspicious text is read as a tree: a quantity that cannot be
// bounded becomes 0, a duration that is too long becomes the longest there is. Each object that had such a quantity gets the
// annotation karpenter-go.github.io/unreadable, in memory only, which names the field: a NodePool with it is not valid, so
// no node is launched from it, and its nodes and claims stay as they are.
//
// The package must not know controllers or the store.
package wire
