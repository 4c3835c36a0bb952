// Package leading keeps a controller from writing after its Lease has run out. A process can be stopped for longer than
// its Lease holds, by SIGSTOP, a paused virtual machine or a starved node, and go on in the middle of a write loop while
// another process leads. The election notices that only with its next attempt to renew; until then this package refuses
// each write by the time of the last renewal.
//
//	election --Lock--> Guard <--Check-- Transport (Kubernetes), Provider (launches, terminations), middleware of an SDK
//
// The check comes just before the request is sent. A process that is stopped between the check and the request can still
// send that one request: the API server then refuses what is out of date (resource versions, names made from plans).
//
// A process that has never led is not held: what a standby writes does not depend on leadership.
package leading

import (
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Reading is what the clocks of this machine show. The monotonic clock stands still while a Linux system is suspended
// (clock_gettime(2), CLOCK_MONOTONIC), and the wall clock may be set: neither is enough alone.
type Reading struct {
	Wall      time.Time
	Monotonic time.Duration
}

// since is the time since an earlier reading: the longer of what the two clocks say.
func (r Reading) since(earlier Reading) time.Duration {
	return max(r.Wall.Sub(earlier.Wall), r.Monotonic-earlier.Monotonic)
}

// Clocks reads the clocks of this machine.
func Clocks() func() Reading {
	began := time.Now()
	return func() Reading {
		now := time.Now()
		return Reading{Wall: now.Round(0), Monotonic: now.Sub(began)} // Round drops the monotonic part
	}
}

// Guard knows until when this process may write. All methods may be called by several goroutines. A nil Guard allows
// everything.
type Guard struct {
	// Duration is that of the Lease.
	Duration time.Duration
	// Clocks are read before each renewal and each write.
	Clocks func() Reading
	// Lost is called once, when another process holds the Lease that this one held. It may be nil.
	Lost func(holder string)
	// Refused is called for each write that is refused. It may be nil.
	Refused func(what string)

	mu      sync.Mutex
	led     bool
	holder  string // of the Lease, once it is another
	renewed Reading
}

// ExpiredError means that the Lease has run out, or that another process holds it.
type ExpiredError struct {
	// Age is the time since the last renewal, Duration that for which it holds.
	Age, Duration time.Duration
	// Holder is the other process, empty if there is none that is known.
	Holder string
}

func (e *ExpiredError) Error() string {
	if e.Holder != "" {
		return fmt.Sprintf("nothing is written any more: %s leads", e.Holder)
	}
	return fmt.Sprintf("nothing is written: the lease was last renewed %s ago and holds for %s", e.Age.Round(time.Millisecond), e.Duration)
}

// Check says whether this process may write now.
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

// check is Check for a write that is to be counted when it is refused.
func (g *Guard) check(what string) error {
	err := g.Check()
	if err != nil && g.Refused != nil {
		g.Refused(what)
	}
	return err
}

// held notes a renewal that was asked for at a time. The time of the question counts: the Lease may be older than the
// answer, and never is than the question.
func (g *Guard) held(asked Reading) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.led, g.renewed = true, asked
}

// givenBack notes that this process holds the Lease no more.
func (g *Guard) givenBack() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.renewed = Reading{}
}

// seen notes who holds the Lease.
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

// Transport refuses writes to the Kubernetes API while this process may not write. Reads and watches pass.
func (g *Guard) Transport(next http.RoundTripper) http.RoundTripper {
	return transport{g, next}
}

type transport struct {
	guard *Guard
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if writes(request.Method) {
		if err := t.guard.check(request.Method); err != nil {
			if request.Body != nil {
				_ = request.Body.Close() // as a RoundTripper must, also on errors
			}
			return nil, err
		}
	}
	return t.next.RoundTrip(request)
}

// WrappedRoundTripper lets client-go find the transport below.
func (t transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func writes(method string) bool {
	switch method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return true
}
