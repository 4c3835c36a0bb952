package world

import (
	"container/heap"
	"time"

	"k8s.io/utils/clock"
)

// Clock is the virtual clock of a world, with its agenda: the future events, by time and then by the order in which
// they were added. Nothing in a world waits for a timer of the clock: such a call panics.
type Clock struct {
	clock.WithTicker

	now    time.Time
	events events
	count  int
}

// reading is what processes read from the clock of their machine, which may be wrong. Their timers, and the API server's
// clock, are right.
type reading struct {
	*Clock

	ahead time.Duration
}

// Now implements clock.PassiveClock.
func (r *reading) Now() time.Time { return r.now.Add(r.ahead) }

// Since implements clock.PassiveClock.
func (r *reading) Since(t time.Time) time.Duration { return r.Now().Sub(t) }

// Ahead returns how far it is ahead of the API server's clock.
func (r *reading) Ahead() time.Duration { return r.ahead }

type occurrence struct {
	at    time.Time
	order int
	do    func()
}

type events []occurrence

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(occurrence)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time { return c.now }

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.now.Sub(t) }

// in adds an event.
func (c *Clock) in(d time.Duration, do func()) {
	c.count++
	heap.Push(&c.events, occurrence{c.now.Add(max(0, d)), c.count, do})
}

// first returns the time of the next event, zero for none.
func (c *Clock) first() time.Time {
	if len(c.events) == 0 {
		return time.Time{}
	}
	return c.events[0].at
}

// event performs the next event that is due. It returns false if there is none.
func (c *Clock) event() bool {
	if len(c.events) == 0 || c.events[0].at.After(c.now) {
		return false
	}
	heap.Pop(&c.events).(occurrence).do()
	return true
}
