package launch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

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
	clock clock.Clock
	limit Rate

	mu     sync.Mutex
	rate   float64
	tokens float64
	at     time.Time
}

const (
	minRate    = 0.1 // calls per second, however often EC2 throttles
	recovery   = 40  // successful calls from zero to the full rate
	maxBackOff = 10 * time.Second
)

func newRateLimiter(c clock.Clock, most Rate) *rateLimiter {
	return &rateLimiter{clock: c, limit: most, rate: most.PerSecond, tokens: float64(most.Burst), at: c.Now()}
}

// wait returns when the next call may be sent.
func (g *rateLimiter) wait(ctx context.Context) error {
	for {
		d := g.tryTake()
		if d == 0 {
			return nil
		}
		if err := pause(ctx, g.clock, d); err != nil {
			return err
		}
	}
}

// tryTake takes a token and returns zero, or returns the time until one may be available.
func (g *rateLimiter) tryTake() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.clock.Now()
	g.tokens = min(float64(g.limit.Burst), g.tokens+g.rate*now.Sub(g.at).Seconds())
	g.at = now
	if g.tokens >= 1 {
		g.tokens--
		return 0
	}
	return max(time.Millisecond, time.Duration((1-g.tokens)/g.rate*float64(time.Second)))
}

// succeeded and throttled record the result of a call.
func (g *rateLimiter) succeeded() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rate = min(g.limit.PerSecond, g.rate+g.limit.PerSecond/recovery)
}

func (g *rateLimiter) throttled() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.rate, g.tokens = max(minRate, g.rate/2), 0
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
