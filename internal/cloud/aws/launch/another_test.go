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
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// counted are records that count the calls of Records.
type counted struct {
	*records
	lists atomic.Int32
}

func (c *counted) Records(ctx context.Context) (map[string]Record, error) {
	c.lists.Add(1)
	return c.records.Records(ctx)
}

// Claims that are retried individually after a refusal neither each call EC2 nor each list all claims. Only the first
// retry after the pause does.
func TestRefusalPauses(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		fault, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Code: "InvalidParameterValue", Status: 400})
		w.must(err)
		records := &counted{records: w.records}
		l := w.launcher(func(o *Options) { o.RecordStore = records })
		w.launch(ctx, l, names(30)...)
		for round := 1; round <= 6; round++ {
			for _, name := range names(30) {
				var refused *cloud.CreateError
				if err := w.launch(ctx, l, name)[name].err; !errors.As(err, &refused) {
					t.Errorf("%s: error is %v, want a refusal", name, err)
				}
			}
			if asked, listed := w.count("CreateFleet", "InvalidParameterValue"), int(records.lists.Load()); asked != round || listed != round-1 {
				t.Errorf("round %d of 30 claims: EC2 was called %d times and claims were listed %d times, want %d and %d",
					round, asked, listed, round, round-1)
			}
			w.pass(min(time.Second<<(round-1), 10*time.Second)) // the retry interval of the claims
		}
		w.sim.Clear(fault)
		machines := map[string]string{}
		for _, name := range names(30) {
			machines[name] = w.launchOnce(ctx, l, name)[name]
		}
		w.boughtOnce(machines)
	})
}

// If the current request cannot be sent, the previous one keeps its addresses, and its launch templates are created
// again.
func TestAnotherComesToNothing(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(w *world) (rest []string)
	}{
		{"the coordinator is gone", func(w *world) []string {
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
					t.Fatalf("addresses are reserved in %v, want one subnet", before)
				}
				first := w.templateNames(ctx)
				w.reclass("b")
				rest := test.before(w)
				w.pass(time.Second)
				w.launch(ctx, l, rest...)
				if diff := cmp.Diff(before, w.subnets.held()); diff != "" {
					t.Errorf("reserved addresses (-want +got):\n%s", diff)
				}
				w.sim.Clear(fault)
				_, err = w.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(first[0])})
				w.must(err)
				w.pass(time.Minute)
				machines := w.launchOnce(ctx, l, rest...)
				if n := len(w.alive()); n != 3 || len(machines) != len(rest) {
					t.Errorf("%d instances for %d claims, want 3", n, len(machines))
				}
				if again := w.templateNames(ctx); !slices.Contains(again, first[0]) {
					t.Errorf("launch templates %v, want also %s", again, first[0])
				}
			})
		})
	}
}

// If another process has recorded a current request first, that one is sent, and the addresses of the previous request
// and of this process's current request are released.
func TestRequestOfAnotherProcess(t *testing.T) {
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
		held := w.subnets.held() // includes those of the first
		w.reclass("c")
		if diff := cmp.Diff(machines, w.launchOnce(ctx, first, names(3)...)); diff != "" {
			t.Errorf("machines of the two processes (-want +got):\n%s", diff)
		}
		w.boughtOnce(machines)
		for id, n := range held {
			if got := w.subnets.held()[id]; got != n/2 {
				t.Errorf("%d addresses of subnet %s are reserved, want %d: those of the machines", got, id, n/2)
			}
		}
		if n := w.count("CreateFleet", "IdempotentParameterMismatch"); n != 0 {
			t.Errorf("%d requests did not match the token, want 0", n)
		}
	})
}

// held returns the reserved addresses by subnet.
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

// With two equivalent subnets in the zone, a request that is refused repeatedly stays with its subnet, and no second
// request is recorded.
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
