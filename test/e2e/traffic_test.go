package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// traffic is a client of v1beta1 that writes a pool and reads it in both versions, round after round.
type traffic struct {
	t   *testing.T
	end func()

	mutex           sync.Mutex
	rounds, refused int
	streak          int           // rounds without an error
	longest         time.Duration // between two successful rounds
	latest          error
}

// traffic starts the client. It stops with its end, or the end of the test.
func (r *replicas) traffic(pool string) *traffic {
	ctx, cancel := context.WithCancel(r.t.Context())
	f := &traffic{t: r.t}
	var running sync.WaitGroup
	running.Go(func() {
		good, certain := time.Now(), true
		for round := 1; ctx.Err() == nil; round++ {
			weight := int64(1 + round%100)
			got, err := r.round(ctx, pool, weight)
			if ctx.Err() != nil {
				return
			}
			if err == nil && certain { // a failed write may have been stored a moment later
				if got != weight {
					r.t.Errorf("the pool has weight %d after %d was written", got, weight)
				}
			}
			certain = err == nil
			good = f.note(err, good)
		}
	})
	f.end = func() { cancel(); running.Wait() }
	r.t.Cleanup(f.end)
	return f
}

// round writes a weight and reads it. It returns another weight if one of the versions has another.
func (r *replicas) round(ctx context.Context, name string, weight int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"weight":%d}}`, weight))
	if err := r.Patch(ctx, poolIn("v1beta1", name), patch); err != nil {
		return 0, fmt.Errorf("writing v1beta1: %w", err)
	}
	for _, version := range []string{"v1beta1", "v1"} {
		if got, err := r.weight(ctx, version, name); err != nil || got != weight {
			return got, err
		}
	}
	return weight, nil
}

// note counts a round, and returns the time of the last successful one.
func (f *traffic) note(err error, good time.Time) time.Time {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.rounds++
	if err != nil {
		f.refused++
		f.streak, f.latest = 0, err
		return good
	}
	f.streak++
	f.longest = max(f.longest, time.Since(good))
	return time.Now()
}

// goesOn waits until successive rounds succeed again.
func (f *traffic) goesOn() {
	f.t.Helper()
	f.mutex.Lock()
	f.streak = 0
	f.mutex.Unlock()
	await(f.t, patience, "reads and writes of v1beta1 to go on", func(context.Context) error {
		f.mutex.Lock()
		defer f.mutex.Unlock()
		if f.streak < 20 {
			return fmt.Errorf("%d in a row went well; the last that did not: %w", f.streak, f.latest)
		}
		return nil
	})
}

func (f *traffic) failures() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.refused
}

func (f *traffic) last() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.latest
}
