package web

import (
	"context"
	"sync"
	"time"
)

// wanted is how long a job goes on after it was last asked for. An open page asks every second.
const wanted = 10 * time.Second

// job computes a value once, in the background, and is canceled if no request asks for it anymore.
type job[T any] struct {
	compute func(ctx context.Context, progress func(done, of int)) (T, error)

	mu       sync.Mutex
	started  bool
	done     chan struct{}
	cancel   context.CancelFunc
	unwanted *time.Timer
	steps    [2]int
	value    T
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
	value, err := j.compute(ctx, func(steps, of int) {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.steps = [2]int{steps, of}
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
	j.value, j.err = value, err
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

// progress returns how far the job is; of is 0 if that is not known.
func (j *job[T]) progress() (steps, of int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.steps[0], j.steps[1]
}
