package call

// Unasked is what an answer contained although it was not asked for: things that do not pass the filters of the request, as an
// endpoint answers that ignores them.
type Unasked struct {
	Service, Operation string
	// Count is how many there were, Example the id of one of them.
	Count   int
	Example string
}

// Sieve keeps what was asked for of an answer, and counts the rest.
type Sieve struct {
	unasked Unasked
	tell    func(Unasked)
}

// Sieve for the answer of an operation.
func (c *Caller) Sieve(service, operation string) *Sieve {
	return NewSieve(service, operation, c.Unasked)
}

// NewSieve tells what it has left out by tell, which may be nil.
func NewSieve(service, operation string, tell func(Unasked)) *Sieve {
	return &Sieve{Unasked{Service: service, Operation: operation}, tell}
}

// Keep returns asked, and counts the thing of that id if it is false.
func (s *Sieve) Keep(asked bool, id string) bool {
	if !asked {
		s.unasked.Count++
		s.unasked.Example = id
	}
	return asked
}

// Close tells what was left out.
func (s *Sieve) Close() {
	if s.unasked.Count > 0 && s.tell != nil {
		s.tell(s.unasked)
	}
}
