package launch

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// counted are records that count how often all of them are listed.
type counted struct {
	*records
	lists atomic.Int32
}

func (c *counted) Entries(ctx context.Context) (map[string]Entry, error) {
	c.lists.Add(1)
	return c.records.Entries(ctx)
}

// Claims that come again one by one after a refusal neither each ask EC2 nor each have all claims listed; who comes after the pause
// does.
func TestRefusalPauses(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Code: "InvalidParameterValue", Status: 400})
		w.must(err)
		records := &counted{records: w.records}
		l := w.launcher(func(o *Options) { o.Recorder = records })
		w.launch(ctx, l, names(30)...)
		for round := 1; round <= 6; round++ {
			for _, name := range names(30) {
				var refused *cloud.CreateError
				if err := w.launch(ctx, l, name)[name].err; !errors.As(err, &refused) {
					t.Errorf("%s: error is %v, want a refusal", name, err)
				}
			}
			if asked, listed := w.count("CreateFleet", "InvalidParameterValue"), int(records.lists.Load()); asked != round || listed != round-1 {
				t.Errorf("round %d of 30 claims: EC2 was asked %d times and claims were listed %d times, want %d and %d", round, asked, listed, round, round-1)
			}
			w.pass(min(time.Second<<(round-1), 10*time.Second)) // as the claims wait
		}
		w.sim.Clear(fault)
		machines := map[string]string{}
		for _, name := range names(30) {
			machines[name] = w.launchOnce(ctx, l, name)[name]
		}
		w.boughtOnce(machines)
	})
}

// Where the request of the day comes to nothing, the one before it keeps its addresses, and has its launch templates made again.
func TestAnotherComesToNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(w *world) (rest []string)
	}{
		{"the lead is gone", func(w *world) []string {
			w.class.Status.Subnets = []awsv1.Subnet{{ID: "subnet-of-another", Zone: zoneA}}
			return w.lose("claim-000", "claim-001", "claim-002")
		}},
		{"there is no subnet any more", func(w *world) []string {
			w.class.Status.Subnets = nil
			return names(3)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, awssim.Options{}, func(ctx context.Context, w *world) {
				fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Code: "InvalidParameterValue", Status: 400})
				w.must(err)
				l := w.launcher()
				w.launch(ctx, l, names(3)...)
				before := w.subnets.held()
				if len(before) != 1 {
					t.Fatalf("addresses are set aside in %v, want one subnet", before)
				}
				first := w.templateNames(ctx)
				w.reclass("b")
				rest := test.before(w)
				w.pass(time.Second)
				w.launch(ctx, l, rest...)
				if diff := cmp.Diff(before, w.subnets.held()); diff != "" {
					t.Errorf("addresses set aside (-want +got):\n%s", diff)
				}
				w.sim.Clear(fault)
				_, err = w.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(first[0])})
				w.must(err)
				w.pass(time.Minute)
				machines := w.launchOnce(ctx, l, rest...)
				if n := len(w.alive()); n != 3 || len(machines) != len(rest) {
					t.Errorf("%d instances for %d claims, want the 3 that were asked for", n, len(machines))
				}
				if again := w.templateNames(ctx); !slices.Contains(again, first[0]) {
					t.Errorf("launch templates %v, want also %s", again, first[0])
				}
			})
		})
	}
}

// Where another process has put a request of the day on record first, that is asked for, and neither the addresses of the one before
// nor those of our own of the day stay set aside.
func TestAnotherOfSomebodyElse(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Code: "InvalidParameterValue", Status: 400})
		w.must(err)
		first, second := w.launcher(), w.launcher()
		w.launch(ctx, first, names(3)...)
		w.reclass("b")
		w.launch(ctx, second, names(3)...)
		w.sim.Clear(fault)
		w.pass(time.Second)
		machines := w.launchOnce(ctx, second, names(3)...)
		held := w.subnets.held() // also those of the first
		w.reclass("c")
		if diff := cmp.Diff(machines, w.launchOnce(ctx, first, names(3)...)); diff != "" {
			t.Errorf("machines of the two processes (-want +got):\n%s", diff)
		}
		w.boughtOnce(machines)
		for id, n := range held {
			if got := w.subnets.held()[id]; got != n/2 {
				t.Errorf("%d addresses of subnet %s are set aside, want %d: those of the machines", got, id, n/2)
			}
		}
		if n := w.count("CreateFleet", "IdempotentParameterMismatch"); n != 0 {
			t.Errorf("%d requests did not match the token, want 0", n)
		}
	})
}

// held are the addresses that are set aside, by subnet.
func (s *oneSubnet) held() map[string]int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	held := map[string]int64{}
	for id, n := range s.aside {
		if n != 0 {
			held[id] = n
		}
	}
	return held
}

// Of two subnets in the zone, as good as each other, a request that is refused again and again stays with the one that it has: no
// second one is put on record.
func TestRefusedStaysInItsSubnet(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Code: "InvalidParameterValue", Status: 400})
		w.must(err)
		addresses := discovery.NewAddresses(time.Now, time.Hour, w.unavailable.HasSubnet)
		w.class.Status.Subnets = []awsv1.Subnet{{ID: "subnet-1", Zone: zoneA}, {ID: "subnet-2", Zone: zoneA}}
		addresses.Seen([]discovery.Subnet{{ID: "subnet-1", Zone: zoneA, Free: 1000}, {ID: "subnet-2", Zone: zoneA, Free: 1000}}, time.Now())
		l := w.launcher(func(o *Options) { o.Subnets = addresses })
		for range 4 {
			w.launch(ctx, l, names(3)...)
			w.pass(10 * time.Second)
		}
		kept, err := requestsOf(w.records.entries["uid-claim-000"].Requests)
		w.must(err)
		if len(kept) != 1 {
			t.Errorf("%d requests are kept, want 1", len(kept))
		}
		for id, want := range map[string]int64{"subnet-1": 1000 - 3*29, "subnet-2": 1000} {
			if free, _ := addresses.Free(id); free != want {
				t.Errorf("%s has %d free addresses, want %d", id, free, want)
			}
		}
	})
}
