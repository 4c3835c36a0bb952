package transport

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Pace slows the requests down while the API server refuses some with 429, and only then: it halves their rate, at most once a
// second, and raises it again by a thirtieth of Ceiling each second until it is reached. Watches and evictions, whose 429 is
// that of a PodDisruptionBudget, are left alone.
type Pace struct {
	// Ceiling is the rate at which the pace ends, in requests per second.
	Ceiling float64

	// turn is held by the request that waits for its time. The others queue for it in the order in which they came, so that the
	// rate of now applies to all of them, and one that is canceled leaves no gap.
	turn  chan struct{}
	mutex sync.Mutex
	// rate is 0 while nothing is refused, else requests per second. next is when the next one may be sent.
	rate         float64
	next         time.Time
	cut, raised  time.Time
	second       time.Time
	count, prior float64 // requests of this second, and of the one before
}

const (
	// slowestPace is the least rate, in requests per second.
	slowestPace = 5
	// paceSteps is how many seconds it takes from nothing to the ceiling.
	paceSteps = 30
)

// Transport returns a transport that waits before requests as the pace says.
func (p *Pace) Transport(next http.RoundTripper) http.RoundTripper {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.turn == nil {
		p.turn = make(chan struct{}, 1)
	}
	return pacing{p, next}
}

type pacing struct {
	pace *Pace
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t pacing) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Has("watch") || strings.HasSuffix(request.URL.Path, "/eviction") {
		return t.next.RoundTrip(request)
	}
	if err := t.pace.wait(request.Context()); err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // a RoundTripper must close the body, also on errors
		}
		return nil, err
	}
	response, err := t.next.RoundTrip(request)
	if err == nil {
		t.pace.saw(time.Now(), response.StatusCode == http.StatusTooManyRequests)
	}
	return response, err
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (t pacing) WrappedRoundTripper() http.RoundTripper { return t.next }

// wait returns when the request may be sent, or with the error of the context when that ends before.
func (p *Pace) wait(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		defer func() { <-p.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pause := p.reserve(time.Now())
	if pause <= 0 {
		return nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reserve returns how long the request whose turn it is must wait: 1/slowestPace seconds at most.
func (p *Pace) reserve(now time.Time) time.Duration {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if passed := now.Sub(p.second); passed >= time.Second {
		p.prior = p.count
		if passed >= 2*time.Second {
			p.prior = 0
		}
		p.second, p.count = now, 0
	}
	p.count++
	if p.rate == 0 {
		return 0
	}
	at := now
	if p.next.After(now) {
		at = p.next
	}
	p.next = at.Add(time.Duration(float64(time.Second) / p.rate))
	return at.Sub(now)
}

// saw records the answer to a request.
func (p *Pace) saw(now time.Time, refused bool) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case refused && now.Sub(p.cut) >= time.Second:
		from := p.rate
		if from == 0 {
			from = min(p.Ceiling, max(p.prior, p.count))
		}
		p.rate, p.cut, p.raised = max(slowestPace, from/2), now, now
	case refused, p.rate == 0:
	default:
		p.rate += p.Ceiling / paceSteps * min(now.Sub(p.raised), time.Second).Seconds()
		if p.raised = now; p.rate >= p.Ceiling {
			p.rate, p.next = 0, time.Time{}
		}
	}
}
