package discovery

import (
	"context"
	"maps"
	"sync"
	"time"
)

// cache keeps results for a while.
type cache[K comparable, V any] struct {
	now func() time.Time
	// errorsFor is how long an error is kept, 0 if the next caller asks again.
	errorsFor time.Duration

	mu      sync.Mutex
	answers map[K]answer[V]
	asking  map[K]chan struct{} // closed when the request has ended
}

type answer[V any] struct {
	value V
	err   error
	until time.Time
}

func newCache[K comparable, V any](now func() time.Time) *cache[K, V] {
	return &cache[K, V]{now: now, answers: map[K]answer[V]{}, asking: map[K]chan struct{}{}}
}

// value returns the cached result for the key, or the result of ask, which it caches for the lifetime. While one caller
// runs ask, others with the same key wait. If ask fails, and errors are not kept, the next waiting caller runs its own.
func (c *cache[K, V]) value(ctx context.Context, key K, lifetime time.Duration, ask func(context.Context) (V, error)) (V, error) {
	for {
		c.mu.Lock()
		if kept, ok := c.answers[key]; ok && kept.until.After(c.now()) {
			c.mu.Unlock()
			return kept.value, kept.err
		}
		busy := c.asking[key]
		if busy == nil {
			c.asking[key] = make(chan struct{})
			c.mu.Unlock()
			return c.fill(ctx, key, lifetime, ask)
		}
		c.mu.Unlock()
		select {
		case <-busy:
		case <-ctx.Done():
			var none V
			return none, context.Cause(ctx)
		}
	}
}

// fill calls ask and caches its result. The lifetime of a value starts when ask is called, that of an error when it fails.
func (c *cache[K, V]) fill(ctx context.Context, key K, lifetime time.Duration, ask func(context.Context) (V, error)) (V, error) {
	asked := c.now()
	var made answer[V]
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if now := c.now(); made.until.After(now) {
			maps.DeleteFunc(c.answers, func(_ K, a answer[V]) bool { return !a.until.After(now) })
			c.answers[key] = made
		}
		close(c.asking[key])
		delete(c.asking, key)
	}()
	value, err := ask(ctx)
	switch {
	case err == nil:
		made = answer[V]{value, nil, asked.Add(lifetime)}
	case ctx.Err() == nil: // otherwise it is the caller that gave up
		made = answer[V]{value, err, c.now().Add(c.errorsFor)}
	}
	return value, err
}

// keep caches a result that was not obtained by value.
func (c *cache[K, V]) keep(key K, value V, lifetime time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[key] = answer[V]{value, nil, c.now().Add(lifetime)}
}

// kept returns the cached result for the key.
func (c *cache[K, V]) kept(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.answers[key]
	if !ok || !a.until.After(c.now()) {
		return value, false
	}
	return a.value, true
}

// forget removes the results for which drop returns true.
func (c *cache[K, V]) forget(drop func(K, V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.answers, func(key K, a answer[V]) bool { return drop(key, a.value) })
}
