package cloud

import "context"

// Finding is something that is wrong with an installation, and what to do about it.
type Finding struct {
	// Code is a CamelCase word, for machines; docs/doctor.md lists those of ours.
	Code string `json:"code"`
	// Object is what it is about, as kind/name, kind/namespace/name, or a word.
	Object string `json:"object"`
	// Problem says what is wrong, Fix what would put it right: a command where there is one.
	Problem string `json:"problem"`
	Fix     string `json:"fix"`
}

// Examiner is implemented by providers that can tell what is wrong in their cloud: missing permissions (by dry runs), a
// queue that is not there, subnets without addresses, tags that nobody set. It changes nothing, and returns what it found
// even if it could not look everywhere; what it could not look at is a finding too.
type Examiner interface {
	Examine(ctx context.Context) []Finding
}
