package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
)

// Two processes are killed one after the other, each at every step.
func TestKilledTwice(t *testing.T) {
	claims := names(3)
	for first := 2; first <= 6; first++ {
		for second := 1; second <= 12; second++ {
			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprintf("steps %d and %d, after %v", first, second, after), func(t *testing.T) {
					in(t, awssim.Options{Lag: 3 * time.Second, Seed: uint64(first*100 + second)}, func(ctx context.Context, w *world) {
						w.pass(10 * time.Second)
						for k, dies := range []int{first, second} {
							p := &process{EC2API: w.ec2, Recorder: w.records, dies: dies, after: after != (k == 0)}
							brief, cancel := context.WithTimeout(ctx, 5*time.Second)
							w.class.Spec.Tags = map[string]string{"process": fmt.Sprint(k)} // its requests differ from the last one's
							w.launch(brief, w.launcher(func(o *Options) { o.EC2, o.Recorder = p, p }), claims...)
							cancel()
						}
						w.class.Spec.Tags = nil
						w.boughtOnce(w.launchUntil(ctx, w.launcher(), claims...))
					})
				})
			}
		}
	}
}

// Random histories: processes come and are killed, answers are lost, calls throttled, pools run dry and refill, reads are
// stale, two processes run at once. In the end each claim has one machine and there are no others.
func TestRandomHistories(t *testing.T) {
	for seed := range uint64(30) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			in(t, awssim.Options{Lag: time.Duration(r.IntN(5)) * time.Second, Seed: seed}, func(ctx context.Context, w *world) {
				w.pass(10 * time.Second)
				claims := names(1 + r.IntN(12))
				for range 1 + r.IntN(5) {
					w.misfortune(r)
					brief, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(40))*time.Second)
					for range 1 + r.IntN(2) {
						p := &process{EC2API: w.ec2, Recorder: w.records, dies: 1 + r.IntN(25), after: r.IntN(2) == 0}
						l, some := w.launcher(func(o *Options) { o.EC2, o.Recorder = p, p }), claims[r.IntN(len(claims)):]
						go w.launch(brief, l, some...)
					}
					w.pass(time.Duration(r.IntN(30)) * time.Second)
					cancel()
				}
				w.sim.Clear(0)
				w.must(w.sim.Refill("m5.large", zoneA, ""))
				w.pass(4 * time.Minute) // marks of what was sold out end
				w.boughtOnce(w.launchUntil(ctx, w.launcher(), claims...))
			})
		})
	}
}

// misfortune makes something go wrong.
func (w *world) misfortune(r *rand.Rand) {
	w.sim.Clear(0)
	w.class.Spec.Tags = map[string]string{"weather": fmt.Sprint(r.IntN(3))}
	faults := []awssim.Fault{
		{Kind: awssim.FaultLose, Action: "CreateFleet", Count: 1 + r.IntN(3)},
		{Kind: awssim.FaultLose},
		{Kind: awssim.FaultFail, Action: "CreateFleet", Count: 1 + r.IntN(3)},
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
