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
		switch {
		case !d.Replace:
			t.Errorf("d.Replace is false, a notice %s, in advance: %+v", ahead, d)
		case d.Deadline.IsZero():
			t.Errorf("d.Deadline.IsZero() is true, a notice %s, in advance: %+v", ahead, d)
		case d.Deadline.After(sent.Add(2 * time.Minute)):
			t.Errorf("d.Deadline.After(sent.Add(2*time.Minute)) is true, a notice %s, in advance: %+v", ahead, d)
		}
	}
}

func TestDecide(t *testing.T) {
	now := sent.Add(3 * time.Second)
	claim := Claim{Name: "web-1", UID: "uid-1", Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}
	onDemand := claim
	onDemand.CapacityType = "on-demand"
	reserved := claim
	reserved.CapacityType, reserved.ReservationID = "reserved", "cr-1"
	with := func(change func(*Claim)) Claim {
		c := claim
		change(&c)
		return c
	}
	minute, hour := time.Minute, time.Hour
	taken := Notice{Kind: SpotInterrupted, Sent: sent, At: sent.Add(2 * time.Minute)}
	sold := &Offering{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}
	retired := func(at time.Time) Notice {
		return Notice{Kind: ScheduledChange, Sent: sent, At: at, What: "instance-retirement"}
	}
	for name, test := range map[string]struct {
		notice  Notice
		claim   Claim
		replace bool
		until   time.Time
		sold    *Offering
		events  []string
	}{
		"spot": {taken, claim, true, taken.At, sold, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, by a clock that is ahead": {Notice{Kind: SpotInterrupted, At: now.Add(time.Hour)}, claim, true,
			now.Add(2 * time.Minute), sold, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, without a time": {Notice{Kind: SpotInterrupted}, claim, true, now.Add(2 * time.Minute),
			sold, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, of a claim that is not": {taken, onDemand, true, taken.At, nil, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, of a claim that goes already": {taken, with(func(c *Claim) { c.Deleting = true }), false, taken.At,
			sold, []string{"SpotInterrupted!"}},
		"spot, of a claim that ends sooner": {taken, with(func(c *Claim) { c.Deleting, c.Deadline = true, now.Add(time.Minute) }),
			false, time.Time{}, sold, []string{"SpotInterrupted!"}},
		"spot, of a claim that ends later": {taken, with(func(c *Claim) { c.Deleting, c.Deadline = true, now.Add(time.Hour) }),
			false, taken.At, sold, []string{"SpotInterrupted!"}},
		"spot, and a grace period within it": {taken, with(func(c *Claim) { c.Grace = &minute }), true, time.Time{},
			sold, []string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"spot, and a grace period beyond it": {taken, with(func(c *Claim) { c.Grace = &hour }), true, taken.At, sold,
			[]string{"SpotInterrupted!", "TerminatingOnInterruption!"}},
		"reservation": {Notice{Kind: ReservationInterrupted, At: taken.At}, reserved, true,
			taken.At, &Offering{"m5.large", "us-east-1a", "reserved", "cr-1"},
			[]string{"CapacityReservationInstanceInterrupted!", "TerminatingOnInterruption!"}},
		"reservation, of a claim without one": {Notice{Kind: ReservationInterrupted, At: taken.At}, onDemand, true,
			taken.At, nil, []string{"CapacityReservationInstanceInterrupted!", "TerminatingOnInterruption!"}},
		"recommendation": {Notice{Kind: RebalanceRecommendation}, claim, false, time.Time{}, nil,
			[]string{"SpotRebalanceRecommendation"}},
		"stopped": {Notice{Kind: InstanceStopped, At: sent, What: "stopping"}, onDemand,
			true, time.Time{}, nil, []string{"InstanceStopping!", "TerminatingOnInterruption!"}},
		"terminated": {Notice{Kind: InstanceTerminated, At: sent, What: "terminated"},
			onDemand, true, time.Time{}, nil, []string{"InstanceTerminating!", "TerminatingOnInterruption!"}},
		"terminated by us": {Notice{Kind: InstanceTerminated, At: sent}, with(func(c *Claim) { c.Deleting = true }),
			false, time.Time{}, nil, []string{"InstanceTerminating!"}},
		"retired soon": {retired(now.Add(48 * time.Hour)), onDemand, true, now.Add(48 * time.Hour),
			nil, []string{"InstanceUnhealthy!", "TerminatingOnInterruption!"}},
		"retired in two weeks": {retired(now.Add(14 * 24 * time.Hour)), onDemand, false, time.Time{},
			nil, []string{"InstanceUnhealthy"}},
		"retired some time": {retired(time.Time{}), onDemand, true, time.Time{}, nil,
			[]string{"InstanceUnhealthy!", "TerminatingOnInterruption!"}},
		"retired, and late": {retired(now.Add(-time.Hour)), onDemand, true, time.Time{}, nil,
			[]string{"InstanceUnhealthy!", "TerminatingOnInterruption!"}},
		"a check that fails": {Notice{Kind: SystemStatus}, onDemand, true, now, nil,
			[]string{"InstanceUnhealthy!", "TerminatingOnInterruption!"}},
		"a check that fails, seen again": {Notice{Kind: InstanceStatus},
			with(func(c *Claim) { c.Deleting, c.Deadline = true, now.Add(-time.Minute) }), false, time.Time{}, nil, []string{"InstanceUnhealthy!"}},
		"nothing": {Notice{Kind: NoOp}, claim, false, time.Time{}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := Decide(test.notice, idA, test.claim, Rules{Now: now, Lead: 48 * time.Hour})
			switch {
			case d.Replace != test.replace:
				t.Errorf("d.Replace is %v, want %v", d.Replace, test.replace)
			case !d.Deadline.Equal(test.until):
				t.Errorf("d.Deadline.Equal(test.until) is false, by %v, by %v", d.Deadline, test.until)
			case d.Idle() != (!test.replace && test.until.IsZero()):
				t.Errorf("d.Idle() is %v, want %v, want %v, by %v", d.Idle(), (!test.replace && test.until.IsZero()), test.replace, test.until)
			}
			if diff := cmp.Diff(test.sold, d.SoldOut); diff != "" {
				t.Errorf("unavailable -want +got:\n%s", diff)
			}
			var events []string
			for _, e := range d.Events {
				if e.Warning {
					e.Reason += "!"
				}
				events = append(events, e.Reason)
			}
			if diff := cmp.Diff(test.events, events); diff != "" {
				t.Errorf("events -want +got:\n%s", diff)
			}
		})
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
	want("one is over, one is planned again", sweep(CategoryEvent, 0, stop, reboot, over("[Cancelled]"), over("Soon:")),
		"event_status "+idA+" instance-stop", "event_status "+idA+" system-reboot new", "event_status "+idB+" system-reboot new")
}
