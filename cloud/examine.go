package cloud

import "context"

// Finding is a problem of an installation, and its fix.
type Finding struct {
	// Code is a CamelCase word for machines. docs/doctor.md lists the codes.
	Code string `json:"code"`
	// Object is the object concerned, as kind/name, kind/namespace/name, or a word.
	Object string `json:"object"`
	// Problem describes the problem. Fix describes its solution, as a command if there is one.
	Problem string `json:"problem"`
	Fix     string `json:"fix"`
}

// Examiner is implemented by providers that can detect problems in their cloud: missing permissions (by dry runs), a
// queue that does not exist, subnets without free addresses, missing tags. Examine changes nothing. It returns all
// findings even if some checks could not be made; a check that could not be made is a finding too.
type Examiner interface {
	Examine(ctx context.Context) []Finding
}
