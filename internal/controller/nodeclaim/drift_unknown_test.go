package nodeclaim

import (
	"errors"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestUnjudged verifies that a problem is news for the first claim that has it, and when the last one no longer has
// it.
func TestUnjudged(t *testing.T) {
	var u unknownClaims
	published := map[unknownCause]int{}
	publish := func(x unknownCause, n int) { published[x] = n }
	gone, silent, none := unknownCause{"general", causePool}, unknownCause{"general", causeProvider}, unknownCause{}
	for i, step := range []struct {
		claim      string
		now        unknownCause
		before     unknownCause
		left, have int
	}{
		{"a", gone, none, 0, 1},
		{"a", gone, gone, 1, 1},
		{"b", gone, none, 0, 2},
		{"a", silent, gone, 1, 1},
		{"b", none, gone, 0, 0},
		{"never seen", none, none, 0, 0},
	} {
		before, left, have := u.set(step.claim, step.now, publish)
		switch {
		case before != step.before:
			t.Errorf("step %d: before is %v, want %v", i, before, step.before)
		case left != step.left:
			t.Errorf("step %d: left is %v, want %v", i, left, step.left)
		case have != step.have:
			t.Errorf("step %d: have is %v, want %v", i, have, step.have)
		}
	}
	if diff := cmp.Diff(map[unknownCause]int{gone: 0, silent: 1}, published, cmp.AllowUnexported(unknownCause{})); diff != "" {
		t.Error(diff)
	}
}

// TestMarkDriftWithoutPool verifies that the claim of a deleted pool, which is deleted with it, is not in doubt. A
// claim without an owner is. Neither loses its condition.
func TestMarkDriftWithoutPool(t *testing.T) {
	lone := claimWith("a", karpv1.ConditionLaunched)
	lone.Labels = map[string]string{karpv1.LabelNodePool: "gone"}
	lone.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, "ImageDrift", "ImageDrift")
	owned := lone.DeepCopy()
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool", Name: "gone"}}
	var a DriftReconciler
	if d := a.markDrift(t.Context(), lone, nil); d == nil || d.cause != causePool {
		t.Errorf("claim without a pool: %v, want a doubt", d)
	}
	if d := a.markDrift(t.Context(), owned, nil); d != nil {
		t.Errorf("claim of a deleted pool: %v, want none", d)
	}
	for _, claim := range []*karpv1.NodeClaim{lone, owned} {
		if !claim.Condition(karpv1.ConditionDrifted).IsTrue() {
			t.Error("the condition was removed")
		}
	}
	unlaunched := claimWith("b")
	unlaunched.StatusConditions().SetTrueWithReason(karpv1.ConditionDrifted, "ImageDrift", "ImageDrift")
	if d := a.markDrift(t.Context(), unlaunched, nil); d != nil || isTrue(unlaunched, karpv1.ConditionDrifted) {
		t.Errorf("not launched: %v, drifted %t, want neither", d, isTrue(unlaunched, karpv1.ConditionDrifted))
	}
}

func TestShelves(t *testing.T) {
	timers, now := controller.Production(), born.Time
	var s catalogCache
	reads := 0
	var fails error
	ask := func(pool *karpv1.NodePool, at time.Time, want int) {
		t.Helper()
		_, err := s.types(pool, at, timers, func() ([]cloud.InstanceType, error) { reads++; return nil, fails })
		if reads != want || !errors.Is(err, fails) {
			t.Errorf("%d readings, error %v; want %d, %v", reads, err, want, fails)
		}
	}
	pool, other := &karpv1.NodePool{}, &karpv1.NodePool{}
	pool.UID, other.UID = "1", "2"
	ask(pool, now, 1)
	ask(pool, now.Add(timers.Catalog-1), 1)
	ask(other, now, 2)
	ask(pool, now.Add(timers.Catalog), 3)
	pool.Generation = 7
	ask(pool, now.Add(timers.Catalog), 4)
	fails, pool.Generation = errors.New("the cloud is silent"), 8
	ask(pool, now, 5)
	ask(pool, now.Add(timers.CatalogRetry-1), 5)
	ask(pool, now.Add(timers.CatalogRetry), 6)
}

// TestUnstampedIsQuiet verifies that a hash that is not updated yet is counted and not reported: after each upgrade,
// every pool has such claims for a moment.
func TestUnstampedIsQuiet(t *testing.T) {
	var lines []string
	ctx := ctrl.LoggerInto(t.Context(), funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{}))
	a := &DriftReconciler{Metrics: telemetry.New(prometheus.NewRegistry())} // without an event recorder
	claim := claimWith("a", karpv1.ConditionLaunched)
	claim.Labels = map[string]string{karpv1.LabelNodePool: "general"}
	a.reportUnknown(ctx, claim, &driftUnknown{cause: causeHash, why: cloud.ErrUnstamped})
	if n := testutil.ToFloat64(a.Metrics.NodeClaimsUnjudged.WithLabelValues("general", causeHash)); n != 1 {
		t.Errorf("%v claims are counted, want 1", n)
	}
	a.reportUnknown(ctx, claim, nil)
	if n := testutil.CollectAndCount(a.Metrics.NodeClaimsUnjudged); n != 0 || len(lines) > 0 {
		t.Errorf("afterward %d counts, log %q", n, lines)
	}
}
