// Package docs tests the commands and manifests in the pages at the root and in docs/.
//
//	page --> blocks of code, each with a mark above it: what runs it, or why nothing does
//	           |
//	           +-- run: shell      here, in an empty folder, with karpenter on the PATH
//	           +-- run: sandbox    here, in order: docs/sandbox.md starts a control plane and a controller
//	           +-- run: cluster    here, on what that page left running
//	           +-- run by: TestX   by another test, which must exist
//	           +-- part of: KIND PATH  YAML: a field of an object, which an API server must accept (test/chart)
//	           +-- not run: REASON
//
// Links between pages, and targets of make, must exist too. cmd/karpenter tests that flags of karpenter exist, and
// test/chart tests that Helm values exist.
//
// The package contains only tests. It must not depend on what the commands do: a failing command fails the test.
package docs
