package launch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// largest returns the largest request that EC2 accepts: 300 overrides over 60 types and 5 zones, with different prices,
// for 1,000 claims, with the maximum number of tags of a class.
func largest(w *world) request {
	tags := map[string]string{}
	for i := range 42 {
		tags[fmt.Sprint("department-of-tags/", i)] = fmt.Sprint("value of number ", i)
	}
	w.class.Spec.Tags = tags
	p, err := newPlan(w.order("one"), "us-east-1")
	w.must(err)
	p.selection.Ways = nil
	types := catalog.Load().Types
	for i := range mostTypes {
		t := types[i*len(types)/mostTypes]
		for z := range mostWays / mostTypes {
			p.selection.Ways = append(p.selection.Ways, cloud.Choice{
				Type:     &cloud.InstanceType{Name: t.Name, Capacity: map[string]int64{"pods": 29}},
				Offering: &cloud.Offering{Zone: "us-east-1" + string(rune('a'+z)), Price: 0.1 + 0.00137*float64(i*7+z)},
			})
		}
	}
	subnets := map[string]string{}
	for _, zone := range p.zones() {
		subnets[zone] = "subnet-0123456789abcdef" + zone[len(zone)-1:]
	}
	p.order.Image = func(string) string { return p.variants[0].image }
	some := indexSet{}
	for i := range 1000 {
		if i%3 > 0 {
			some = append(some, i)
		}
	}
	entry := Record{Batch: newBatch(), Attempt: 1, Size: 1000}
	return request{Made: p.order.origin(), Sent: p.request(entry, some, subnets)}
}

// A request that is decoded equals the one that was encoded, whatever it contains, and its text is short enough for an
// annotation.
func TestRequestsText(t *testing.T) {
	in(t, awssim.Options{}, func(_ context.Context, w *world) {
		small, err := newPlan(w.order("one"), "us-east-1")
		w.must(err)
		for _, test := range []struct {
			name string
			r    requests
			most int // characters
		}{
			{"one type in one zone", requests{{Made: small.order.origin(),
				Sent: small.request(Record{Batch: newBatch(), Attempt: 1, Size: 1}, nil, map[string]string{zoneA: "subnet-1"})}}, 1500},
			{"the largest", requests{largest(w)}, 12000},
			{"as often as it is kept", requests{largest(w), largest(w), largest(w), largest(w)}, 30000},
		} {
			text := test.r.text()
			t.Logf("%s: %d characters", test.name, len(text))
			if len(text) > test.most {
				t.Errorf("%s: %d characters, want at most %d", test.name, len(text), test.most)
			}
			got, err := requestsOf(text)
			w.must(err)
			for i, r := range test.r {
				switch {
				case len(got) != len(test.r):
					t.Errorf("%s: len(got) is %v, want %v", test.name, len(got), len(test.r))
				case !got[i].equal(r):
					t.Errorf("%s: got[i].is(r) is false, number %d", test.name, i)
				case got[i].Made != r.Made:
					t.Errorf("%s: got[i].Made is %v, want %v, number %d", test.name, got[i].Made, r.Made, i)
				}
			}
			if again := got.text(); again != text {
				t.Errorf("%s: the same requests have another text", test.name)
			}
			if diff := cmp.Diff(test.r[0].indexes(), got[0].indexes()); diff != "" {
				t.Errorf("%s: places (-want +got):\n%s", test.name, diff)
			}
		}
	})
}

func TestRequestsOfNonsense(t *testing.T) {
	empty := requests{{Sent: nil}}
	for name, text := range map[string]string{"empty": "", "no base64": "!", "not packed": "YWJj", "none": requests{}.text(),
		"nothing asked for": empty.text()} {
		if r, err := requestsOf(text); err == nil {
			t.Errorf("%s: %+v, want an error", name, r)
		}
	}
}

// Requests are removed an hour after their fleet launch began. Until then the launch templates that they name are kept.
func TestSweepRequests(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.launchUntil(ctx, w.launcher(), "early")
		w.pass(30 * time.Minute)
		w.class.Spec.Tags = map[string]string{"team": "b"}
		w.launchUntil(ctx, w.launcher(), names(2)...)
		next := w.launcher()
		for _, name := range w.templateNames(ctx) { // as if they had been unused for long
			next.templates.entry(name).exists = true
		}
		kept := func() string {
			var claims []string
			for uid, e := range w.records.snapshot() {
				if e.Requests != "" {
					claims = append(claims, string(uid))
				}
			}
			return strings.Join(claims, " ")
		}
		for _, step := range []struct {
			after     time.Duration
			templates int
			kept      string
		}{{0, 2, "both"}, {31 * time.Minute, 1, "uid-claim-000"}, {30 * time.Minute, 0, ""}} {
			w.pass(step.after)
			w.must(next.SweepTemplates(ctx))
			if n := w.templates(ctx); n != step.templates {
				t.Errorf("%d launch templates after %v, want %d", n, step.after, step.templates)
			}
			switch got := kept(); {
			case step.kept == "both":
				if len(strings.Fields(got)) != 2 {
					t.Errorf("requests are kept with %q after %v, want both", got, step.after)
				}
			case got != step.kept:
				t.Errorf("requests are kept with %q after %v, want %q", got, step.after, step.kept)
			}
		}
		for uid, e := range w.records.snapshot() {
			if e.Token() == "" || e.Coordinator.Claim == "" {
				t.Errorf("the rest of the record of %s is gone: %+v", uid, e)
			}
		}
	})
}

func (w *world) templateNames(ctx context.Context) []string {
	list, err := w.launcher().templateNames(ctx)
	w.must(err)
	return list
}

// refusing is an EC2 that loses the responses to the given number of CreateFleet calls, refuses the next call, and
// works from then on.
type refusing struct {
	EC2API
	mu     sync.Mutex
	losses int
	calls  int
}

func (e *refusing) CreateFleet(ctx context.Context, in *ec2.CreateFleetInput, o ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch e.calls++; {
	case e.calls <= e.losses:
		_, err := e.EC2API.CreateFleet(ctx, in, o...)
		return nil, errors.Join(errors.New("the answer was lost"), err)
	case e.calls == e.losses+1:
		return nil, apiError("InvalidParameterValue", smithy.FaultClient)
	}
	return e.EC2API.CreateFleet(ctx, in, o...)
}

// After a refusal, a request from the current class is sent with the token, for the claims that still exist. Another
// process, whose class differs again, finds out which of the two requests was executed.
func TestAnotherRequest(t *testing.T) {
	for _, test := range []struct {
		name               string
		losses, instances  int
		mismatched, places int // requests that do not match the token; places of the last recorded request
	}{
		{"nothing was launched before", 0, 2, 0, 2},
		{"the first was carried out", 1, 3, 2, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, awssim.Options{}, func(ctx context.Context, w *world) {
				hide := w.hidden(time.Hour)
				first := w.launcher(hide, func(o *Options) { o.EC2 = &refusing{EC2API: o.EC2, losses: test.losses} })
				for _, r := range w.launch(ctx, first, names(3)...) {
					var refused *cloud.CreateError
					if !errors.As(r.err, &refused) {
						t.Errorf("error is %v, want a refusal", r.err)
					}
				}
				token := w.records.entries["uid-claim-001"].Token()
				rest := w.lose("claim-002", "claim-000", "claim-001")
				w.reclass("b")
				w.pass(time.Second) // the retry interval of the claims
				machines := w.launchOnce(ctx, first, rest...)
				w.reclass("c")
				if diff := cmp.Diff(machines, w.launchOnce(ctx, w.launcher(hide), rest...)); diff != "" {
					t.Errorf("machines, and those that another process finds (-want +got):\n%s", diff)
				}
				if n := len(w.alive()); n != test.instances || machines[rest[0]] == machines[rest[1]] {
					t.Errorf("%d instances, want %d: %v", n, test.instances, machines)
				}
				if n := w.count("CreateFleet", "IdempotentParameterMismatch"); n != test.mismatched {
					t.Errorf("%d requests did not match the token, want %d", n, test.mismatched)
				}
				if got := w.records.entries["uid-claim-001"].Token(); got != token {
					t.Errorf("the claims are part of %s, want %s as before", got, token)
				}
				kept, err := requestsOf(w.records.entries["uid-claim-000"].Requests)
				w.must(err)
				if len(kept) != 2 || len(kept[1].indexes()) != test.places {
					t.Errorf("%d requests are kept, want 2, the second for %d places", len(kept), test.places)
				}
			})
		})
	}
}

// reclass gives the class another tag, so that its requests differ.
func (w *world) reclass(team string) {
	w.class = w.class.DeepCopy()
	w.class.Spec.Tags = map[string]string{"team": team}
}

// A fleet launch whose last record was never written was not sent. The process that continues it writes the record. If
// its coordinator is part of another fleet launch by then, its claims are free for another one as well.
func TestNeverRequested(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(ctx context.Context, w *world)
		token  bool // whether the claims stay part of the fleet launch
	}{
		{"the coordinator comes with the others", func(context.Context, *world) {}, true},
		{"the coordinator has gone on", func(ctx context.Context, w *world) { w.launchOnce(ctx, w.launcher(), "claim-000") }, false},
		{"the coordinator is gone", func(_ context.Context, w *world) { w.lose("claim-000") }, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			in(t, awssim.Options{}, func(ctx context.Context, w *world) {
				p := &process{EC2API: w.ec2, RecordStore: w.records, dies: 3, after: true} // the template, and two records
				brief, cancel := context.WithTimeout(ctx, time.Minute)
				defer cancel()
				w.launch(brief, w.launcher(func(o *Options) { o.EC2, o.RecordStore = p, p }), names(3)...)
				token := w.records.entries["uid-claim-001"].Token()
				if n := len(w.records.snapshot()); n != 2 || token == "" {
					t.Fatalf("%d records, want those of the 2 claims besides the coordinator", n)
				}
				w.reclass("b")
				test.before(ctx, w)
				others := names(3)[1:]
				w.launchOnce(ctx, w.launcher(w.hidden(time.Hour)), others...)
				if got := w.records.entries["uid-claim-001"].Token(); (got == token) != test.token {
					t.Errorf("the claims are part of %s, and were of %s; want the same: %v", got, token, test.token)
				}
				if w.records.gone == nil {
					others = names(3)
				}
				w.boughtOnce(w.launchOnce(ctx, w.launcher(w.hidden(time.Hour)), others...))
			})
		})
	}
}

// A claim that cannot store a record takes no part, and the others do, whichever claim it is.
func TestNoRecord(t *testing.T) {
	for _, gone := range names(3) {
		in(t, awssim.Options{}, func(ctx context.Context, w *world) {
			w.lose(gone)
			l, rest := w.launcher(), slices.DeleteFunc(names(3), func(name string) bool { return name == gone })
			var refused error
			machines := map[string]string{}
			for name, r := range w.launch(ctx, l, names(3)...) {
				if name == gone {
					refused = r.err
				} else if r.err == nil {
					machines[name] = r.machine.ProviderID
				}
			}
			if !errors.Is(refused, ErrNoRecord) || len(machines) != len(rest) {
				t.Errorf("without %s: its error is %v, and %d of the others have machines", gone, refused, len(machines))
			}
			w.boughtOnce(machines)
		})
	}
}

// Claims that are retried after a refusal do not each call EC2.
func TestRefusalIsShared(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Code: "InvalidParameterValue", Status: 400})
		w.must(err)
		_, err = w.sim.Inject(awssim.Fault{Kind: awssim.FaultSlow, Action: "CreateFleet", Delay: 100 * time.Millisecond})
		w.must(err)
		l := w.launcher()
		for round := 1; round <= 3; round++ {
			for name, r := range w.launch(ctx, l, names(30)...) {
				var refused *cloud.CreateError
				if !errors.As(r.err, &refused) {
					t.Errorf("%s: error is %v, want a refusal", name, r.err)
				}
			}
			if n := w.count("CreateFleet", "InvalidParameterValue"); n != round {
				t.Errorf("%d refused calls after %d tries of 30 claims", n, round)
			}
			w.pass(time.Second << (round - 1)) // the retry interval of the claims
		}
		w.sim.Clear(0)
		w.boughtOnce(w.launchOnce(ctx, l, names(30)...))
	})
}

// A claim whose record was written although the write returned an error, and which the request leaves out, does not
// cause the request to be sent again: the other claims may have been deleted.
func TestLeftOut(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		_, err := w.sim.Inject(awssim.Fault{Kind: awssim.FaultFail, Action: "CreateFleet", Count: 1, Code: "MaxFleetCountExceeded", Status: 400})
		w.must(err)
		first := w.launcher(func(o *Options) { o.RecordStore = &unheard{records: w.records, claim: "claim-001"} })
		for name, r := range w.launch(ctx, first, names(2)...) {
			if r.err == nil {
				t.Errorf("%s was launched, want a failure", name)
			}
		}
		w.boughtOnce(w.launchOnce(ctx, w.launcher(), "claim-001")) // the other claim is about to be deleted
	})
}

// The same with annotations, as the API server stores them.
func TestTakenOverByAnnotations(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		builder := fake.NewClientBuilder().WithScheme(scheme)
		for _, name := range names(3) {
			builder = builder.WithObjects(w.order(name).Claim)
		}
		c := builder.Build()
		annotated := func(o *Options) { o.RecordStore = &Annotations{Client: c, Live: c} }
		hide := w.hidden(2 * time.Hour)
		w.liveFor(ctx, w.launcher(annotated, mortal(5, true)), names(3)...) // template, three records, fleet
		if n := len(w.alive()); n != 3 {
			t.Fatalf("%d instances, want 3", n)
		}
		w.reclass("b")
		w.boughtOnce(w.launchOnce(ctx, w.launcher(annotated, hide), names(3)...))
		w.pass(requestsKept + time.Minute)
		next := w.launcher(annotated, hide)
		w.must(next.SweepTemplates(ctx))
		entries, err := next.opts.RecordStore.Records(ctx)
		w.must(err)
		for name, e := range entries {
			if e.Requests != "" || e.Token() == "" {
				t.Errorf("%s has the record %+v, want no request", name, e)
			}
		}
	})
}

// If EC2 repeats an old response to another process, the lack of capacity in it is not recorded as current.
func TestOldAnswerMarksNothing(t *testing.T) {
	in(t, awssim.Options{}, func(ctx context.Context, w *world) {
		w.must(w.sim.Drain("m5.large", zoneA, "on-demand", 2))
		w.buyAndDie(ctx, names(3)...)
		w.must(w.sim.Refill("m5.large", zoneA, "on-demand"))
		w.unavailable = instance.NewUnavailable(time.Now) // the state of another process
		w.boughtOnce(w.launchOnce(ctx, w.launcher(w.hidden(time.Hour)), names(3)...))
		if w.unavailable.Has(instance.Offer{CapacityType: "on-demand", Type: "m5.large", Zone: zoneA}) {
			t.Error("an old response has marked an available offering")
		}
	})
}
