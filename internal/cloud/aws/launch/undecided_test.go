package launch

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// unheard are records whose write for one claim succeeds but returns an error, once.
type unheard struct {
	*records
	mu    sync.Mutex
	claim string
}

func (u *unheard) Replace(ctx context.Context, claim *karpv1.NodeClaim, before, after Record) error {
	err := u.records.Replace(ctx, claim, before, after)
	u.mu.Lock()
	defer u.mu.Unlock()
	if claim.Name == u.claim && err == nil {
		u.claim, err = "", errors.New("the answer was lost")
	}
	return err
}

// hesitant takes a second for the second choice of a subnet.
type hesitant struct {
	*oneSubnet
	mu      sync.Mutex
	choices int
}

func (h *hesitant) Choose(class *awsv1.EC2NodeClass, zone string, addresses int64) (string, bool) {
	h.mu.Lock()
	h.choices++
	second := h.choices == 2
	h.mu.Unlock()
	if second {
		<-time.After(time.Second)
	}
	return h.oneSubnet.Choose(class, zone, addresses)
}

// A claim's record was written although the response was lost. The claim is retried while the fleet launch of its batch
// is narrowed, is the first to use its token, and is refused. The batch continues with a current request.
func TestRefusedBeforeTheBatch(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Count: 1, Code: "InvalidParameterValue", Status: 400})
		w.must(err)
		l := w.launcher(func(o *Options) {
			o.RecordStore, o.Subnets = &unheard{records: w.records, claim: "claim-001"}, &hesitant{oneSubnet: w.subnets}
		})
		var mu sync.Mutex
		machines := map[string]string{}
		var both sync.WaitGroup
		for _, name := range names(2) {
			both.Go(func() {
				for range 5 {
					if m, err := l.Launch(ctx, w.order(name)); err == nil {
						mu.Lock()
						defer mu.Unlock()
						machines[name] = m.ProviderID
						return
					}
					<-time.After(time.Second) // the retry interval of the claim
				}
			})
		}
		both.Wait()
		if len(machines) != 2 || w.count("CreateFleet", "InvalidParameterValue") != 1 {
			t.Errorf("%d of 2 claims have a machine, %d requests were refused, want 1", len(machines),
				w.count("CreateFleet", "InvalidParameterValue"))
		}
		w.boughtOnce(machines)
	})
}

// mustStay checks that an error is not one after which the claim is deleted.
func (w *world) mustStay(err error) {
	w.Helper()
	var soldOut *cloud.InsufficientCapacityError
	if err == nil || errors.As(err, &soldOut) {
		w.Errorf("error is %v, want one after which the claim is retried", err)
	}
}

// lostThenSoldOut loses the first response to CreateFleet, and refuses the second call.
type lostThenSoldOut struct {
	EC2API
	mu    sync.Mutex
	calls int
}

func (e *lostThenSoldOut) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, o ...func(*ec2.Options)) (*ec2.CreateFleetOutput,
	error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch e.calls++; e.calls {
	case 1:
		_, err := e.EC2API.CreateFleet(ctx, in, o...)
		return nil, errors.Join(errors.New("the answer was lost"), err)
	case 2:
		return nil, apiError("MaxFleetCountExceeded", smithy.FaultClient)
	}
	return e.EC2API.CreateFleet(ctx, in, o...)
}

// A claim that may have an instance is not deleted because EC2 reports a lack of capacity afterwards.
func TestLostThenUnavailable(t *testing.T) {
	in(t, awssim.Options{Lag: 2 * time.Hour, Seed: 1}, func(ctx context.Context, w *world) {
		w.warm(ctx, "a")
		l := w.launcher(func(o *Options) { o.EC2 = &lostThenSoldOut{EC2API: w.ec2} })
		w.mustStay(w.launch(ctx, l, "one")["one"].err)
		if n := len(w.alive()); n != 1 {
			t.Fatalf("%d instances run, want 1", n)
		}
		w.boughtOnce(w.launchUntil(ctx, l, "one"))
	})
}

// A process continues a fleet launch when its types are believed to be unavailable. It sends the recorded request, and
// gets what was launched, or what EC2 has after all.
func TestResumedWhenUnavailable(t *testing.T) {
	soldOut := instance.Offer{CapacityType: "on-demand", Type: "m5.large", Zone: zoneA}
	t.Run("launched", func(t *testing.T) {
		in(t, awssim.Options{Lag: 2 * time.Hour, Seed: 2}, func(ctx context.Context, w *world) {
			w.warm(ctx, "a")
			w.buyAndDie(ctx, names(3)...)
			w.unavailable.Mark(soldOut)
			w.boughtOnce(w.launchOnce(ctx, w.launcher(), names(3)...))
		})
	})
	t.Run("not requested yet", func(t *testing.T) {
		in(t, awssim.Options{}, func(ctx context.Context, w *world) {
			w.recordAndDie(ctx, names(3)...)
			w.unavailable.Mark(soldOut)
			w.boughtOnce(w.launchOnce(ctx, w.launcher(), names(3)...))
		})
	})
	t.Run("not requested yet, and unavailable", func(t *testing.T) {
		in(t, awssim.Options{}, func(ctx context.Context, w *world) {
			w.recordAndDie(ctx, names(3)...)
			w.must(w.sim.Drain("m5.large", zoneA, "on-demand", 0))
			for _, r := range w.launch(ctx, w.launcher(), names(3)...) {
				var gone *cloud.InsufficientCapacityError
				if !errors.As(r.err, &gone) {
					t.Errorf("error is %v, want one after which the claim is deleted", r.err)
				}
			}
		})
	})
}

// launchOnce launches for all names and expects all machines at once.
func (w *world) launchOnce(ctx context.Context, l *Launcher, list ...string) map[string]string {
	w.Helper()
	machines := map[string]string{}
	for name, r := range w.launch(ctx, l, list...) {
		w.must(r.err)
		machines[name] = r.machine.ProviderID
	}
	return machines
}

// recordAndDie runs a process that records a fleet launch for the claims and is killed before EC2 is called.
func (w *world) recordAndDie(ctx context.Context, list ...string) {
	w.Helper()
	p := &process{EC2API: w.ec2, RecordStore: w.records, dies: 1 + len(list), after: true} // template and records exist
	brief, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	w.launch(brief, w.launcher(func(o *Options) { o.EC2, o.RecordStore = p, p }), list...)
	if n := len(w.records.snapshot()); n != len(list) || len(w.alive()) != 0 {
		w.Fatalf("%d records and %d instances, want %d and 0", n, len(w.alive()), len(list))
	}
}

// The same without a recorded request, as an earlier version leaves it. As long as the process that started the launch
// may still be sending, or EC2 may still show an instance, nothing is decided. Then the claim is deleted.
func TestResumedWhenUnavailableWithoutRequest(t *testing.T) {
	soldOut := instance.Offer{CapacityType: "on-demand", Type: "m5.large", Zone: zoneA}
	t.Run("for a while", func(t *testing.T) {
		in(t, awssim.Options{Lag: 2 * time.Hour, Seed: 2}, func(ctx context.Context, w *world) {
			w.warm(ctx, "a")
			w.buyAndDie(ctx, names(3)...)
			w.spoil(earlier)
			w.unavailable.Mark(soldOut)
			l := w.launcher()
			for _, r := range w.launch(ctx, l, names(3)...) {
				w.mustStay(r.err)
			}
			w.pass(3*time.Minute + time.Second) // the mark expires
			w.boughtOnce(w.launchUntil(ctx, l, names(3)...))
		})
	})
	t.Run("for long", func(t *testing.T) {
		in(t, awssim.Options{}, func(ctx context.Context, w *world) {
			w.recordAndDie(ctx, "one")
			w.spoil(earlier)
			l := w.launcher()
			w.unavailable.Mark(soldOut)
			w.mustStay(w.launch(ctx, l, "one")["one"].err)
			w.pass(launchTimeout + time.Minute)
			w.unavailable.Mark(soldOut)
			var gone *cloud.InsufficientCapacityError
			if err := w.launch(ctx, l, "one")["one"].err; !errors.As(err, &gone) {
				t.Errorf("error is %v, want one after which the claim is deleted", err)
			}
		})
	})
}
