// Package history says what happened to nodes and pods, from the log of the controller.
//
//	files, streams --Read--> Log: events, in the order of their time, each once
//	                          |
//	                          +--Past--> nodes, commands --> Nodes, Node, Pod, Hours, Commands: answers
//
// A line becomes an event by its message and its keys: those of this project's controller, which docs/log.md lists
// (ours.go), and those of upstream's from 0.32 on, as they are seen in public issues (upstream.go). A line may have what
// kubectl, stern or a log collector puts before it (line.go). Lines about other things are ignored; what is not a line of
// a log is counted.
//
// Money is int64 nano-USD. All that is known comes from the lines: a price is that of the launch, or of the deletion for a
// node that was launched before the log begins.
//
// The package must not read a cluster, a clock or the engine, and must not know flags: the same lines give the same
// answer anywhere.
package history
