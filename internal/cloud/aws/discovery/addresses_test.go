package discovery

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// ledger is Addresses on a clock that is set by hand.
type ledger struct {
	*Addresses
	now time.Time
}

func newLedger() *ledger {
	l := &ledger{now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)}
	l.Addresses = NewAddresses(func() time.Time { return l.now }, 5*time.Minute)
	return l
}

func (l *ledger) seen(free map[string]int64) {
	var subnets []Subnet
	for id, n := range free {
		subnets = append(subnets, Subnet{ID: id, Free: n})
	}
	l.Seen(subnets, l.now)
}

var twoZones = []awsv1.Subnet{{ID: "a1", Zone: "a"}, {ID: "a2", Zone: "a"}, {ID: "b1", Zone: "b"}}

func (l *ledger) expect(t *testing.T, when string, id string, want int64) {
	t.Helper()
	if free, _ := l.Free(id); free != want {
		t.Errorf("%s: %d addresses free of %s, want %d", when, free, id, want)
	}
}

func chosen(t *testing.T, when string, h *Hold, want map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, h.Subnets); diff != "" {
		t.Errorf("%s (-want +got):\n%s", when, diff)
	}
}

// TestInFlight: launches that go on at the same time go to other subnets; what they did not use comes back.
func TestInFlight(t *testing.T) {
	l := newLedger()
	l.seen(map[string]int64{"a1": 100, "a2": 90, "b1": 30})
	need := map[string]int64{"a": 29, "b": 29, "c": 29}
	first := l.Hold(twoZones, need)
	chosen(t, "the fullest is taken", first, map[string]string{"a": "a1", "b": "b1"})
	second := l.Hold(twoZones, need)
	chosen(t, "then the other", second, map[string]string{"a": "a2", "b": "b1"})
	l.expect(t, "more than there are", "b1", 0)
	third := l.Hold(twoZones, need)
	chosen(t, "a full one is not chosen", third, map[string]string{"a": "a1"})
	second.Settle()
	second.Settle("b1")
	third.Settle()
	first.Settle("a1")
	l.expect(t, "used", "a1", 71)
	l.expect(t, "not used", "a2", 90)
	l.expect(t, "not used", "b1", 30)
}

// TestCounts: a count of EC2 replaces what was settled before it began, and nothing else.
func TestCounts(t *testing.T) {
	l := newLedger()
	need := map[string]int64{"b": 10}
	l.seen(map[string]int64{"b1": 100})
	l.now = l.now.Add(time.Second)
	settled, open := l.Hold(twoZones, need), l.Hold(twoZones, need)
	late := l.Hold(twoZones, need)
	settled.Settle("b1")
	began := l.now.Add(time.Second)
	l.now = l.now.Add(2 * time.Second)
	late.Settle("b1")
	l.Seen([]Subnet{{ID: "b1", Free: 89}}, began)
	l.expect(t, "one is counted, one is open, one was settled during the count", "b1", 69)
	l.Seen([]Subnet{{ID: "b1", Free: 100}}, began.Add(-time.Second))
	l.expect(t, "an older count that comes late", "b1", 69)
	open.Settle("b1")
	l.now = l.now.Add(time.Minute)
	l.seen(map[string]int64{"b1": 70})
	l.expect(t, "all are counted", "b1", 70)
}

// TestExhausted: a subnet that was refused is not launched into for three minutes, whatever EC2 counts; and one whose count
// is not known, or too old, only when there is no other.
func TestExhausted(t *testing.T) {
	l := newLedger()
	need := map[string]int64{"a": 1, "b": 1}
	chosen(t, "nothing is known: the first", l.Hold(twoZones, need), map[string]string{"a": "a1", "b": "b1"})
	l.seen(map[string]int64{"a2": 1, "b1": 50})
	h := l.Hold(twoZones, need)
	chosen(t, "known before unknown", h, map[string]string{"a": "a2", "b": "b1"})
	h.Settle()
	l.Exhausted("b1")
	chosen(t, "refused", l.Hold(twoZones, map[string]int64{"b": 1}), map[string]string{})
	l.now = l.now.Add(ExhaustedFor - time.Second)
	l.seen(map[string]int64{"b1": 50})
	chosen(t, "refused, and counted since", l.Hold(twoZones, map[string]int64{"b": 1}), map[string]string{})
	l.now = l.now.Add(time.Second)
	chosen(t, "after three minutes", l.Hold(twoZones, map[string]int64{"b": 1}), map[string]string{"b": "b1"})
	l.seen(map[string]int64{"b1": 0})
	chosen(t, "none left", l.Hold(twoZones, map[string]int64{"b": 1}), map[string]string{})
	l.now = l.now.Add(5 * time.Minute)
	chosen(t, "the count is too old", l.Hold(twoZones, map[string]int64{"b": 1}), map[string]string{"b": "b1"})
}
