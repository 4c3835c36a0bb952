// Package capture is the document with one decision and all its inputs, so that the decision can be repeated elsewhere.
//
//	simulate --capture ──> Document ──> file ──> simulate -f, explain, web, report, replay
//	controller (SIGUSR1) ────┘
//
// It knows the state's objects and what a provider offers. It must not know where the objects come from, how decisions
// are made, or who reads the file.
package capture
