package removal_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/karpenter-go/karpenter/internal/controller/removal"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// TestWhyWithStrays verifies that the text of a pause that strays cause counts them separately from the machines of
// claims.
func TestWhyWithStrays(t *testing.T) {
	b := newBench(t, map[string]int{"a": 0})
	for i := range 5 {
		if _, err := b.brake.Ask(t.Context(), removal.Case{Machine: machine("stray", i), Cause: removal.CauseStray, Cloud: removal.Alive}); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.brake.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	const want = "4 machines of the fleet were removed, are to be removed, or are in dispute, within 10m0s (removed: 3, Stray: 1). The limit is 3; NodeClaims show 0 machines now"
	text := b.texts()
	if !strings.Contains(text, want) {
		t.Errorf("the events are %q, want %q", text, want)
	}
	if !strings.Contains(text, "kubectl annotate nodepools --all --overwrite") || strings.Contains(text, "annotate nodepool a") {
		t.Errorf("the command is not that of strays: %q", text)
	}
}

// texts returns all events that have not been read.
func (b *bench) texts() string {
	var said []string
	for range len(b.sink.Events) {
		said = append(said, <-b.sink.Events)
	}
	return strings.Join(said, "\n")
}

// disputes puts n machines of a NodePool in dispute.
func (b *bench) disputes(pool string, n int) {
	b.t.Helper()
	var cases []removal.Case
	for i := range n {
		cases = append(cases, removal.Case{Machine: machine(pool, i), Pool: pool, Cause: removal.CauseMachineGone, Cloud: removal.Gone, Node: removal.Alive})
	}
	b.brake.Disputes(cases)
	if err := b.brake.Refresh(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
}

// TestPauseOfDisputes verifies that a pause that machines in dispute cause is in the metric, and that its event
// contains the command that ends it: the annotation does not remove machines in dispute. The event of a NodePool
// counts the machines of that NodePool.
func TestPauseOfDisputes(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10, "b": 40})
	b.disputes("a", 5)
	if got := testutil.ToFloat64(b.metrics.NodeClaimsRemovalsPaused.WithLabelValues("a")); got != 5 {
		t.Errorf("the metric is %v, want 5", got)
	}
	text := b.texts()
	if want := "5 machines of the NodePool were removed, are to be removed, or are in dispute, within 10m0s (removed: 0, MachineGone: 5)"; !strings.Contains(text, want) {
		t.Errorf("the event is %q, want %q", text, want)
	}
	if !strings.Contains(text, "kubectl delete nodeclaim") || strings.Contains(text, "annotate") {
		t.Errorf("the command is not that of disputes: %q", text)
	}
	b.disputes("a", 0)
	if got := testutil.ToFloat64(b.metrics.NodeClaimsRemovalsPaused.WithLabelValues("a")); got != 0 {
		t.Errorf("the metric is %v after the pause, want 0", got)
	}
}

// TestSecondPauseIsReported verifies that the event of a second pause is written however soon it begins, and so is one of
// another cause during a pause.
func TestSecondPauseIsReported(t *testing.T) {
	b := newBench(t, map[string]int{"a": 10})
	for pause := range 3 {
		b.disputes("a", 5)
		b.disputes("a", 6)
		if n := b.said(telemetry.ReasonRemovalsPaused); n != 1 {
			t.Errorf("pause %d: %d events for its start, want 1", pause, n)
		}
		b.pass(time.Minute)
		b.disputes("a", 0)
		if n := b.said(telemetry.ReasonRemovalsResumed); n != 1 {
			t.Errorf("pause %d: %d events for its end, want 1", pause, n)
		}
		b.pass(30 * time.Second)
	}
	b.disputes("a", 5)
	b.texts()
	if _, err := b.brake.Ask(t.Context(), removal.Case{Machine: machine("stray", 0), Cause: removal.CauseStray, Cloud: removal.Alive}); err != nil {
		t.Fatal(err)
	}
	if text := b.texts(); !strings.Contains(text, "annotate nodepools --all") {
		t.Errorf("the events are %q, want the command for strays", text)
	}
}
