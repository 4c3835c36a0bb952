package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// Two processes are killed one after the other, each at every step. Their requests differ, and EC2 shows none of the
// instances for half an hour.
func TestKilledTwice(t *testing.T) {
	claims := names(3)
	for first := 2; first <= 6; first++ {
		for second := 1; second <= 12; second++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("steps %d and %d, after %v", first, second, after), func(t *testing.T) {
					for _, hidden := range []time.Duration{0, 30 * time.Minute} {
						in(t, awssim.Options{Lag: 3 * time.Second, Seed: uint64(first*100 + second)}, func(ctx context.Context, w *world) {
							w.pass(10 * time.Second)
							hide := w.hidden(hidden)
							for k, dies := range []int{first, second} {
								w.class.Spec.Tags = map[string]string{"process": fmt.Sprint(k)}
								w.liveFor(ctx, w.launcher(hide, mortal(dies, after != (k == 0))), claims...)
							}
							w.class.Spec.Tags = nil
							w.boughtOnce(w.launchUntil(ctx, w.launcher(hide), claims...))
						})
					}
				})
			}
		}
	}
}

// liveFor runs a process that launches for the claims until it is killed.
func (w *world) liveFor(ctx context.Context, l *Launcher, claims ...string) {
	brief, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	w.launch(brief, l, claims...)
}

// mortal kills a launcher's process at a step, before or after the step takes effect.
func mortal(dies int, after bool) func(*Options) {
	return func(o *Options) {
		p := &process{EC2API: o.EC2, RecordStore: o.RecordStore, dies: dies, after: after}
		o.EC2, o.RecordStore = p, p
	}
}

// Random histories: processes start and are killed, responses are lost, calls are throttled, capacity runs out and
// returns, reads are stale, two processes run at once. In every other history EC2 shows no instance for an hour. In the
// end each claim has one machine, and there are no others.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			in(t, awssim.Options{Lag: time.Duration(r.IntN(5)) * time.Second, Seed: seed}, func(ctx context.Context, w *world) {
				w.pass(10 * time.Second)
				claims, hidden := names(1+r.IntN(12)), w.hidden(time.Duration(seed%2)*time.Hour)
				for range 1 + r.IntN(5) {
					w.misfortune(r)
					brief, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(40))*time.Second)
					for range 1 + r.IntN(2) {
						l, some := w.launcher(hidden, mortal(1+r.IntN(25), r.IntN(2) == 0)), claims[r.IntN(len(claims)):]
						go w.launch(brief, l, some...)
					}
					w.pass(time.Duration(r.IntN(30)) * time.Second)
					cancel()
				}
				w.sim.Clear(0)
				w.must(w.sim.Refill("m5.large", zoneA, ""))
				w.pass(4 * time.Minute) // marks of unavailable offerings expire
				w.boughtOnce(w.launchUntil(ctx, w.launcher(hidden), claims...))
			})
		})
	}
}

// misfortune injects a random fault.
func (w *world) misfortune(r *rand.Rand) {
	w.sim.Clear(0)
	w.class.Spec.Tags = map[string]string{"weather": fmt.Sprint(r.IntN(3))}
	faults := []awssim.Fault{
		{Kind: awssim.FaultLose, Action: "CreateFleet", Count: 1 + r.IntN(3)},
		{Kind: awssim.FaultLose},
		{Kind: awssim.FaultFail, Action: "CreateFleet", Count: 1 + r.IntN(3)},
		{Kind: awssim.FaultFail, Action: "CreateFleet", Count: 1 + r.IntN(3), Code: "InvalidParameterValue", Status: 400},
		{Kind: awssim.FaultThrottle, Rate: 0.5},
		{Kind: awssim.FaultSlow, Action: "CreateFleet", Delay: time.Duration(r.IntN(40)) * time.Second},
		{Kind: awssim.FaultFail, Action: "DescribeInstances", Count: 3},
	}
	if k := r.IntN(len(faults) + 2); k < len(faults) {
		_, err := w.sim.Inject(faults[k])
		w.must(err)
	}
	if r.IntN(3) == 0 {
		w.must(w.sim.Drain("m5.large", zoneA, "on-demand", r.IntN(6)))
	}
}

// slow is a distant EC2: each list takes two seconds to arrive and two to return.
type slow struct{ EC2API }

func (s slow) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
	o ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	wait := func() { <-time.NewTimer(2 * time.Second).C }
	wait()
	defer wait()
	return s.EC2API.DescribeInstances(ctx, in, o...)
}

// When machines are listed while they are being launched, each has its possible claims from the first list that
// contains it. None is treated as a leak, however young leaks may be, and however stale EC2's lists are.
func TestNoneIsTakenForALeak(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			in(t, awssim.Options{Lag: time.Duration(r.IntN(15)) * time.Second, Seed: seed}, func(ctx context.Context, w *world) {
				w.pass(20 * time.Second)
				claims := names(2 + r.IntN(10))
				unclaimed := map[string]bool{}
				look := func() {
					machines, err := w.launcher(func(o *Options) { o.EC2 = slow{w.ec2} }).Machines(ctx)
					if err != nil {
						return // the time of EC2's response
					}
					for i := range machines {
						if m := &machines[i]; !m.Terminating && (!m.Noted || len(m.Claimants) == 0) {
							unclaimed[m.ProviderID] = true
						}
					}
				}
				for range 1 + r.IntN(4) {
					w.misfortune(r)
					brief, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(40))*time.Second)
					for range 1 + r.IntN(2) {
						p := &process{EC2API: w.ec2, RecordStore: w.records, dies: 1 + r.IntN(25), after: r.IntN(2) == 0}
						l, some := w.launcher(func(o *Options) { o.EC2, o.RecordStore = p, p }), claims[r.IntN(len(claims)):]
						for _, name := range some {
							begins := time.NewTimer(time.Duration(r.IntN(20000)) * time.Millisecond)
							go func() {
								<-begins.C
								w.launch(brief, l, name)
							}()
						}
					}
					for range 3 + r.IntN(20) {
						w.pass(time.Duration(r.IntN(2000)) * time.Millisecond)
						look()
					}
					cancel()
				}
				w.sim.Clear(0)
				w.must(w.sim.Refill("m5.large", zoneA, ""))
				w.pass(4 * time.Minute)
				for claim, machine := range w.launchUntil(ctx, w.launcher(), claims...) {
					if unclaimed[machine] {
						t.Errorf("machine %s of %s was listed as if no claim could have it", machine, claim)
					}
				}
			})
		})
	}
}
