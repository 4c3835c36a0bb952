package launch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// warm creates launch templates for classes with these team tags, and waits until EC2 shows them. The class has the
// last tag from then on.
func (w *world) warm(ctx context.Context, teams ...string) {
	for _, team := range teams {
		w.class.Spec.Tags = map[string]string{"team": team}
		l := w.launcher()
		p, err := newPlan(w.order("absent"), "us-east-1")
		w.must(err)
		for _, v := range p.variants {
			w.must(l.ensure(ctx, p.templates[v]))
		}
		w.pass(4 * time.Hour)
	}
}

// As long as there is a request to send, its token finds the launched instances, however many responses are lost and
// however late EC2 shows the instances. A new process makes the same request again, because nothing has changed.
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

// Two processes at once, five and more responses lost in a row, and instances that EC2 shows up to forty seconds late,
// or not for an hour.
func TestTwoProcessesLateAndLost(t *testing.T) {
	for seed := range uint64(60) {
		in(t, awssim.Options{Seed: seed, Lag: 40 * time.Second}, func(ctx context.Context, w *world) {
			w.pass(2 * time.Minute)
			hidden := w.hidden(time.Duration(seed%2) * time.Hour)
			chance := rand.New(rand.NewPCG(seed, 3))
			_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultLose, Action: "CreateFleet", Count: 5 + chance.IntN(6)})
			w.must(err)
			var both sync.WaitGroup
			for k := range 2 {
				class := w.class.DeepCopy()
				if chance.IntN(2) == 0 {
					class.Spec.Tags = map[string]string{"process": fmt.Sprint(k)} // their requests differ
				}
				l := w.launcher(hidden, withSlowRecords(w, rand.New(rand.NewPCG(seed, uint64(k)))))
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
			w.boughtOnce(w.launchUntil(ctx, w.launcher(hidden), names(5)...))
		})
	}
}

// late is an EC2 that shows no instance for a while.
type late struct {
	EC2API
	until time.Time
}

func (e late) DescribeInstances(ctx context.Context, in *ec2.DescribeInstancesInput,
	o ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error) {
	if time.Now().Before(e.until) {
		return &ec2.DescribeInstancesOutput{}, nil
	}
	return e.EC2API.DescribeInstances(ctx, in, o...)
}

// hidden makes a launcher's EC2 show no instance for the given time.
func (w *world) hidden(d time.Duration) func(*Options) {
	until := time.Now().Add(d)
	return func(o *Options) { o.EC2 = late{o.EC2, until} }
}

// A process continues a fleet launch after the class has changed, while EC2 shows no instances for minutes. It sends
// the recorded request and gets the machines that were launched, and no others.
func TestShownAfterAMinute(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.buyAndDie(ctx, names(4)...)
		w.class.Spec.Tags = map[string]string{"team": "b"}
		began := time.Now()
		w.boughtOnce(w.launchUntil(ctx, w.launcher(w.hidden(10*time.Minute)), names(4)...))
		if waited := time.Since(began); waited > 10*time.Second {
			t.Errorf("the claims have their machines only after %v", waited)
		}
		if n := w.count("CreateFleet", "IdempotentParameterMismatch"); n != 0 {
			t.Errorf("%d requests did not match their token, want 0", n)
		}
	})
}

// The same with a record of an earlier version, or whose request was removed or is invalid. The request is unknown, and
// if EC2 shows none of its instances for a minute, the machines are launched again. That is one extra instance per
// claim. No claim can have it, so the garbage collector terminates it when it appears.
func TestShownAfterAMinuteWithoutRequest(t *testing.T) {
	for name, spoil := range map[string]func(*Record){
		"earlier version":          earlier,
		"taken off":                func(e *Record) { e.Requests = "" },
		"cannot be read":           func(e *Record) { e.Requests = strings.Replace(e.Requests, "A", "!", 1) },
		"is none":                  func(e *Record) { e.Requests = requests{}.text() },
		"asks for nothing":         func(e *Record) { e.Requests = requests{{}}.text() },
		"the coordinator has gone": nil,
	} {
		t.Run(name, func(t *testing.T) {
			in(t, awssim.Options{}, func(ctx context.Context, w *world) {
				w.buyAndDie(ctx, names(4)...)
				claims := names(4)
				if spoil == nil {
					claims = w.lose(claims[0], claims[1:]...)
				} else {
					w.spoil(spoil)
				}
				w.class.Spec.Tags = map[string]string{"team": "b"}
				began := time.Now()
				machines := w.launchUntil(ctx, w.launcher(w.hidden(2*time.Minute)), claims...)
				if waited := time.Since(began); waited > 3*time.Minute {
					t.Errorf("the claims have new machines only after %v", waited)
				}
				if n := len(w.alive()); n != 4+len(claims) {
					t.Errorf("%d instances were launched for %d claims, want %d", n, len(claims), 4+len(claims))
				}
				w.leaksAreSeen(ctx, machines)
			})
		})
	}
}

// earlier converts an entry to a version that stored no requests.
func earlier(e *Record) { e.PreviousTokens, e.Coordinator, e.Requests = "", Coordinator{}, "" }

// spoil modifies all recorded entries.
func (w *world) spoil(change func(*Record)) {
	for uid, e := range w.records.snapshot() {
		change(&e)
		w.records.entries[uid] = e
	}
}

// lose deletes a claim and returns the others.
func (w *world) lose(claim string, others ...string) []string {
	uid := types.UID("uid-" + claim)
	w.records.gone = map[types.UID]bool{uid: true}
	delete(w.records.entries, uid)
	return others
}

// leaksAreSeen checks that the garbage collector would terminate all instances except the claims' machines.
func (w *world) leaksAreSeen(ctx context.Context, machines map[string]string) {
	w.Helper()
	listed, err := w.launcher().Machines(ctx)
	w.must(err)
	known := map[string]bool{}
	for _, id := range machines {
		known[id] = true
	}
	for i := range listed {
		m := &listed[i]
		if !known[m.ProviderID] {
			switch {
			case !m.Noted:
				w.Errorf("m.Noted is false")
			case len(m.Claimants) > 0:
				w.Errorf("len(m.Claimants) is %v, want 0, claimants %v", len(m.Claimants), m.Claimants)
			}
		}
	}
	if len(listed) != len(w.alive()) {
		w.Errorf("%d machines are listed, want %d", len(listed), len(w.alive()))
	}
}
