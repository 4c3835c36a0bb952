package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
)

// warm has EC2 show launch templates for classes of these teams, the last of which is that of the class from then on.
func (w *world) warm(ctx context.Context, teams ...string) {
	for _, team := range teams {
		w.class.Spec.Tags = map[string]string{"team": team}
		l := w.launcher()
		p, err := newPlan(w.order("nobody"), "us-east-1")
		w.must(err)
		for _, v := range p.variants {
			w.must(l.ensure(ctx, p.templates[v]))
		}
		w.pass(4 * time.Hour)
	}
}

// As long as there is a request to ask with, its token finds what was bought, however many answers are lost and however
// late EC2 shows the instances. A process that is new makes the request again, since nothing has changed.
func TestLateAndLost(t *testing.T) {
	for _, lost := range []int{1, 5, 6, 14} {
		t.Run(fmt.Sprint(lost, " answers"), func(t *testing.T) {
			in(t, awssim.Options{Lag: 5 * time.Minute, Seed: uint64(lost)}, func(ctx context.Context, w *world) {
				w.pass(10 * time.Minute)
				_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultLose, Action: "CreateFleet", Count: lost})
				w.must(err)
				w.boughtOnce(w.launchUntil(ctx, w.launcher(), names(4)...))
			})
			in(t, awssim.Options{Lag: 2 * time.Hour, Seed: uint64(lost)}, func(ctx context.Context, w *world) {
				w.warm(ctx, "a")
				w.buyAndDie(ctx, names(4)...)
				_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultLose, Action: "CreateFleet", Count: lost})
				w.must(err)
				w.boughtOnce(w.launchUntil(ctx, w.launcher(), names(4)...))
			})
		})
	}
}

// Two processes at once, five and more answers lost in a row, instances that EC2 shows up to forty seconds late.
func TestTwoProcessesLateAndLost(t *testing.T) {
	for seed := range uint64(30) {
		in(t, awssim.Options{Seed: seed, Lag: 40 * time.Second}, func(ctx context.Context, w *world) {
			w.pass(2 * time.Minute)
			chance := rand.New(rand.NewPCG(seed, 3))
			_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultLose, Action: "CreateFleet", Count: 5 + chance.IntN(6)})
			w.must(err)
			var both sync.WaitGroup
			for k := range 2 {
				class := w.class.DeepCopy()
				if chance.IntN(2) == 0 {
					class.Spec.Tags = map[string]string{"process": fmt.Sprint(k)} // their requests differ
				}
				l := w.launcher(withSlowRecords(w, rand.New(rand.NewPCG(seed, uint64(k)))))
				for _, name := range names(5) {
					o := w.order(name)
					o.Class = class
					both.Go(func() {
						for range 5 {
							if _, err := l.Launch(ctx, o); err == nil {
								return
							}
						}
					})
				}
			}
			both.Wait()
			w.boughtOnce(w.launchUntil(ctx, w.launcher(), names(5)...))
		})
	}
}

// What is left: a process that takes over with a request that differs learns of EC2 that the token was used, and not what
// for. If EC2 shows no instance of it for a minute, it is bought again: one instance for each claim, which no claim can come to
// show, so that the collector ends it when it is seen.
func TestShownAfterAMinute(t *testing.T) {
	in(t, awssim.Options{Lag: 2 * time.Hour, Seed: 4}, func(ctx context.Context, w *world) {
		w.warm(ctx, "b", "a")
		w.buyAndDie(ctx, names(4)...)
		w.class.Spec.Tags = map[string]string{"team": "b"}
		began := time.Now()
		machines := w.launchUntil(ctx, w.launcher(), names(4)...)
		if waited := time.Since(began); waited > 3*time.Minute {
			t.Errorf("the claims have other machines after %v", waited)
		}
		if n := len(w.alive()); n > 8 {
			t.Errorf("%d instances were bought for 4 claims", n)
		}
		w.pass(4 * time.Hour)
		listed, err := w.launcher().Machines(ctx)
		w.must(err)
		known := map[string]bool{}
		for _, id := range machines {
			known[id] = true
		}
		for i := range listed {
			if m := &listed[i]; !known[m.ProviderID] && (!m.Noted || len(m.Claimants) > 0) {
				t.Errorf("nobody would end %s: noted %v, claimants %v", m.ProviderID, m.Noted, m.Claimants)
			}
		}
		if len(listed) != len(w.alive()) {
			t.Errorf("%d machines are listed of %d", len(listed), len(w.alive()))
		}
	})
}
