package aws

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// TestZonalShiftPartlyAnnounced checks that after a failure for some pools only those get the event later, and that a zone
// without subnets of a class is not reported any more.
func TestZonalShiftPartlyAnnounced(t *testing.T) {
	w := newWorld(t, "m5.large")
	other := testClass("other")
	other.Status.Subnets = w.class(t, "default").Status.Subnets
	check(t, w.api.Create(t.Context(), other))
	w.storePool(t, "a", "default")
	w.storePool(t, "b", "other")
	var failing, noPools bool
	p, told := w.shifting(t, func(o *Options) {
		o.Client = interceptor.NewClient(w.api, interceptor.Funcs{
			Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, o ...client.GetOption) error {
				if _, class := object.(*awsv1.EC2NodeClass); class && failing && key.Name == "other" {
					return errors.New("the API server is away")
				}
				return api.Get(ctx, key, object, o...)
			},
			List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
				if _, classes := list.(*awsv1.EC2NodeClassList); !classes && noPools {
					return errors.New("the API server is away")
				}
				return api.List(ctx, list, o...)
			},
		})
	})
	announced := func(fails bool, want ...string) {
		t.Helper()
		*told = nil
		check(t, p.shifts.refresh(t.Context()))
		if err := p.shifts.announce(t.Context()); (err != nil) != fails {
			t.Errorf("the error is %v, want one: %t", err, fails)
		}
		var got []string
		for _, line := range eventsOf(*told) {
			got = append(got, strings.Join(strings.Fields(line)[:2], " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("events (-want +got):\n%s", diff)
		}
	}
	announced(false)
	_, err := w.sim.StartShift("us-east-1a", awssim.ShiftByUser, time.Hour)
	check(t, err)
	noPools = true
	announced(true)
	noPools, failing = false, true
	announced(true, "a ZonalShiftActive")
	announced(true)
	failing = false
	announced(false, "b ZonalShiftActive")
	announced(false)
	failing = true
	w.sim.EndShift("")
	announced(true, "a ZonalShiftCleared")
	_, err = w.sim.StartShift("us-east-1a", awssim.ShiftByUser, time.Hour)
	check(t, err)
	failing = false
	announced(false, "a ZonalShiftActive", "b ZonalShiftActive")

	for _, name := range []string{"default", "other"} {
		class := w.class(t, name)
		class.Status.Subnets = slices.DeleteFunc(class.Status.Subnets, func(s awsv1.Subnet) bool { return s.Zone != "us-east-1b" })
		check(t, client.IgnoreNotFound(w.api.Status().Update(t.Context(), class)))
	}
	left := w.class(t, "default").Status.Subnets
	announced(false)
	if want := []string{"metric " + left[0].ZoneID + " false"}; len(left) != 1 || !slices.Equal(*told, want) {
		t.Errorf("reported is %v, want %v", *told, want)
	}
}

// TestZonalShiftWithoutAnswers checks that the last answer holds while the API of zonal shifts fails for ten minutes, that
// one line of the log says so, and that the next answer counts.
func TestZonalShiftWithoutAnswers(t *testing.T) {
	for name, fault := range map[string]awssim.Fault{
		"failing": {Kind: awssim.FaultFail, Service: "arc-zonal-shift", Status: 503, Code: "ServiceUnavailable"},
		"silent":  {Kind: awssim.FaultFreeze, Service: "arc-zonal-shift"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newVirtualWorld(t, quick(), "m5.large")
				w.storePool(t, "any", "default")
				p, told := w.shifting(t)
				elected := make(chan struct{})
				close(elected)
				p.shifts.elected = elected
				_, err := w.sim.StartShift("us-east-1a", awssim.ShiftByUser, 24*time.Hour)
				check(t, err)
				var failures, recoveries int
				log := funcr.New(func(_, args string) {
					switch {
					case strings.Contains(args, "are not known"):
						failures++
					case strings.Contains(args, "are read again"):
						recoveries++
					}
				}, funcr.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- p.shifts.rounds(log).Start(ctx) }()
				expect := func(when string, failed, recovered int, avoided []string, events int) {
					t.Helper()
					synctest.Wait()
					if got := w.avoidedZones(t, p); !slices.Equal(got, avoided) {
						t.Errorf("%s, the zones %v are avoided, want %v", when, got, avoided)
					}
					if n := len(eventsOf(*told)); failures != failed || recoveries != recovered || n != events {
						t.Errorf("%s: %d failures and %d recoveries are logged, want %d and %d; %d events, want %d",
							when, failures, recoveries, failed, recovered, n, events)
					}
				}
				time.Sleep(time.Minute)
				expect("before", 0, 0, []string{"us-east-1a"}, 1)
				number, err := w.sim.Inject(fault)
				check(t, err)
				w.sim.EndShift("")
				time.Sleep(10 * time.Minute)
				expect("without answers", 1, 0, []string{"us-east-1a"}, 1)
				w.sim.Clear(number)
				time.Sleep(2 * shiftsEvery)
				expect("after", 1, 1, nil, 2)
				cancel()
				check(t, <-done)
			})
		})
	}
}
