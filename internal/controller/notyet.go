package controller

// NotYetError says that something is not to be done yet, though nothing is wrong: asking again a little later helps.
type NotYetError struct{ Reason string }

func (e *NotYetError) Error() string { return "not yet: " + e.Reason }
