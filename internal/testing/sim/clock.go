package sim

import (
	"container/heap"
	"time"
)

// epoch is the start time of every history.
var epoch = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// agenda holds future events, by time and then by the order in which they were added.
type agenda struct {
	now    time.Time
	events events
	count  int
}

type event struct {
	at    time.Time
	order int
	do    func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	if !e[i].at.Equal(e[j].at) {
		return e[i].at.Before(e[j].at)
	}
	return e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	last := old[len(old)-1]
	*e = old[:len(old)-1]
	return last
}

// after adds an event.
func (a *agenda) after(d time.Duration, do func()) {
	a.count++
	heap.Push(&a.events, event{a.now.Add(d), a.count, do})
}

// next runs the next event. It returns false if there is none until the given time.
func (a *agenda) next(until time.Time) bool {
	if len(a.events) == 0 || a.events[0].at.After(until) {
		a.now = until
		return false
	}
	e := heap.Pop(&a.events).(event)
	a.now = e.at
	e.do()
	return true
}
