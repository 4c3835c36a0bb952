package web

import (
	"context"
	"sync"
	"time"
)

// wanted is how long a job goes on after it was last asked for. An open page asks every second.
const wanted = 10 * time.Second

// job computes a value once, in the background, and is canceled if no request asks for it anymore. compute tells what the
// value is so far, which is not changed after that.
type job[T any] struct {
	compute func(ctx context.Context, tell func(T)) (T, error)

	mu       sync.Mutex
	started  bool
	done     chan struct{}
	cancel   context.CancelFunc
	unwanted *time.Timer
	value    T
	told     bool
	err      error
}

// ask starts the job if it does not run, and waits for it until the context or the patience ends. ready says whether
// there is a value or an error.
func (j *job[T]) ask(ctx context.Context, patience time.Duration) (value T, err error, ready bool) {
	done := j.start()
	timer, still := time.NewTimer(patience), time.NewTicker(wanted/4)
	defer timer.Stop()
	defer still.Stop()
	for {
		select {
		case <-done:
			j.mu.Lock()
			defer j.mu.Unlock()
			return j.value, j.err, true
		case <-ctx.Done():
			return value, nil, false
		case <-timer.C:
			return value, nil, false
		case <-still.C:
			j.want()
		}
	}
}

// want puts off the end of a job that runs.
func (j *job[T]) want() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.unwanted != nil {
		j.unwanted.Reset(wanted)
	}
}

func (j *job[T]) start() <-chan struct{} {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.started {
		if j.unwanted != nil {
			j.unwanted.Reset(wanted)
		}
		return j.done
	}
	ctx, cancel := context.WithCancel(context.Background())
	j.started, j.done, j.cancel, j.unwanted = true, make(chan struct{}), cancel, time.AfterFunc(wanted, cancel)
	go j.run(ctx, j.done)
	return j.done
}

func (j *job[T]) run(ctx context.Context, done chan struct{}) {
	value, err := j.compute(ctx, func(partly T) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.value, j.told = partly, true
	})
	j.mu.Lock()
	defer j.mu.Unlock()
	canceled := ctx.Err() != nil
	j.unwanted.Stop()
	j.cancel()
	j.unwanted = nil
	if canceled && err != nil {
		j.started = false // it may be asked for again
	}
	if j.err = err; err == nil {
		j.value = value
	}
	close(done)
}

// state says whether the job runs, and whether it has ended with an answer. A job that was canceled has done neither.
func (j *job[T]) state() (running, ended bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.started && j.unwanted != nil, j.started && j.unwanted == nil
}

// stop cancels the job.
func (j *job[T]) stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.cancel != nil {
		j.cancel()
	}
}

// soon is how long a page waits for an answer of which a part is known.
const soon = 300 * time.Millisecond

// partly asks a job for a view. A page does not wait for the rest if a part is known.
func partly[T any](r *request, j *job[T]) (value T, err error, ready bool) {
	if value, err, ready = j.ask(r.ctx, min(soon, r.patience)); ready {
		return value, err, ready
	}
	if _, known := j.soFar(); known && r.patience <= patience {
		return value, nil, false
	}
	return j.ask(r.ctx, r.patience)
}

// again has a job that has ended compute once more when it is asked for, from what its value is.
func (j *job[T]) again() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.unwanted == nil {
		j.started = false
	}
}

// soFar returns the value so far; known is false before compute has told one.
func (j *job[T]) soFar() (value T, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.value, j.told
}
