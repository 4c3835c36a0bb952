package discovery

import (
	"testing"
	"time"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
)

// ledger is an Addresses with a clock that the test sets.
type ledger struct {
	*testing.T
	*Addresses
	now     time.Time
	refused map[string]bool
	class   *awsv1.EC2NodeClass
}

func newLedger(t *testing.T) *ledger {
	l := &ledger{T: t, now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), refused: map[string]bool{}, class: classOf(nil)}
	l.class.Status.Subnets = []awsv1.Subnet{{ID: "a1", Zone: "a"}, {ID: "a2", Zone: "a"}, {ID: "b1", Zone: "b"}}
	l.Addresses = NewAddresses(func() time.Time { return l.now }, 5*time.Minute, func(id string) bool { return l.refused[id] })
	return l
}

func (l *ledger) seen(free map[string]int64) {
	var subnets []Subnet
	for id, n := range free {
		subnets = append(subnets, Subnet{ID: id, Free: n})
	}
	l.Seen(subnets, l.now)
}

func (l *ledger) free(when, id string, want int64) {
	l.Helper()
	if free, _ := l.Free(id); free != want {
		l.Errorf("%s: %d addresses free of %s, want %d", when, free, id, want)
	}
}

// chooses checks the choice in a zone. An empty want means none.
func (l *ledger) chooses(when, zone string, addresses int64, want string) {
	l.Helper()
	if id, found := l.Choose(l.class, zone, addresses); id != want || found != (want != "") {
		l.Errorf("%s: chosen %q, %v; want %q", when, id, found, want)
	}
}

// TestInFlight checks that concurrent launches use different subnets, and that unused addresses are released.
func TestInFlight(t *testing.T) {
	l := newLedger(t)
	l.seen(map[string]int64{"a1": 100, "a2": 90, "b1": 30})
	l.chooses("the emptiest", "a", 29, "a1")
	l.chooses("then the other", "a", 29, "a2")
	l.chooses("then the first again", "a", 29, "a1")
	l.chooses("fewer than asked for, but some", "b", 58, "b1")
	l.chooses("none is left", "b", 29, "")
	l.chooses("a zone without a subnet", "c", 29, "")
	if id, found := l.ChooseCrowded(l.class, "b", 29); !found || id != "b1" {
		t.Errorf("crowded: chosen %q, %v; EC2 has counted 30 free", id, found)
	}
	l.Return("b1", 29)
	l.free("after the choices", "a1", 42)
	l.Return("a1", 29)
	l.Return("b1", 58)
	l.Return("b1", 58)
	l.free("one of two was used", "a1", 71)
	l.free("not used", "b1", 30)
	l.free("still aside", "a2", 61)
}

// TestRoom checks that the room of a zone is that of its emptiest subnet, less what is reserved, and not known as long
// as the count of one of them is not.
func TestRoom(t *testing.T) {
	l := newLedger(t)
	room := func(when, zone string, want int64, known bool) {
		t.Helper()
		if free, is := l.Room(l.class, zone); free != want || is != known {
			t.Errorf("%s: %d, %t, want %d, %t", when, free, is, want, known)
		}
	}
	room("nothing is known", "a", 0, false)
	l.seen(map[string]int64{"a1": 100})
	room("one of two is known", "a", 0, false)
	l.seen(map[string]int64{"a2": 90, "b1": 0})
	room("both are known", "a", 100, true)
	l.chooses("a launch", "a", 29, "a1")
	room("after a launch", "a", 90, true)
	l.refused["a2"] = true
	room("the emptiest is refused", "a", 71, true)
	room("full", "b", 0, true)
	room("no subnet", "c", 0, true)
}

// TestCounts checks that a count of EC2 replaces exactly the reservations made more than a minute before its request.
func TestCounts(t *testing.T) {
	l := newLedger(t)
	l.seen(map[string]int64{"b1": 100})
	l.chooses("first", "b", 10, "b1")
	l.now = l.now.Add(50 * time.Second)
	l.chooses("second", "b", 20, "b1")
	began := l.now.Add(11 * time.Second)
	l.now = l.now.Add(12 * time.Second)
	l.Seen([]Subnet{{ID: "b1", Free: 89}}, began)
	l.free("the first is counted, the second may not be", "b1", 69)
	l.Seen([]Subnet{{ID: "b1", Free: 100}}, began.Add(-time.Second))
	l.free("an older count that comes late", "b1", 69)
	l.Return("b1", 10)
	l.free("what was counted is not given back", "b1", 69)
	l.now = l.now.Add(time.Minute)
	l.seen(map[string]int64{"b1": 70})
	l.free("all are counted", "b1", 70)
}

// TestExhausted checks that a refused subnet is not used, whatever EC2's count is, and that a subnet with an unknown or
// outdated count is used only if there is no other.
func TestExhausted(t *testing.T) {
	l := newLedger(t)
	l.chooses("nothing is known: the first", "a", 1, "a1")
	l.seen(map[string]int64{"a2": 2, "b1": 50})
	l.chooses("known before unknown", "a", 1, "a2")
	l.refused["b1"] = true
	l.chooses("refused", "b", 1, "")
	l.refused["a2"] = true
	l.chooses("unknown before refused", "a", 1, "a1")
	l.refused = map[string]bool{}
	l.chooses("no longer refused", "b", 1, "b1")
	l.seen(map[string]int64{"b1": 0})
	l.chooses("full", "b", 1, "")
	if id, found := l.ChooseCrowded(l.class, "b", 1); found {
		t.Errorf("chosen %q, which is full according to EC2", id)
	}
	l.now = l.now.Add(5 * time.Minute)
	l.chooses("the count is too old", "b", 1, "b1")
}
