package launch

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func TestAnnotations(t *testing.T) {
	ctx := t.Context()
	scheme := runtime.NewScheme()
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stale := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "uid"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stale.DeepCopy()).Build()
	a := &Annotations{Client: c, Live: c}
	first := Record{Batch: "b", Attempt: 1, Size: 2, Index: 1, RecordedAt: time.Unix(1, 0).UTC()}
	second := Record{Batch: "c", Attempt: 1, Size: 1, RecordedAt: time.Unix(2, 0).UTC()}
	if err := a.Replace(ctx, stale, Record{}, first); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Read(ctx, stale); err != nil || !cmp.Equal(got, first) {
		t.Errorf("recorded %+v, %v; want %+v, also through an old copy of the claim", got, err, first)
	}
	if err := a.Replace(ctx, stale, Record{}, second); !errors.Is(err, ErrChanged) {
		t.Errorf("recording over an entry that was not expected: %v, want %v", err, ErrChanged)
	}
	if err := a.Replace(ctx, stale, first, second); err != nil {
		t.Errorf("recording over the entry that was expected: %v", err)
	}
	asked := second
	asked.Requests = "what is asked for"
	if err := a.Replace(ctx, stale, second, asked); err != nil {
		t.Errorf("adding a request: %v", err)
	}
	if err := a.Replace(ctx, stale, second, first); !errors.Is(err, ErrChanged) {
		t.Errorf("recording over what another process has added: %v, want %v", err, ErrChanged)
	}
	if err := a.Replace(ctx, stale, asked, second); err != nil {
		t.Errorf("removing it: %v", err)
	}
	entries, err := a.Records(ctx)
	if diff := cmp.Diff(map[string]Record{"claim": second}, entries); err != nil || diff != "" {
		t.Errorf("entries: %v (-want +got):\n%s", err, diff)
	}
	namesake := stale.DeepCopy()
	namesake.UID = "another"
	if err := a.Replace(ctx, namesake, Record{}, first); !errors.Is(err, ErrChanged) {
		t.Errorf("recording on a claim of the same name that is gone: %v, want %v", err, ErrChanged)
	}
}

// A claim that is gone, or whose change the API server rejects permanently, cannot store a record. Other failures are
// temporary.
func TestAnnotationsNoRecord(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "uid"}}
	namesake := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "another"}}
	spoilt := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "uid",
		Annotations: map[string]string{AnnotationFleetLaunch: "x"}}}
	kind := schema.GroupKind{Group: karpv1.Group, Kind: "NodeClaim"}
	for _, test := range []struct {
		name   string
		stored *karpv1.NodeClaim
		fails  error // of a patch
		want   bool
	}{
		{"it is there", claim, nil, false},
		{"it is gone", nil, nil, true},
		{"another has its name", namesake, nil, true},
		{"its record cannot be read", spoilt, nil, true},
		{"it is not valid", claim, apierrors.NewInvalid(kind, "claim", nil), true},
		{"it goes at that moment", claim, apierrors.NewNotFound(schema.GroupResource{Resource: "nodeclaims"}, "claim"), true},
		{"another process writes it", claim, apierrors.NewConflict(schema.GroupResource{Resource: "nodeclaims"}, "claim", nil), false},
		{"the API server is busy", claim, apierrors.NewTooManyRequests("busy", 1), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			builder := fake.NewClientBuilder().WithScheme(scheme)
			if test.stored != nil {
				builder = builder.WithObjects(test.stored.DeepCopy())
			}
			c := interceptor.NewClient(builder.Build(), interceptor.Funcs{
				Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
					if test.fails != nil {
						return test.fails
					}
					return c.Patch(ctx, o, patch, opts...)
				},
			})
			a := &Annotations{Client: c, Live: c}
			err := a.Replace(t.Context(), claim, Record{}, Record{Batch: "b", Attempt: 1, Size: 1})
			switch {
			case errors.Is(err, ErrNoRecord) != test.want:
				t.Errorf("recording: errors.Is(err, ErrNoRecord) is %v, want %v, %v, want %v", errors.Is(err, ErrNoRecord), test.want, err, ErrNoRecord)
			case test.fails != nil && !errors.Is(err, test.fails):
				t.Errorf("recording: test.fails != nil && !errors.Is(err, test.fails), %v", err)
			}
			if _, err := a.Read(t.Context(), claim); errors.Is(err, ErrNoRecord) != (test.want && test.fails == nil) {
				t.Errorf("reading: %v", err)
			}
		})
	}
}

// The history of a claim shows whether it was ever part of a fleet launch, if enough of the history is known.
func TestNever(t *testing.T) {
	coordinator := Coordinator{Claim: "claim", UID: "uid"}
	first := Record{Batch: "a", Attempt: 1, Size: 1, Coordinator: coordinator}
	second := Record{Batch: "b", Attempt: 1, Size: 1, Coordinator: coordinator, PreviousTokens: first.previousTokens()}
	third := Record{Batch: "c", Attempt: 1, Size: 1, Coordinator: coordinator, PreviousTokens: second.previousTokens()}
	old := Record{Batch: "old", Attempt: 1, Size: 1}
	after := Record{Batch: "d", Attempt: 1, Size: 1, Coordinator: coordinator, PreviousTokens: old.previousTokens()}
	long := first
	for i := range 2 * maxPreviousTokens {
		long = Record{Batch: "x", Attempt: i + 1, Size: 1, Coordinator: coordinator, PreviousTokens: long.previousTokens()}
	}
	for _, test := range []struct {
		name       string
		now        Record
		token, was string
		want       bool
	}{
		{"it has none yet", Record{}, "t-1", "", false},
		{"it has it", first, "a-1", "", false},
		{"it has another, its first", first, "t-1", "", true},
		{"it still has the one before", first, "t-1", "a-1", false},
		{"it went on from the one before", second, "t-1", "a-1", true},
		{"it had it", third, "b-1", "a-1", false},
		{"it went on long ago", third, "t-1", "a-1", true},
		{"what was before is not known", third, "t-1", "z-1", false},
		{"an earlier version wrote it", old, "t-1", "", false},
		{"an earlier version wrote the one before", after, "t-1", "", false},
		{"it went on from that of an earlier version", after, "t-1", "old-1", true},
		{"it had too many", long, "t-1", "a-1", false},
		{"it had too many to know the first", long, "t-1", "", false},
	} {
		if got := test.now.neverHad(test.token, test.was); got != test.want {
			t.Errorf("%s: %v, want %v (past %q)", test.name, got, test.want, test.now.PreviousTokens)
		}
	}
	if n := len(strings.Fields(long.PreviousTokens)); n > maxPreviousTokens+1 {
		t.Errorf("%d earlier tokens are kept, want %d at most", n, maxPreviousTokens+1)
	}
}

// If two processes read the same claim, one of them writes.
func TestAnnotationsRace(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := karpv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim", UID: "uid"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(claim.DeepCopy()).Build()
	other := &Annotations{Client: c, Live: c}
	between := &Annotations{Client: c, Live: afterRead{c, func() {
		if err := other.Replace(t.Context(), claim, Record{}, Record{Batch: "theirs", Attempt: 1, Size: 1}); err != nil {
			t.Errorf("recording: %v", err)
		}
	}}}
	if err := between.Replace(t.Context(), claim, Record{}, Record{Batch: "ours", Attempt: 1, Size: 1}); err == nil {
		t.Error("a record that another process has written meanwhile was overwritten")
	}
	if e, err := other.Read(t.Context(), claim); err != nil || e.Batch != "theirs" {
		t.Errorf("recorded: %+v, %v", e, err)
	}
}

// afterRead calls a function after each read.
type afterRead struct {
	client.Reader
	do func()
}

func (r afterRead) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, o, opts...)
	r.do()
	return err
}

func TestEntryOf(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"none", ``, ""},
		{"good", `{"batch":"b","attempt":1,"size":2,"place":1,"at":"2026-01-01T00:00:00Z"}`, ""},
		{"not JSON", `x`, "invalid character"},
		{"no batch", `{"attempt":1,"size":2}`, "batch is missing"},
		{"no attempt", `{"batch":"b","size":2}`, "attempt is 0, want 1 or more"},
		{"place beyond the size", `{"batch":"b","attempt":1,"size":2,"place":2}`, "place is 2 of 2"},
	} {
		claim := &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: "claim",
			Annotations: map[string]string{AnnotationFleetLaunch: test.text}}}
		_, err := RecordOf(claim)
		switch {
		case err != nil && test.want == "":
			t.Errorf("%s: got error %v, want none", test.name, err)
		case err == nil && test.want != "":
			t.Errorf("%s: no error, want %q", test.name, test.want)
		case err != nil:
			for _, want := range []string{test.want, `NodeClaim "claim"`} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got error %q, want %q in it", test.name, err, want)
				}
			}
		}
	}
}

// The rate halves with each throttled call, down to a minimum, and recovers with successful calls.
func TestRateLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newRateLimiter(clock.RealClock{}, Rate{Burst: 2, PerSecond: 4})
		elapsed := func(calls int) time.Duration {
			began := time.Now()
			for range calls {
				if err := g.wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			return time.Since(began).Round(10 * time.Millisecond)
		}
		if d := elapsed(2); d != 0 {
			t.Errorf("a burst of 2 took %v", d)
		}
		if d := elapsed(4); d != time.Second {
			t.Errorf("4 calls at 4 a second took %v", d)
		}
		g.throttled()
		if d := elapsed(2); d != time.Second {
			t.Errorf("2 calls after one was throttled took %v, want 1s at half the rate", d)
		}
		for range 100 {
			g.throttled()
		}
		if d := elapsed(1); d != 10*time.Second {
			t.Errorf("a call after many were throttled took %v, want 10s", d)
		}
		for range 100 {
			g.succeeded()
		}
		if d := elapsed(4); d != time.Second {
			t.Errorf("4 calls after many passed took %v, want 1s at the full rate", d)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := g.wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("waiting without enough time: %v", err)
		}
	})
}

// A batch ends when no item is added for a while, after a second, or when it is full. Batches with other keys do not
// wait for it.
func TestBatcher(t *testing.T) {
	const idle = 100 * time.Millisecond
	for _, test := range []struct {
		name string
		full int
		gaps []time.Duration // before each item
		want []int           // sizes of the batches
		last time.Duration   // when the last batch is processed
	}{
		{"together", 9, []time.Duration{0, 0, 0}, []int{3}, idle},
		{"kept open", 9, []time.Duration{0, 90 * time.Millisecond, 90 * time.Millisecond}, []int{3}, 280 * time.Millisecond},
		{"apart", 9, []time.Duration{0, 200 * time.Millisecond}, []int{1, 1}, 300 * time.Millisecond},
		{"full", 2, []time.Duration{0, 0, 0}, []int{2, 1}, idle},
		{"for a second at most", 99, []time.Duration{0, 90e6, 90e6, 90e6, 90e6, 90e6, 90e6, 90e6, 90e6, 90e6, 90e6, 90e6, 90e6},
			[]int{12, 1}, 1180 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done := make(chan int, len(test.gaps))
				b := newBatcher(clock.RealClock{}, idle, test.full, func(_ string, items []int) { done <- len(items) })
				began := time.Now()
				for i, gap := range test.gaps {
					<-time.After(gap)
					b.add("key", i)
				}
				var got []int
				for range test.want {
					got = append(got, <-done)
				}
				if diff := cmp.Diff(test.want, got); diff != "" || time.Since(began) != test.last {
					t.Errorf("the last batch after %v, want %v; sizes (-want +got):\n%s", time.Since(began), test.last, diff)
				}
			})
		})
	}
}
