// Package doctor finds out what is wrong with a live installation, and what would put it right.
//
//	Kubernetes API --Gather--> Facts --Examine--> []cloud.Finding --> text, JSON, exit code
//	                                  ^
//	        cloud.Examiner (a provider's own findings; optional)
//
// Gather reads, and changes nothing: objects by lists, permissions by access reviews, the clock of the API server from the
// Date of an answer, whether older versions are converted by creations that are tried only (dry run). What it may not read is
// noted, because a doctor who cannot look must not say that all is well.
// Examine is a function of the facts: a list of small checks, each with codes of its own, tried one after the other.
//
// Rights is the one table of what the controller asks of the API server. The doctor asks whether it may; tests hold the
// chart's roles and what the controller really asked against it.
//
// Nothing is found in an installation that works, by a doctor who may look at all of it: a finding is a reason to act, with
// the words what to do. How long things may take before they count as stuck is Options.Patience: claims on their way, nodes
// that go, and the drains that PodDisruptionBudgets hold up.
//
// The package must not know the engine, nor any provider: it knows what every installation has.
package doctor
