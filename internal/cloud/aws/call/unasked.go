package call

// Unasked describes items in a response that the request did not ask for: they do not pass the filters of the request.
// Endpoints that ignore filters return them.
type Unasked struct {
	Service, Operation string
	// Count is the number of items, and Example the ID of one of them.
	Count   int
	Example string
}

// Sieve filters the items of a response, and counts those that were not asked for.
type Sieve struct {
	unasked Unasked
	notify  func(Unasked)
}

// Sieve returns a Sieve for the responses of an operation.
func (c *Caller) Sieve(service, operation string) *Sieve {
	return NewSieve(service, operation, c.Unasked)
}

// NewSieve returns a Sieve that reports the removed items to notify, which may be nil.
func NewSieve(service, operation string, notify func(Unasked)) *Sieve {
	return &Sieve{Unasked{Service: service, Operation: operation}, notify}
}

// Keep returns asked. If it is false, it counts the item with the given ID.
func (s *Sieve) Keep(asked bool, id string) bool {
	if !asked {
		s.unasked.Count++
		s.unasked.Example = id
	}
	return asked
}

// Close reports what was removed.
func (s *Sieve) Close() {
	if s.unasked.Count > 0 && s.notify != nil {
		s.notify(s.unasked)
	}
}
