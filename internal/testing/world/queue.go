package world

import (
	"container/heap"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queue is a work queue on the virtual clock. Of one item it holds the earliest request.
type queue[T comparable] struct {
	clock *Clock
	// retry and most bound the exponential backoff of one item.
	retry, most time.Duration

	waiting  requests[T]
	due      map[T]request[T] // the request that counts
	count    int
	failures map[T]int
}

type request[T comparable] struct {
	at    time.Time
	order int
	item  T
}

type requests[T comparable] []request[T]

func (r requests[T]) Len() int { return len(r) }
func (r requests[T]) Less(i, j int) bool {
	if !r[i].at.Equal(r[j].at) {
		return r[i].at.Before(r[j].at)
	}
	return r[i].order < r[j].order
}
func (r requests[T]) Swap(i, j int) { r[i], r[j] = r[j], r[i] }
func (r *requests[T]) Push(x any)   { *r = append(*r, x.(request[T])) }
func (r *requests[T]) Pop() any {
	old := *r
	last := old[len(old)-1]
	*r = old[:len(old)-1]
	return last
}

var _ workqueue.TypedRateLimitingInterface[int] = (*queue[int])(nil)

func newQueue[T comparable](clock *Clock, retry, most time.Duration) *queue[T] {
	return &queue[T]{clock: clock, retry: retry, most: most, due: map[T]request[T]{}, failures: map[T]int{}}
}

// next returns when the next item is due, zero for none.
func (q *queue[T]) next() time.Time {
	for len(q.waiting) > 0 {
		if first := q.waiting[0]; q.due[first.item].order == first.order {
			return first.at
		}
		heap.Pop(&q.waiting)
	}
	return time.Time{}
}

// Add implements workqueue.TypedInterface.
func (q *queue[T]) Add(item T) { q.AddAfter(item, 0) }

// AddAfter implements workqueue.TypedDelayingInterface.
func (q *queue[T]) AddAfter(item T, d time.Duration) {
	at := q.clock.now.Add(max(0, d))
	if known, waits := q.due[item]; waits && !known.at.After(at) {
		return
	}
	q.count++
	q.due[item] = request[T]{at, q.count, item}
	heap.Push(&q.waiting, q.due[item])
}

// AddRateLimited implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) AddRateLimited(item T) {
	q.AddAfter(item, min(q.retry<<min(q.failures[item], 20), q.most))
	q.failures[item]++
}

// Forget implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) Forget(item T) { delete(q.failures, item) }

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *queue[T]) NumRequeues(item T) int { return q.failures[item] }

// Get implements workqueue.TypedInterface. It is called when an item is due.
func (q *queue[T]) Get() (item T, shutdown bool) {
	q.next()
	first := heap.Pop(&q.waiting).(request[T])
	delete(q.due, first.item)
	return first.item, false
}

// Len, Done and the rest of workqueue.TypedInterface have no effect: nothing runs concurrently.
func (q *queue[T]) Len() int           { return len(q.due) }
func (q *queue[T]) Done(T)             {}
func (q *queue[T]) ShutDown()          {}
func (q *queue[T]) ShutDownWithDrain() {}
func (q *queue[T]) ShuttingDown() bool { return false }
