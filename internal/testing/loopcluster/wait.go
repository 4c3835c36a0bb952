package loopcluster

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// PodsOf returns the pending pods with the names.
func PodsOf(snap *model.Snapshot, names ...string) []*model.Pod {
	var pods []*model.Pod
	for _, g := range snap.Groups {
		for _, p := range g.Pods {
			if slices.Contains(names, p.Name) {
				pods = append(pods, p)
			}
		}
	}
	return pods
}

// Expect compares the actions since the last call with the expected ones, one per line, sorted.
func Expect(t *testing.T, c *Cluster, text string) {
	t.Helper()
	if diff := cmp.Diff(text, c.Took()); diff != "" {
		t.Errorf("actions (-want +got):\n%s", diff)
	}
}

// Emitted returns the events that no test has read.
func Emitted(sink *events.FakeRecorder) []string {
	var all []string
	for {
		select {
		case e := <-sink.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// Started runs a loop and returns a function that waits until the loop sleeps on the expected number of timers.
func Started(t *testing.T, clock *clocktesting.FakeClock, start func(context.Context) error) (asleep func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the loop ended with %v", err)
		}
	})
	return func() {
		t.Helper()
		WaitForTimers(t, clock, 1)
	}
}

// Until polls a condition.
func Until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	for !holds() {
		if deadline.Err() != nil {
			t.Fatalf("condition not reached: %s", what)
		}
		runtime.Gosched()
	}
}

// Ticks records the times of passes.
type Ticks struct{ at chan time.Time }

// NewTicks returns a record of up to ten passes that no test has read.
func NewTicks() Ticks { return Ticks{make(chan time.Time, 10)} }

// Add records a pass.
func (p Ticks) Add(at time.Time) { p.at <- at }

// Len returns the number of passes that were not read.
func (p Ticks) Len() int { return len(p.at) }

// Next waits for a pass and returns its time.
func (p Ticks) Next(t *testing.T) time.Time {
	t.Helper()
	select {
	case at := <-p.at:
		return at
	case <-time.After(10 * time.Second):
		t.Fatal("no pass")
		return time.Time{}
	}
}

// WaitForTimers waits until n timers of the clock run.
func WaitForTimers(t *testing.T, clock *clocktesting.FakeClock, n int) {
	t.Helper()
	Until(t, fmt.Sprintf("%d timers run", n), func() bool { return clock.Waiters() >= n })
}
