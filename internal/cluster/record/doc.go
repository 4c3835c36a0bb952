// Package record holds pods as records: what a pod has for itself, and a reference to what it shares with the other pods
// of its template.
//
//	*corev1.Pod (trimmed) --Table.Pack--> *Pod --Whole--> *corev1.Pod, equal to the first
//
// A trimmed pod takes 3 to 4 KiB, nearly all of which its siblings repeat. A record takes 112 bytes and those of its
// names. Pods that are not bound, that terminate, or whose times are finer than seconds are not packed: they are few, and
// most of what they hold changes.
//
// A workload that asks for no pods is an Idle: its name is all that is read of it.
//
// Nodes and claims stay objects, but share what they repeat (Table.Share): most texts, amounts and requirements.
//
// What records share is kept for as long as a record refers to it. Like all objects of a cache, records and what Whole
// returns must not be changed.
//
// The package must not know which fields of pods are read, nor where pods come from.
package record
