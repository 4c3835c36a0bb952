// Package admission says what an API server would refuse of an object of our kinds, without one: an object goes in,
// refusals come out.
//
//	object --metadata--> --prune--> --default--> --schema, metadata, list types--> --CEL rules--> refusals
//	           |            |                                |                         |
//	           +------------+-------- what is wrong ---------+-------------------------+--> words
//
// The steps, their order and the code behind them are those of the API server (package apiextensions-apiserver), on the
// definitions that api/crds holds, as for an object that is created: rules that compare with an older object do not
// count. What differs:
//
//   - Fields that nobody knows are refused, as kubectl asks the server to (strict validation, since Kubernetes 1.25). Other
//     clients lose them.
//   - An API server does not try its rules where the schema is not met. Here they are tried as far as they can be, so that
//     more than one mistake is told at a time.
//   - A rule about a list or a mapping names the members that break it, which are found by leaving out the others.
//
// Compiling the rules takes some 100 ms and some MB: a Server does it at the first object of a kind, and there is none in
// a controller. arch_test.go keeps it so.
//
// It must not read files or clusters, and does not know what fields mean.
package admission
