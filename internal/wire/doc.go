// Package wire bounds the cost of objects before they are decoded.
//
// Decoding into Go types parses quantities and durations, and a list is decoded as a whole. One stored object with
// the limit 1e-1000000000, which takes practically forever to parse, would block an informer for all objects of its
// kind. So would one with a duration beyond the range of time.Duration. The schema of the definition rejects such
// objects, but not those that were stored before the schema had the rule.
//
//	API server --JSON--> Transport: Bound(document) --JSON--> client, informer --> Go types
//	file       --JSON--> Bound(document) -----------------------------------------> Go types
//
// An object that is nested too deeply is one more case: decoders fail for the whole list that contains it. Its deep
// fields are removed, whatever the depth.
//
// Bound scans the bytes twice. Only a document with a suspicious text is parsed as a tree. The fields that are
// quantities or durations are found from the Go types of all kinds. A quantity that cannot be bounded becomes 0, and a
// duration that is too long becomes the longest duration. Each object with such a quantity or depth gets the annotation
// karpenter-go.github.io/unreadable, in memory only, which names the field. A NodePool with the annotation is not
// valid: no node is launched from it, and its nodes and claims are not changed. The same applies to an EC2NodeClass.
//
// The package must not depend on controllers or the store.
package wire
