package launch

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// batcher collects items with the same key until no item was added for the idle time, the maximum time is over, or the
// batch is full. It then processes the batch as a whole.
type batcher[T any] struct {
	clock clock.Clock
	idle  time.Duration
	most  time.Duration
	full  int
	do    func(key string, items []T)
	// observe receives the size of every batch, and how long it was collected. It may be nil.
	observe func(size int, elapsed time.Duration)

	mu   sync.Mutex
	open map[string]*window[T]
}

// window is a batch that is still being collected.
type window[T any] struct {
	items []T
	began time.Time
	last  time.Time
	fill  chan struct{} // closed when the batch is full
}

func newBatcher[T any](c clock.Clock, idle time.Duration, full int, do func(key string, items []T)) *batcher[T] {
	return &batcher[T]{clock: c, idle: idle, most: time.Second, full: full, do: do, open: map[string]*window[T]{}}
}

// add adds an item and returns immediately. do is called in another goroutine.
func (b *batcher[T]) add(key string, item T) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	w := b.open[key]
	if w == nil {
		w = &window[T]{began: now, fill: make(chan struct{})}
		b.open[key] = w
		w.items, w.last = append(w.items, item), now
		go b.await(key, w)
	} else {
		w.items, w.last = append(w.items, item), now
	}
	if len(w.items) == b.full {
		delete(b.open, key)
		close(w.fill)
	}
}

// await waits for the end of a window.
func (b *batcher[T]) await(key string, w *window[T]) {
	for {
		d := b.remaining(key, w)
		if d <= 0 {
			b.run(key, w)
			return
		}
		timer := b.clock.NewTimer(d)
		select {
		case <-timer.C():
		case <-w.fill:
			timer.Stop()
			b.run(key, w)
			return
		}
	}
}

func (b *batcher[T]) run(key string, w *window[T]) {
	if b.observe != nil {
		b.observe(len(w.items), b.clock.Since(w.began))
	}
	b.do(key, w.items)
}

// remaining returns how long the window stays open, and closes it when that time is over.
func (b *batcher[T]) remaining(key string, w *window[T]) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	d := min(w.last.Add(b.idle).Sub(now), w.began.Add(b.most).Sub(now))
	if d <= 0 && b.open[key] == w {
		delete(b.open, key)
	}
	return d
}
