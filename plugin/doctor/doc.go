// Package doctor finds problems of a live installation and their fixes.
//
//	Kubernetes API --Gather--> Facts --Examine--> []cloud.Finding --> text, JSON, exit code
//	                                  ^
//	        cloud.Examiner (a provider's own findings; optional)
//
// Gather reads, and changes nothing: objects by lists, permissions by access reviews, the clock of the API server by
// the Date header of a response, the conversion of older versions by creations in dry-run mode. Anything that the
// doctor has no permission to read is recorded, because the absence of findings must not suggest that an unreadable
// part is healthy. Examine is a function of the facts: a list of small checks, each with its own codes, which run one
// after the other.
//
// Rights is the only table of the permissions that the controller needs. The doctor checks whether they are granted.
// Tests compare the table with the chart's roles and with the actual requests of the controller.
//
// A healthy installation has no findings if the doctor has permission to read all of it: a finding requires action,
// and describes it. Options.Patience is how long operations may take before they count as stuck: launches of claims,
// terminations of nodes, and drains that PodDisruptionBudgets block.
//
// The package must not depend on the engine or any provider: it covers what every installation has.
package doctor
