// Package apitime measures how far the clock of this machine is from that of the API server. Deletion timestamps of pods and
// nodes are times of the API server, and Leases of nodes are renewed by kubelets whose clocks are kept: a controller whose
// clock is minutes ahead would take pods that are just ending for lost.
//
// Each answer of the API server has the header Date, in whole seconds
// (https://www.rfc-editor.org/rfc/rfc9110#field.date). A difference that is not larger than what the answer took, and a second,
// is none.
package apitime

import (
	"net/http"
	"sync"
	"time"
)

const (
	// resolution is that of the header.
	resolution = time.Second
	// slowest is how long an answer may take to be a measurement: watches answer when there is something to tell.
	slowest = 2 * time.Second
)

// Skew is the difference between this machine's clock and that of the API server. It may be used by several goroutines; the
// zero value and nil know of no difference.
type Skew struct {
	// Changed is called when the difference is another, by more than five seconds, than when it was last called. It may be
	// nil.
	Changed func(ahead time.Duration)

	mu    sync.Mutex
	ahead time.Duration
	told  time.Duration
}

// telling is by how much a difference must change to be told.
const telling = 5 * time.Second

// Ahead is by how much this machine's clock is ahead of the API server's, negative if it is behind.
func (s *Skew) Ahead() time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead
}

// Transport measures with the answers to requests.
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

// WrappedRoundTripper lets client-go find the transport below.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// measure takes an answer into account that says what time it is.
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

// difference is by how much a clock is ahead for certain that shows asked before and answered after another showed said, whole
// seconds of which are known.
func difference(asked, answered, said time.Time) time.Duration {
	asked, answered = asked.Round(0), answered.Round(0) // by the wall clock, which is what is wrong
	if behind := said.Sub(answered); behind > 0 {
		return -behind
	}
	if ahead := asked.Sub(said.Add(resolution)); ahead > 0 {
		return ahead
	}
	return 0
}
