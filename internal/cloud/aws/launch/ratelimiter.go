package launch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/utils/clock"
)

// Rate is a token bucket: a burst of calls, and a refill rate per second.
type Rate struct {
	Burst     int
	PerSecond float64
}

// PublishedRate is EC2's limit for a new account and calls such as CreateFleet
// (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-throttling.html).
var PublishedRate = Rate{Burst: 50, PerSecond: 5}

// rateLimiter is a rate limiter that keeps calls of one kind below EC2's limit. It starts at the published rate. Each
// throttled call halves the rate, and each successful call restores a part of it. It delays calls and never rejects
// them.
type rateLimiter struct {
	clock  clock.Clock
	limit  rate.Limit // the published rate
	bucket *rate.Limiter
	mu     sync.Mutex // held while the rate is changed
}

const (
	minRate    = 0.1 // calls per second, however often EC2 throttles
	recovery   = 40  // successful calls from zero to the full rate
	maxBackOff = 10 * time.Second
)

func newRateLimiter(c clock.Clock, published Rate) *rateLimiter {
	limit := rate.Limit(published.PerSecond)
	return &rateLimiter{clock: c, limit: limit, bucket: rate.NewLimiter(limit, published.Burst)}
}

// wait returns when the next call may be sent. It reserves no token in advance, so that a lower rate also applies to
// the calls that wait already.
func (g *rateLimiter) wait(ctx context.Context) error {
	for {
		now := g.clock.Now()
		if g.bucket.AllowN(now, 1) {
			return nil
		}
		missing := (1 - g.bucket.TokensAt(now)) / float64(g.bucket.Limit())
		if err := pause(ctx, g.clock, max(time.Millisecond, time.Duration(missing*float64(time.Second)))); err != nil {
			return err
		}
	}
}

// succeeded and throttled record the result of a call.
func (g *rateLimiter) succeeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.bucket.SetLimitAt(g.clock.Now(), min(g.limit, g.bucket.Limit()+g.limit/recovery))
}

func (g *rateLimiter) throttled() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.bucket.SetLimitAt(now, max(minRate, g.bucket.Limit()/2))
	g.bucket.AllowN(now, int(g.bucket.TokensAt(now)))
}

// backOff waits before try number n (from 1) of a call: a random part of 250 ms, doubled each time, at most 10 s.
func backOff(ctx context.Context, c clock.Clock, n int) error {
	most := min(maxBackOff, 250*time.Millisecond<<min(n, 10))
	return pause(ctx, c, most/2+rand.N(most/2))
}

func pause(ctx context.Context, c clock.Clock, d time.Duration) error {
	timer := c.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}
