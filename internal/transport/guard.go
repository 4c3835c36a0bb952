package transport

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Reading is the reading of the clocks of this machine. The monotonic clock stands still while a Linux system is
// suspended (clock_gettime(2), CLOCK_MONOTONIC), and the wall clock may be set. Neither is sufficient alone.
type Reading struct {
	Wall      time.Time
	Monotonic time.Duration
}

// since returns the time since an earlier reading: the longer of the intervals by the two clocks.
func (r Reading) since(earlier Reading) time.Duration {
	return max(r.Wall.Sub(earlier.Wall), r.Monotonic-earlier.Monotonic)
}

// Clocks returns a function that reads the clocks of this machine.
func Clocks() func() Reading {
	began := time.Now()
	return func() Reading {
		now := time.Now()
		return Reading{Wall: now.Round(0), Monotonic: now.Sub(began)} // Round drops the monotonic part
	}
}

// Guard records until when this process may write. All methods are safe for concurrent use. A nil Guard allows
// everything.
type Guard struct {
	// Duration is the duration of the Lease.
	Duration time.Duration
	// Clocks is called before each renewal and each write.
	Clocks func() Reading
	// Lost is called once, when another process holds the Lease that this process held. It may be nil.
	Lost func(holder string)
	// Refused is called for each refused write. It may be nil.
	Refused func(what string)

	mu      sync.Mutex
	led     bool
	holder  string // holder of the Lease, once it is another process
	renewed Reading
}

// ExpiredError means that the Lease has expired, or that another process holds it.
type ExpiredError struct {
	// Age is the time since the last renewal. Duration is the duration of the Lease.
	Age, Duration time.Duration
	// Holder is the other process, or empty if it is unknown.
	Holder string
}

// Error returns the age of the Lease, or its other holder.
func (e *ExpiredError) Error() string {
	if e.Holder != "" {
		return fmt.Sprintf("nothing is written: %s leads", e.Holder)
	}
	return fmt.Sprintf("nothing is written: the lease was last renewed %s ago and holds for %s", e.Age.Round(time.Millisecond), e.Duration)
}

// Check returns an error if this process may not write now.
func (g *Guard) Check() error {
	if g == nil {
		return nil
	}
	now := g.Clocks()
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.led {
		return nil
	}
	age := now.since(g.renewed)
	if g.holder == "" && age < g.Duration {
		return nil
	}
	return &ExpiredError{Age: age, Duration: g.Duration, Holder: g.holder}
}

// check is Check, and calls Refused for a refused write.
func (g *Guard) check(what string) error {
	err := g.Check()
	if err != nil && g.Refused != nil {
		g.Refused(what)
	}
	return err
}

// held records a renewal that was requested at the given time. The time of the request counts: the Lease may be older
// than the response, but is never older than the request.
func (g *Guard) held(asked Reading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.led, g.renewed = true, asked
}

// givenBack records that this process has released the Lease.
func (g *Guard) givenBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renewed = Reading{}
}

// seen records the current holder of the Lease.
func (g *Guard) seen(holder, identity string) {
	g.mu.Lock()
	lost := g.led && g.holder == "" && holder != identity && holder != ""
	if lost {
		g.holder = holder
	}
	g.mu.Unlock()
	if lost && g.Lost != nil {
		g.Lost(holder)
	}
}

// Transport returns a transport that refuses writes to the Kubernetes API while this process may not write. Reads and
// watches pass.
func (g *Guard) Transport(next http.RoundTripper) http.RoundTripper {
	return guarding{g, next}
}

type guarding struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t guarding) RoundTrip(request *http.Request) (*http.Response, error) {
	if writes(request.Method) {
		if err := t.guard.check(request.Method); err != nil {
			if request.Body != nil {
				_ = request.Body.Close() // a RoundTripper must close the body, also on errors
			}
			return nil, err
		}
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t guarding) WrappedRoundTripper() http.RoundTripper { return t.next }

func writes(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return true
}
