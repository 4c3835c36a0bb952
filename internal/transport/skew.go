package transport

import (
	"net/http"
	"sync"
	"time"
)

const (
	// resolution is the resolution of the header.
	resolution = time.Second
	// slowest is the longest duration of a request that is used as a measurement. Watches respond only when there is
	// an event.
	slowest = 2 * time.Second
)

// Skew is the difference between this machine's clock and that of the API server. It is safe for concurrent use. The
// zero value and nil report no difference.
type Skew struct {
	// Changed is called when the difference has changed by more than five seconds since the last call. It may be nil.
	Changed func(ahead time.Duration)

	mu    sync.Mutex
	ahead time.Duration
	// reported is the difference of the last call of Changed.
	reported time.Duration
}

// notable is the change of the difference from which on Changed is called.
const notable = 5 * time.Second

// Ahead returns how far this machine's clock is ahead of the API server's. It is negative if the clock is behind.
func (s *Skew) Ahead() time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead
}

// Transport returns a transport that measures with the responses to requests.
func (s *Skew) Transport(next http.RoundTripper) http.RoundTripper { return measuring{s, next} }

type measuring struct {
	skew *Skew
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t measuring) RoundTrip(request *http.Request) (*http.Response, error) {
	asked := time.Now()
	response, err := t.next.RoundTrip(request)
	if err == nil {
		if at, bad := http.ParseTime(response.Header.Get("Date")); bad == nil {
			t.skew.measure(asked, time.Now(), at)
		}
	}
	return response, err
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t measuring) WrappedRoundTripper() http.RoundTripper { return t.next }

// measure evaluates a response that carries a time.
func (s *Skew) measure(asked, answered, said time.Time) {
	if answered.Sub(asked) > slowest {
		return
	}
	ahead := difference(asked, answered, said)
	s.mu.Lock()
	s.ahead = ahead
	notify := (ahead - s.reported).Abs() > notable
	if notify {
		s.reported = ahead
	}
	s.mu.Unlock()
	if notify && s.Changed != nil {
		s.Changed(ahead)
	}
}

// difference returns the minimum by which a clock is ahead that showed asked before, and answered after, another
// clock showed said, which is known in whole seconds.
func difference(asked, answered, said time.Time) time.Duration {
	asked, answered = asked.Round(0), answered.Round(0) // use the wall clock, because it is the one that may be wrong
	if behind := said.Sub(answered); behind > 0 {
		return -behind
	}
	if ahead := asked.Sub(said.Add(resolution)); ahead > 0 {
		return ahead
	}
	return 0
}
