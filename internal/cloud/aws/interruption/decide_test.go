package interruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	idA = "i-0123456789abcdef0"
	idB = "i-0fedcba9876543210"
)

var sent = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// Whatever time a spot notice has, the claim is deleted immediately, and its drain ends within two minutes.
func TestDecideWithAnyTime(t *testing.T) {
	for _, ahead := range []time.Duration{-1000 * time.Hour, -time.Second, 0, time.Second, 2 * time.Minute,
		3 * time.Minute, 1000 * time.Hour} {
		d := Decide(Notice{Kind: SpotInterrupted, At: sent.Add(ahead)}, idA, Claim{Name: "a", CapacityType: spot},
			Rules{Now: sent, Lead: time.Hour})
		if !d.Replace {
			t.Errorf("a notice %s in advance: the claim is not replaced: %+v", ahead, d)
		}
		if most := sent.Add(2 * time.Minute); d.Deadline.IsZero() || d.Deadline.After(most) {
			t.Errorf("a notice %s in advance: the deadline is %v, want one until %v", ahead, d.Deadline, most)
		}
	}
}

// received is the time at which the tests get their notices.
var received = sent.Add(3 * time.Second)

// claimWith returns a claim of a spot instance, changed.
func claimWith(change func(*Claim)) Claim {
	c := Claim{Name: "web-1", UID: "uid-1", Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}
	change(&c)
	return c
}

func onDemand(c *Claim) { c.CapacityType = "on-demand" }

// decision is a notice about a claim, and the wanted decision.
type decision struct {
	notice  Notice
	claim   Claim
	replace bool
	until   time.Time
	sold    *Offering
	events  []string
}

func (c decision) check(t *testing.T) {
	d := Decide(c.notice, idA, c.claim, Rules{Now: received, Lead: 48 * time.Hour})
	if d.Replace != c.replace {
		t.Errorf("replace is %t, want %t", d.Replace, c.replace)
	}
	if !d.Deadline.Equal(c.until) {
		t.Errorf("the deadline is %v, want %v", d.Deadline, c.until)
	}
	if idle := !c.replace && c.until.IsZero(); d.Idle() != idle {
		t.Errorf("idle is %t, want %t", d.Idle(), idle)
	}
	if diff := cmp.Diff(c.sold, d.SoldOut); diff != "" {
		t.Errorf("unavailable -want +got:\n%s", diff)
	}
	var events []string
	for _, e := range d.Events {
		if e.Warning {
			e.Reason += "!"
		}
		events = append(events, e.Reason)
	}
	if diff := cmp.Diff(c.events, events); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

func TestDecideAboutInterruptions(t *testing.T) {
	minute, hour := time.Minute, time.Hour
	claim := claimWith(func(*Claim) {})
	reserved := claimWith(func(c *Claim) { c.CapacityType, c.ReservationID = "reserved", "cr-1" })
	taken := Notice{Kind: SpotInterrupted, Sent: sent, At: sent.Add(2 * time.Minute)}
	sold := &Offering{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}
	for name, test := range map[string]decision{
		"spot": {taken, claim, true, taken.At, sold, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, by a clock that is ahead": {Notice{Kind: SpotInterrupted, At: received.Add(time.Hour)}, claim, true,
			received.Add(2 * time.Minute), sold, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, without a time": {Notice{Kind: SpotInterrupted}, claim, true, received.Add(2 * time.Minute),
			sold, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, of a claim that is not": {taken, claimWith(onDemand), true, taken.At, nil, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, of a claim that goes already": {taken, claimWith(func(c *Claim) { c.Deleting = true }), false, taken.At,
			sold, []string{"SpotInterrupted!"}},
		"spot, of a claim that ends sooner": {taken, claimWith(func(c *Claim) { c.Deleting, c.Deadline = true, received.Add(time.Minute) }),
			false, time.Time{}, sold, []string{"SpotInterrupted!"}},
		"spot, of a claim that ends later": {taken, claimWith(func(c *Claim) { c.Deleting, c.Deadline = true, received.Add(time.Hour) }),
			false, taken.At, sold, []string{"SpotInterrupted!"}},
		"spot, and a grace period within it": {taken, claimWith(func(c *Claim) { c.Grace = &minute }), true, time.Time{},
			sold, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, and a grace period beyond it": {taken, claimWith(func(c *Claim) { c.Grace = &hour }), true, taken.At, sold,
			[]string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"reservation": {Notice{Kind: ReservationInterrupted, At: taken.At}, reserved, true,
			taken.At, &Offering{"m5.large", "us-east-1a", "reserved", "cr-1"},
			[]string{"CapacityReservationInstanceInterrupted!", "TerminatingOnInterruption!"}},
		"reservation, of a claim without one": {Notice{Kind: ReservationInterrupted, At: taken.At}, claimWith(onDemand), true,
			taken.At, nil, []string{"CapacityReservationInstanceInterrupted!", "TerminatingOnInterruption!"}},
		"block": {Notice{Kind: BlockExpiring, At: received.Add(10 * time.Minute)}, reserved, true, received.Add(10 * time.Minute), nil,
			[]string{"CapacityBlockExpiring!", "TerminatingOnInterruption!"}},
		"recommendation": {Notice{Kind: RebalanceRecommendation}, claim, false, time.Time{}, nil,
			[]string{"SpotRebalanceRecommendation"}},
	} {
		t.Run(name, test.check)
	}
}

func TestDecideAboutStates(t *testing.T) {
	claim := claimWith(onDemand)
	retired := func(at time.Time) Notice {
		return Notice{Kind: ScheduledChange, Sent: sent, At: at, What: "instance-retirement"}
	}
	for name, test := range map[string]decision{
		"stopped": {Notice{Kind: InstanceStopped, At: sent, What: "stopping"}, claim,
			true, time.Time{}, nil, []string{"InstanceStopping!", "TerminatingOnInterruption!"}},
		"terminated": {Notice{Kind: InstanceTerminated, At: sent, What: "terminated"},
			claim, true, time.Time{}, nil, []string{"InstanceTerminating!", "TerminatingOnInterruption!"}},
		"terminated by us": {Notice{Kind: InstanceTerminated, At: sent}, claimWith(func(c *Claim) { c.Deleting = true }),
			false, time.Time{}, nil, []string{"InstanceTerminating!"}},
		"retired soon": {retired(received.Add(48 * time.Hour)), claim, true, received.Add(48 * time.Hour),
			nil, []string{"InstanceUnhealthy!", "TerminatingOnInterruption!"}},
		"retired in two weeks": {retired(received.Add(14 * 24 * time.Hour)), claim, false, time.Time{},
			nil, []string{"InstanceUnhealthy"}},
		"retired some time": {retired(time.Time{}), claim, true, time.Time{}, nil,
			[]string{"InstanceUnhealthy!", "TerminatingOnInterruption!"}},
		"retired, and late": {retired(received.Add(-time.Hour)), claim, true, time.Time{}, nil,
			[]string{"InstanceUnhealthy!", "TerminatingOnInterruption!"}},
		"a check that fails": {Notice{Kind: SystemStatus}, claim, true, received, nil,
			[]string{"InstanceUnhealthy!", "TerminatingOnInterruption!"}},
		"a check that fails, seen again": {Notice{Kind: InstanceStatus},
			claimWith(func(c *Claim) { c.Deleting, c.Deadline = true, received.Add(-time.Minute) }), false, time.Time{}, nil, []string{"InstanceUnhealthy!"}},
		"nothing": {Notice{Kind: NoOp}, claimWith(func(*Claim) {}), false, time.Time{}, nil, nil},
	} {
		t.Run(name, test.check)
	}
}

// A check counts once it has failed for two minutes, an event immediately unless it is over, and each is counted once.
func TestChecks(t *testing.T) {
	checks := NewChecks()
	sweep := func(category Category, after time.Duration, list ...Status) []string {
		var got []string
		for _, s := range checks.Notices(category, list, sent.Add(after)) {
			text := string(s.Kind) + " " + s.Instances[0] + " " + s.What
			if checks.Count(s) {
				text += " new"
			}
			got = append(got, text)
		}
		return got
	}
	want := func(what string, got []string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
	a, b := Status{Instance: idA, Since: sent}, Status{Instance: idB}
	want("at first", sweep(CategorySystem, 0, b, a))
	want("EC2 says since when", sweep(CategorySystem, 2*time.Minute, b, Status{Instance: idA, Since: sent}),
		"system_status "+idA+"  new", "system_status "+idB+"  new")
	want("once more", sweep(CategorySystem, 3*time.Minute, a), "system_status "+idA+" ")
	want("another category begins anew", sweep(CategoryInstance, 3*time.Minute, b))
	want("what was well begins anew", sweep(CategorySystem, 4*time.Minute, a, b), "system_status "+idA+" ")
	want("and counts as new", sweep(CategorySystem, 6*time.Minute, b), "system_status "+idB+"  new")
	stop := Status{Instance: idA, Code: "instance-stop", NotBefore: sent}
	over := func(how string) Status {
		return Status{Instance: idB, Code: "system-reboot", Description: how + " The instance is scheduled for a reboot"}
	}
	want("events", sweep(CategoryEvent, 0, stop, over("[Completed]"), over("[Canceled]"), stop), "event_status "+idA+" instance-stop new")
	reboot := Status{Instance: idA, Code: "system-reboot"}
	want("one is over, one is planned again", sweep(CategoryEvent, 0, stop, reboot, over("[Canceled]"), over("Soon:")),
		"event_status "+idA+" instance-stop", "event_status "+idA+" system-reboot new", "event_status "+idB+" system-reboot new")
}
