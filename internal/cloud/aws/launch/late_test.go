package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

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

// late is EC2 that shows no instance for a while.
type late struct {
	EC2API
	until time.Time
}

func (e late) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput, o ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	if time.Now().Before(e.until) {
		return &ec2.DescribeInstancesOutput{}, nil
	}
	return e.EC2API.DescribeInstances(ctx, in, o...)
}

// What is left: a process that takes over with a request that differs learns of EC2 that the token was used, and not what
// for. If EC2 shows no instance of it for a minute, it is bought again: one instance for each claim, which no claim can come to
// show, so that the collector ends it when it is seen.
func TestShownAfterAMinute(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.buyAndDie(ctx, names(4)...)
		w.class.Spec.Tags = map[string]string{"team": "b"}
		began := time.Now()
		machines := w.launchUntil(ctx, w.launcher(func(o *Options) { o.EC2 = late{w.ec2, began.Add(2 * time.Minute)} }), names(4)...)
		if waited := time.Since(began); waited > 3*time.Minute {
			t.Errorf("the claims have other machines after %v", waited)
		}
		bought := len(w.alive())
		if bought != 8 {
			t.Errorf("%d instances were bought for 4 claims, want two for each", bought)
		}
		listed, err := w.launcher().Machines(ctx)
		w.must(err)
		known := map[string]bool{}
		for _, id := range machines {
			known[id] = true
		}
		leaks := 0
		for i := range listed {
			m := &listed[i]
			if known[m.ProviderID] {
				continue
			}
			leaks++
			if !m.Noted || len(m.Claimants) > 0 {
				t.Errorf("nobody would end %s: noted %v, claimants %v", m.ProviderID, m.Noted, m.Claimants)
			}
		}
		if leaks != bought-4 || len(listed) != bought {
			t.Errorf("%d machines are listed, %d of them leaks; want %d and %d", len(listed), leaks, bought, bought-4)
		}
	})
}
