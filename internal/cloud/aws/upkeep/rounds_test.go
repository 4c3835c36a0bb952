package upkeep

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// TestRounds checks that each round runs immediately and after its period, and that a failing one is retried with
// increasing delays and reported until it succeeds.
func TestRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		began := time.Now()
		var steady, troubled []time.Duration
		var reported []string
		broken := errors.New("broken")
		rounds := &Rounds{List: []Round{
			{"steady", time.Hour, func(context.Context) error { steady = append(steady, time.Since(began)); return nil }},
			{"troubled", 30 * time.Second, func(context.Context) error {
				troubled = append(troubled, time.Since(began))
				if len(troubled) <= 4 {
					return broken
				}
				return nil
			}},
		}, Failed: func(round string, err error) {
			text := "works again"
			if err != nil {
				text = err.Error()
			}
			reported = append(reported, round+": "+text)
		}}
		done := make(chan error)
		go func() { done <- rounds.Start(ctx) }()
		timer := time.NewTimer(150 * time.Minute)
		<-timer.C
		synctest.Wait()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Hour, 2 * time.Hour}, steady); diff != "" {
			t.Errorf("steady -want +got:\n%s", diff)
		}
		want := []time.Duration{0, 10 * time.Second, 30 * time.Second, 60 * time.Second, 90 * time.Second, 120 * time.Second}
		if diff := cmp.Diff(want, troubled[:6]); diff != "" {
			t.Errorf("troubled -want +got:\n%s", diff)
		}
		if diff := cmp.Diff([]string{"troubled: broken", "troubled: broken", "troubled: broken", "troubled: broken",
			"troubled: works again"}, reported); diff != "" {
			t.Errorf("told -want +got:\n%s", diff)
		}
		if !rounds.NeedLeaderElection() {
			t.Error("every replica would call AWS")
		}
	})
}

// TestStandard runs the production rounds for a day, with the simulator. Templates are adopted until that succeeds
// once.
func TestStandard(t *testing.T) {
	within(t, awssim.Options{}, func(ctx context.Context, w *world) {
		var mu sync.Mutex // rounds run concurrently
		counts := map[string]int{}
		add := func(name string) int {
			mu.Lock()
			defer mu.Unlock()
			counts[name]++
			return counts[name]
		}
		count := func(name string) func(context.Context) error {
			return func(context.Context) error { add(name); return nil }
		}
		adopt := func(context.Context) error {
			if add("adopt") == 1 {
				return errors.New("not now")
			}
			return nil
		}
		list := Standard(Parts{Types: count("types"), OnDemand: w.prices.RefreshOnDemand, Spot: w.prices.RefreshSpot,
			WindowsOnDemand: count("Windows"), WindowsSpot: count("spot Windows"),
			RefreshImages: w.sources.Images.Refresh, AdoptTemplates: adopt, SweepTemplates: count("sweep"), ForgetMemory: count("memory"),
			Profiles: &Profiles{Client: classesAndClaims(t),
				Unused: func(context.Context, map[string]bool) ([]string, error) { add("profiles"); return nil, nil }}})
		for i := range list {
			switch list[i].Name {
			case "images of aliases":
				list[i].Do = count("images")
			case "spot prices": // prices_test.go covers them; a day of it takes the simulator too long
				list[i].Do = count("spot")
			}
		}
		ctx, cancel := context.WithCancel(ctx)
		done := make(chan error)
		go func() { done <- (&Rounds{List: list}).Start(ctx) }()
		w.Pass(24*time.Hour - time.Minute)
		cancel()
		w.Must(<-done)
		want := map[string]int{"adopt": 2, "sweep": 288, "images": 48, "profiles": 48, "memory": 2, "types": 2, "spot": 96,
			"Windows": 2, "spot Windows": 96}
		if diff := cmp.Diff(want, counts); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if without := Standard(Parts{}); len(without) != len(list)-1 {
			t.Errorf("%d rounds where IAM cannot be reached, want %d", len(without), len(list)-1)
		}
	})
}
