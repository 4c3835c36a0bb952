package removal_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller/removal"
)

// succeed replaces the process by one on a machine with a clock that is ahead of the API server's.
func (b *bench) succeed(before, ahead time.Duration) {
	b.t.Helper()
	b.pass(ahead - before)
	b.restart()
	b.brake.Ahead = func() time.Duration { return ahead }
}

// strays requests the removal of machines from..to without a NodePool, and counts the removed ones.
func (b *bench) strays(from, to int) (removed int, errs []error) {
	b.t.Helper()
	for i := from; i < to; i++ {
		verdicts, err := b.brake.Ask(b.t.Context(), removal.Case{Machine: machine("stray", i), Cause: removal.CauseStray, Cloud: removal.Alive})
		if err != nil {
			errs = append(errs, err)
		}
		if len(verdicts) == 1 && verdicts[0] == removal.Remove {
			removed++
		}
	}
	return removed, errs
}

// TestRecordAcrossClocks verifies that removals that a leader with a wrong clock records count for its successor for
// a whole window, and no longer.
func TestRecordAcrossClocks(t *testing.T) {
	for _, ahead := range []time.Duration{-15 * time.Minute, 15 * time.Minute} {
		b := newBench(t, map[string]int{"a": 50})
		b.succeed(0, ahead)
		if n := b.ill("a", 0, 10); n != 10 {
			t.Fatalf("%v: %d of 10 were removed", ahead, n)
		}
		b.succeed(ahead, 0)
		if n := b.ill("a", 10, 20); n != 0 {
			t.Errorf("%v: the successor removes %d more, want 0", ahead, n)
		}
		b.pass(12 * time.Minute)
		if n := b.ill("a", 20, 22); n != 2 {
			t.Errorf("%v: %d of 2 were removed after a window", ahead, n)
		}
	}
}

// TestPermissionOfAnotherClock verifies that the operator's time is compared with the API server's clock.
func TestPermissionOfAnotherClock(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50})
	const ahead = -15 * time.Minute
	b.succeed(0, ahead)
	b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, b.clock.Now().Add(-ahead).Add(time.Minute).Format(time.RFC3339))
	if n := b.ill("a", 0, 20); n != 20 {
		t.Errorf("%d of 20 were removed while the operator allows it", n)
	}
	b.pass(2 * time.Minute)
	if n := b.ill("a", 20, 40); n != 10 {
		t.Errorf("%d of 20 were removed after the permission has expired, want 10", n)
	}
}

// TestAllowedRemovalsDoNotCount verifies that removals that the operator allowed count for no NodePool, neither after
// the permission nor after the NodePool is gone.
func TestAllowedRemovalsDoNotCount(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 10})
	b.annotate("a", karpv1.AnnotationRemovalsAllowedUntil, b.clock.Now().Add(time.Minute).Format(time.RFC3339))
	if n := b.ill("a", 0, 40); n != 40 {
		t.Fatalf("%d of 40 were removed while the operator allows it", n)
	}
	if text := b.pool("a").Annotations[karpv1.AnnotationRemovals]; text != "" {
		t.Errorf("the NodePool has %q, want nothing", text)
	}
	b.pass(2 * time.Minute)
	if n := b.ill("b", 0, 1) + b.ill("a", 40, 41); n != 2 {
		t.Errorf("%d of 2 were removed after the permission has expired", n)
	}
}

// TestDeletedNodePool verifies that the counts for a NodePool end with it, and that its machines then have no
// NodePool.
func TestDeletedNodePool(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 50})
	if n := b.ill("a", 0, 50); n != 10 {
		t.Fatalf("%d of 50 were removed, want 10", n)
	}
	if err := b.api.Delete(t.Context(), b.pool("a")); err != nil {
		t.Fatal(err)
	}
	b.annotate("b", karpv1.AnnotationRemovalsAllowedUntil, b.clock.Now().Add(time.Minute).Format(time.RFC3339))
	if n := b.ill("b", 0, 50); n != 50 {
		t.Errorf("%d of 50 were removed while every NodePool allows it", n)
	}
	if n := b.ill("a", 10, 50); n != 40 {
		t.Errorf("%d of 40 machines of the deleted NodePool were removed while every NodePool allows it", n)
	}
	if _, held := b.pool("b").Annotations[karpv1.AnnotationRemovalsPaused]; held {
		t.Error("the other NodePool is paused")
	}
}

// TestRecordOfDeletedNodePool verifies that the counts for a deleted NodePool do not hold removals of existing ones.
func TestRecordOfDeletedNodePool(t *testing.T) {
	b := newBench(t, map[string]int{"a": 50, "b": 30})
	if n := b.ill("a", 0, 10); n != 10 {
		t.Fatalf("%d of 10 were removed", n)
	}
	if err := errors.Join(b.api.Delete(t.Context(), b.pool("a")), b.api.DeleteAllOf(t.Context(), &karpv1.NodeClaim{}, client.MatchingLabels{karpv1.LabelNodePool: "a"})); err != nil {
		t.Fatal(err)
	}
	if n := b.ill("b", 0, 1); n != 1 {
		t.Error("a removal of the other NodePool is held")
	}
}

// TestDisputeAfterRemoval verifies that a dispute takes precedence over a removal that was allowed before.
func TestDisputeAfterRemoval(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10})
	c := removal.Case{Machine: machine("a", 0), Pool: "a", Cause: "instance_status", Cloud: removal.Failing}
	if verdicts, err := b.brake.Ask(t.Context(), c); err != nil || verdicts[0] != removal.Remove {
		t.Fatalf("verdicts %v, error %v", verdicts, err)
	}
	c.Cloud, c.Node = removal.Gone, removal.Alive
	verdicts, err := b.brake.Ask(t.Context(), c)
	if diff := cmp.Diff([]removal.Verdict{removal.Keep}, verdicts); diff != "" || err != nil {
		t.Errorf("error %v, verdicts (-want +got):\n%s", err, diff)
	}
}

// TestStraysWithOneBadPool verifies that a NodePool that cannot be written does not hold machines without a NodePool:
// another one stores their record.
func TestStraysWithOneBadPool(t *testing.T) {
	b := newBench(t, map[string]int{"a": 5, "b": 5})
	b.deny, b.denied = true, "a"
	if n, errs := b.strays(0, 1); n != 1 || len(errs) != 0 {
		t.Fatalf("%d of 1 were removed, errors %v", n, errs)
	}
	b.deny = false
	b.restart()
	if n, errs := b.strays(1, 10); n != 2 || len(errs) != 0 {
		t.Errorf("%d more were removed after a restart, want 2, errors %v", n, errs)
	}
	b = newBench(t, map[string]int{"a": 5, "b": 5})
	b.deny = true
	if n, errs := b.strays(0, 1); n != 0 || len(errs) == 0 {
		t.Errorf("%d were removed and %d errors reported though no NodePool can be written", n, len(errs))
	}
}

// TestRecordOfNoneMoves verifies that the record of machines without a NodePool is always on one NodePool, whichever
// are created and deleted.
func TestRecordOfNoneMoves(t *testing.T) {
	b := newBench(t, map[string]int{"b": 5})
	if n, errs := b.strays(0, 2); n != 2 || len(errs) != 0 {
		t.Fatalf("%d of 2 were removed, errors %v", n, errs)
	}
	first := b.pool("b").DeepCopy()
	first.Name, first.UID, first.ResourceVersion, first.Annotations = "a", "", "", nil
	if err := b.api.Create(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	if n := b.ill("b", 0, 1); n != 1 {
		t.Fatal("a machine of the NodePool is not removed")
	}
	if text := b.pool("b").Annotations[karpv1.AnnotationRemovals]; !strings.Contains(text, "of-none:") {
		t.Errorf("the NodePool that has the record has %q after another one was created", text)
	}
	if err := b.api.Delete(t.Context(), b.pool("b")); err != nil {
		t.Fatal(err)
	}
	if err := b.brake.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	var pool karpv1.NodePool
	if err := b.api.Get(t.Context(), client.ObjectKey{Name: "a"}, &pool); err != nil {
		t.Fatal(err)
	}
	if text := pool.Annotations[karpv1.AnnotationRemovals]; !strings.Contains(text, "of-none:2026-01-01T12:00:00Z=2") {
		t.Errorf("the other NodePool has %q after the first is gone", text)
	}
}

// TestUncheckedDisputes verifies that a pause for machines in dispute that cannot be checked reports this.
func TestUncheckedDisputes(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10})
	var disputes []removal.Case
	var ids []string
	for i := range 5 {
		ids = append(ids, machine("a", i))
		disputes = append(disputes, removal.Case{Machine: ids[i], Pool: "a", Cause: removal.CauseMachineGone, Cloud: removal.Gone, Node: removal.Alive})
	}
	b.brake.Disputes(disputes)
	b.pass(21 * time.Minute)
	b.brake.Disputes(nil, ids...)
	if !b.brake.InDispute(ids[0]) || b.brake.InDispute(machine("a", 9)) {
		t.Error("a machine that cannot be checked is no longer in dispute, or another one is")
	}
	if err := b.brake.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = "5 machines in dispute could not be checked again, for 21m0s at most"
	if text := <-b.sink.Events; !strings.Contains(text, want) {
		t.Errorf("the event is %q, want %q", text, want)
	}
}
