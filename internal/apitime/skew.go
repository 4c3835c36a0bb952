// Package apitime measures the difference between the clock of this machine and that of the API server. Deletion
// timestamps of pods and nodes are times of the API server, and kubelets with synchronized clocks renew the Leases of
// nodes. A controller with a clock that is minutes ahead would treat pods that are terminating normally as lost.
//
// Each response of the API server has the header Date, in whole seconds
// (https://www.rfc-editor.org/rfc/rfc9110#field.date). A difference that is at most the duration of the request plus
// one second counts as no difference.
package apitime

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
	told  time.Duration
}

// telling is the change of the difference from which on Changed is called.
const telling = 5 * time.Second

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
func (s *Skew) Transport(next http.RoundTripper) http.RoundTripper { return transport{s, next} }

type transport struct {
	skew *Skew
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
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
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// measure evaluates a response that carries a time.
func (s *Skew) measure(asked, answered, said time.Time) {
	if answered.Sub(asked) > slowest {
		return
	}
	ahead := difference(asked, answered, said)
	s.mu.Lock()
	s.ahead = ahead
	tell := (ahead - s.told).Abs() > telling
	if tell {
		s.told = ahead
	}
	s.mu.Unlock()
	if tell && s.Changed != nil {
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
