// Package docs tests what README.md and docs/ tell people to type.
//
//	page --> blocks of code, each with a mark above it: who runs it, or why nobody does
//	           |
//	           +-- run: shell      here, in an empty folder, with karpenter on the PATH
//	           +-- run: sandbox    here, in order: docs/sandbox.md starts a control plane and a controller
//	           +-- run: cluster    here, on what that page left running
//	           +-- run by: TestX   by another test, which must exist
//	           +-- part of: KIND PATH  YAML: a field of an object, which an API server must take (test/chart)
//	           +-- not run: REASON
//
// Links between pages, and targets of make, must exist too. Whether flags of karpenter exist is asked where its commands
// are made, in cmd/karpenter; whether Helm's values do, in test/chart.
//
// The package has tests only. It must not know what the commands do: a command that fails is the finding.
package docs
