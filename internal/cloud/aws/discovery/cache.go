package discovery

import (
	"context"
	"maps"
	"sync"
	"time"
)

// cache keeps answers for a while. Errors are not kept.
type cache[K comparable, V any] struct {
	now func() time.Time

	mu      sync.Mutex
	answers map[K]answer[V]
	asking  map[K]chan struct{} // closed when the question is answered
}

type answer[V any] struct {
	value V
	until time.Time
}

func newCache[K comparable, V any](now func() time.Time) *cache[K, V] {
	return &cache[K, V]{now: now, answers: map[K]answer[V]{}, asking: map[K]chan struct{}{}}
}

// value is the answer that is kept for the key, or else that of ask, which is kept for the lifetime. While one caller
// asks, others with the same key wait; if it gets an error, the next one asks itself.
func (c *cache[K, V]) value(ctx context.Context, key K, lifetime time.Duration, ask func(context.Context) (V, error)) (V, error) {
	for {
		c.mu.Lock()
		if kept, ok := c.answers[key]; ok && kept.until.After(c.now()) {
			c.mu.Unlock()
			return kept.value, nil
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

// fill asks, and keeps the answer from the moment on at which it was asked for.
func (c *cache[K, V]) fill(ctx context.Context, key K, lifetime time.Duration, ask func(context.Context) (V, error)) (V, error) {
	asked, answered := c.now(), false
	var value V
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if answered {
			now := c.now()
			maps.DeleteFunc(c.answers, func(_ K, a answer[V]) bool { return !a.until.After(now) })
			c.answers[key] = answer[V]{value, asked.Add(lifetime)}
		}
		close(c.asking[key])
		delete(c.asking, key)
	}()
	value, err := ask(ctx)
	answered = err == nil
	return value, err
}

// keep has an answer kept that was not asked for by value.
func (c *cache[K, V]) keep(key K, value V, lifetime time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answers[key] = answer[V]{value, c.now().Add(lifetime)}
}

// kept is the answer that is kept for the key.
func (c *cache[K, V]) kept(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, ok := c.answers[key]
	if !ok || !a.until.After(c.now()) {
		return value, false
	}
	return a.value, true
}

// forget drops the answers for which drop says so.
func (c *cache[K, V]) forget(drop func(K, V) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	maps.DeleteFunc(c.answers, func(key K, a answer[V]) bool { return drop(key, a.value) })
}
