package controller

// NotYetError means that an operation is not allowed yet, although nothing is wrong. A retry after a short time
// helps.
type NotYetError struct{ Reason string }

// Error returns the reason.
func (e *NotYetError) Error() string { return "not yet: " + e.Reason }
