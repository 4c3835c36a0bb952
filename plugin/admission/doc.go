// Package admission checks without an API server whether an API server would reject an object of this project's
// kinds. The input is an object, the output is a list of refusals.
//
//	object --metadata--> --prune--> --default--> --schema, metadata, list types--> --CEL rules--> refusals
//	           |            |                                |                         |
//	           +------------+-------- what is wrong ---------+-------------------------+--> words
//
// The steps, their order and their code are those of the API server (package apiextensions-apiserver). They run on
// the definitions in api/crds as for the creation of an object, so transition rules (those that compare with an older
// object) are not evaluated. The differences are:
//
//   - Unknown fields are refused, as with the strict field validation that kubectl requests since Kubernetes 1.25.
//     Other clients drop such fields silently.
//   - An API server does not evaluate its rules when the schema is not met. This package evaluates them as far as
//     possible, so that it reports more than one mistake at a time.
//   - For a rule about a list or a mapping, the refusal names the members that break the rule. They are found by
//     leaving out the other members.
//
// Compiling the rules takes about 100 ms and a few MB. A Server compiles them at the first object of a kind. Packages of
// the controller do not import this package; arch_test.go enforces that.
//
// The package must not read files or clusters, and has no knowledge of what fields mean.
package admission
