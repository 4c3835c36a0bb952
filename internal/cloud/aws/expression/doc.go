// Package expression compiles and evaluates the CEL expressions of an EC2NodeClass, whose results are numbers that
// depend on the instance type: the pods of a node, what is reserved for the kubelet and the system, and sizes of volumes.
//
//	text --Compile--> *Program --Number(Variables)--> int64
//
// The language is that of https://github.com/google/cel-spec, with the functions min and max of two numbers. An expression
// that needs too many steps, or too long, fails, so that a catalog of all types is computed in bounded time.
//
// The package must not know what a result is for, which types exist, or what happens to a class with an expression that
// fails. It has no client and starts no goroutine.
package expression
