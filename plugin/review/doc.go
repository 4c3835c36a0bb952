// Package review says in a sentence what a change of manifests does to a fleet, and whether that is allowed.
//
//	objects of OLD and NEW --Compare--> []Change --+
//	fleets at rest without and with the change ----+--> Effect --> Verdict, Violations
//
// Compare lists the fields that decide, with the old and the new value: an order, a comment, a label or an annotation
// that no decision reads is not among them. An Effect holds the fields and the two fleets; its verdict is the first
// line of text and comment.
//
// The package must not know how manifests are read, or how fleets are planned: an object is its JSON, a fleet its
// figures.
package review
