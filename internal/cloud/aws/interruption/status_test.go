package interruption

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
)

// A machine whose checks fail is replaced after two minutes without time for a drain. One that recovers before is not
// replaced. Each is counted once.
func TestImpaired(t *testing.T) {
	watching(t, 3, "on-demand", func(w *world) {
		w.Must(w.Impair(w.ids[0], "system"))
		w.Must(w.Impair(w.ids[1], "instance"))
		began := time.Now()
		w.Pass(90 * time.Second)
		if got := w.seen(); len(got.replaced)+len(got.unhealthy) != 0 {
			t.Errorf("after 90 s: %+v", got)
		}
		w.Must(w.Impair(w.ids[1], ""))
		w.Pass(10 * time.Minute)
		got := w.seen()
		after := got.replaced[w.ids[0]].Sub(began)
		switch {
		case len(got.replaced) != 1:
			t.Errorf("len(got.replaced) is %v, want 1, %+v", len(got.replaced), got)
		case after < 2*time.Minute:
			t.Errorf("after is %v, want at least %v", after, 2*time.Minute)
		case after > 3*time.Minute+time.Second:
			t.Errorf("after is %v, want at most %v", after, 3*time.Minute+time.Second)
		case got.deadlines[w.ids[0]].After(got.replaced[w.ids[0]]):
			t.Errorf("got.deadlines[w.ids[0]].After(got.replaced[w.ids[0]]) is true, %+v", got)
		}
		if diff := cmp.Diff(map[Category]int{CategorySystem: 1}, got.unhealthy); diff != "" {
			t.Errorf("unhealthy -want +got:\n%s", diff)
		}
	})
}

// A machine of another controller's claim is not replaced because of its status, but because of a message.
func TestImpairedOfAnotherController(t *testing.T) {
	watching(t, 2, "on-demand", func(w *world) {
		w.locked(func() {
			other := w.claims[w.ids[1]]
			other.Other = true
			w.claims[w.ids[1]] = other
		})
		w.Must(w.Impair(w.ids[0], "system"))
		w.Must(w.Impair(w.ids[1], "system"))
		w.Pass(10 * time.Minute)
		got := w.seen()
		if _, ours := got.replaced[w.ids[0]]; !ours || len(got.replaced) != 1 || got.held.Troubled > 1 {
			t.Errorf("replaced %v and held %+v, want only %s", got.replaced, got.held, w.ids[0])
		}
		if diff := cmp.Diff(map[Category]int{CategorySystem: 1}, got.unhealthy); diff != "" {
			t.Errorf("unhealthy -want +got:\n%s", diff)
		}
		w.Must(w.Schedule(w.ids[1], "instance-stop", time.Now().Add(24*time.Hour)))
		w.Pass(time.Minute)
		if got := w.seen(); len(got.replaced) != 2 {
			t.Errorf("after a message: replaced %v, want both", got.replaced)
		}
	})
}

// A machine with a distant scheduled change is polled until the change is near, and then replaced. A canceled change
// has no effect.
func TestScheduled(t *testing.T) {
	watching(t, 3, "on-demand", func(w *world) {
		soon, later := time.Now().Add(24*time.Hour).Truncate(time.Second), time.Now().Add(72*time.Hour).Truncate(time.Second)
		w.Must(w.Schedule(w.ids[0], "instance-stop", soon))
		w.Must(w.Schedule(w.ids[1], "instance-retirement", later))
		w.Must(w.Schedule(w.ids[2], "system-reboot", later))
		w.Must(w.EndSchedule(w.ids[2], "Canceled"))
		w.Pass(time.Hour)
		got := w.seen()
		switch {
		case len(got.replaced) != 1:
			t.Errorf("after an hour: len(got.replaced) is %v, want 1, %+v", len(got.replaced), got)
		case !got.deadlines[w.ids[0]].Equal(soon):
			t.Errorf("after an hour: got.deadlines[w.ids[0]].Equal(soon) is false, %+v", got)
		case got.received[ScheduledChange] != 3:
			t.Errorf("after an hour: got.received[ScheduledChange] is %v, want 3", got.received[ScheduledChange])
		case w.Queued() != 0:
			t.Errorf("after an hour: w.Queued() is %v, want 0", w.Queued())
		}
		if diff := cmp.Diff(map[Category]int{CategoryEvent: 2}, got.unhealthy); diff != "" {
			t.Errorf("unhealthy -want +got:\n%s", diff)
		}
		w.Pass(24*time.Hour - time.Hour + time.Minute)
		switch got := w.seen(); {
		case len(got.replaced) != 2:
			t.Errorf("two days before: len(got.replaced) is %v, want 2, %+v", len(got.replaced), got)
		case !got.deadlines[w.ids[1]].Equal(later):
			t.Errorf("two days before: got.deadlines[w.ids[1]].Equal(later) is false, %+v", got)
		case got.unhealthy[CategoryEvent] != 2:
			t.Errorf("two days before: got.unhealthy[CategoryEvent] is %v, want 2", got.unhealthy[CategoryEvent])
		}
	})
}

// While statuses cannot be polled, a Health event is acted on immediately, because no later poll would find it.
func TestScheduledWithoutPolls(t *testing.T) {
	watching(t, 1, "on-demand", func(w *world) {
		_, err := w.Inject(awssim.Fault{Kind: awssim.FaultDeny, Service: "ec2", Action: "DescribeInstanceStatus"})
		w.Must(err)
		w.Pass(2 * time.Minute)
		w.Must(w.Schedule(w.ids[0], "instance-retirement", time.Now().Add(14*24*time.Hour)))
		w.Pass(time.Second)
		if got := w.seen(); len(got.replaced) != 1 {
			t.Errorf("%+v", got)
		}
	})
}

// All pages are read, and a failed page does not count as recovery of its machines.
func TestSweeps(t *testing.T) {
	watching(t, 12, "on-demand", func(w *world) {
		for _, id := range w.ids {
			w.Must(w.Impair(id, "instance"))
		}
		w.Pass(90 * time.Second)
		fault, err := w.Inject(awssim.Fault{Kind: awssim.FaultFail, Service: "ec2", Action: "DescribeInstanceStatus",
			Code: "RequestLimitExceeded"})
		w.Must(err)
		w.Pass(time.Minute)
		w.Clear(fault)
		w.Pass(2 * time.Minute)
		if got := w.seen(); len(got.replaced) != 12 || got.unhealthy[CategoryInstance] != 12 {
			t.Errorf("%d replaced, unhealthy %v", len(got.replaced), got.unhealthy)
		}
	})
}

// With an endpoint that ignores filters, returns unusual pages, or lacks or adds fields, no healthy machine is
// terminated, and a failing one is still replaced.
func TestStatusOfWrongAnswers(t *testing.T) {
	for _, kind := range []awssim.FaultKind{awssim.FaultIgnoreFilters, awssim.FaultOddPages, awssim.FaultOlderFields,
		awssim.FaultUnknownFields} {
		t.Run(string(kind), func(t *testing.T) {
			watching(t, 12, "on-demand", func(w *world) {
				_, err := w.Inject(awssim.Fault{Kind: kind})
				w.Must(err)
				w.Pass(time.Hour)
				if got := w.seen(); len(got.replaced)+len(got.unhealthy) != 0 {
					t.Errorf("of 12 healthy machines %d are replaced, %v count as unhealthy", len(got.replaced), got.unhealthy)
				}
				w.Must(w.Impair(w.ids[4], "system"))
				w.Pass(5 * time.Minute)
				if got := w.seen(); len(got.replaced) != 1 || got.replaced[w.ids[4]].IsZero() {
					t.Errorf("replaced %v, want %s", got.replaced, w.ids[4])
				}
			})
		})
	}
}

// Machines beyond the limit on removals stay, with an event on each claim. All failing machines are passed to May
// together, those that have failed longest first. A scheduled event with a deadline is acted on meanwhile.
func TestHeld(t *testing.T) {
	watching(t, 12, "on-demand", func(w *world) {
		w.Must(w.Impair(w.ids[7], "instance"))
		w.Pass(10 * time.Second)
		w.locked(func() {
			w.may = func(failing []Decision) (map[string]bool, error) {
				if failing[0].Instance != w.ids[7] && !w.claims[w.ids[7]].Deleting {
					w.Errorf("May is called for %s first, want the one that has failed longest", failing[0].Instance)
				}
				return map[string]bool{w.ids[7]: true}, nil
			}
		})
		for _, id := range slices.Concat(w.ids[:7], w.ids[8:]) {
			w.Must(w.Impair(id, "system"))
		}
		soon := time.Now().Add(24 * time.Hour).Truncate(time.Second)
		w.Must(w.Schedule(w.ids[3], "instance-retirement", soon))
		w.Pass(9 * time.Minute)
		got := w.seen()
		switch {
		case len(got.replaced) != 2:
			t.Errorf("len(got.replaced) is %v, want 2, replaced %v", len(got.replaced), got.replaced)
		case got.replaced[w.ids[7]].IsZero():
			t.Errorf("got.replaced[w.ids[7]].IsZero() is true, replaced %v, want %s", got.replaced, w.ids[7])
		case !got.deadlines[w.ids[3]].Equal(soon):
			t.Errorf("got.deadlines[w.ids[3]].Equal(soon) is false, deadlines %v, and %s", got.deadlines, w.ids[3])
		case got.held.Held != 11:
			t.Errorf("got.held.Held is %v, want 11", got.held.Held)
		}
		for _, id := range w.ids {
			if got.events[id+" InstanceUnhealthy"] == 0 {
				t.Errorf("no event for %s", id)
			}
		}
		for _, id := range w.ids {
			w.Must(w.Impair(id, ""))
		}
		w.Pass(time.Hour)
		if got := w.seen(); len(got.replaced) != 2 || got.held != (Held{}) {
			t.Errorf("after their recovery %d are replaced, held: %+v", len(got.replaced), got.held)
		}
	})
}

// Scheduled events whose time has passed have no deadline: they are subject to May like failing checks, from the queue
// and from polls.
func TestHeldWithoutDeadline(t *testing.T) {
	watching(t, 12, "on-demand", func(w *world) {
		var asked []Kind
		w.locked(func() {
			w.may = func(failing []Decision) (map[string]bool, error) {
				asked = append(asked, failing[0].Kind)
				return map[string]bool{w.ids[0]: true}, nil
			}
		})
		for _, id := range w.ids {
			w.Must(w.Schedule(id, "instance-retirement", time.Now().Add(-time.Hour)))
		}
		w.Pass(5 * time.Minute)
		got := w.seen()
		switch {
		case len(got.replaced) != 1:
			t.Errorf("len(got.replaced) is %v, want 1, replaced %v", len(got.replaced), got.replaced)
		case got.replaced[w.ids[0]].IsZero():
			t.Errorf("got.replaced[w.ids[0]].IsZero() is true, replaced %v, want only %s", got.replaced, w.ids[0])
		case got.held.Held != 11:
			t.Errorf("got.held.Held is %v, want 11", got.held.Held)
		case w.Queued() != 0:
			t.Errorf("w.Queued() is %v, want 0", w.Queued())
		case asked[0] != EventStatus:
			t.Errorf("asked[0] is %v, want %v", asked[0], EventStatus)
		}
		w.locked(func() { w.may = nil })
		w.Pass(2 * time.Minute)
		if got := w.seen(); len(got.replaced) != 12 || got.held.Held != 0 {
			t.Errorf("%d of 12 are replaced when May allows it, held %+v", len(got.replaced), got.held)
		}
	})
}

// A machine that May holds is replaced immediately when EC2 reclaims it.
func TestHeldIsInterrupted(t *testing.T) {
	watching(t, 2, "spot", func(w *world) {
		w.locked(func() { w.may = func([]Decision) (map[string]bool, error) { return nil, nil } })
		w.Must(w.Impair(w.ids[0], "system"))
		w.Pass(5 * time.Minute)
		if got := w.seen(); len(got.replaced) != 0 || got.held.Held != 1 {
			t.Errorf("replaced %v, held %+v", got.replaced, got.held)
		}
		w.Must(w.Interrupt(w.ids[0]))
		w.Pass(10 * time.Second)
		if got := w.seen(); got.replaced[w.ids[0]].IsZero() {
			t.Error("a held machine stays when EC2 reclaims it")
		}
	})
}

// A machine without a decision stays until there is one, and does not block other decisions.
func TestUndecided(t *testing.T) {
	watching(t, 3, "on-demand", func(w *world) {
		w.locked(func() {
			w.may = func([]Decision) (map[string]bool, error) {
				return map[string]bool{w.ids[1]: true}, errors.New("the API server is away")
			}
		})
		for _, id := range w.ids {
			w.Must(w.Impair(id, "instance"))
		}
		w.Pass(5 * time.Minute)
		switch got := w.seen(); {
		case len(got.replaced) != 1:
			t.Errorf("len(got.replaced) is %v, want 1, replaced %v", len(got.replaced), got.replaced)
		case got.replaced[w.ids[1]].IsZero():
			t.Errorf("got.replaced[w.ids[1]].IsZero() is true, replaced %v", got.replaced)
		case len(got.failed) == 0:
			t.Errorf("len(got.failed) is 0, failures %v", got.failed)
		}
		w.locked(func() { w.may = nil })
		w.Pass(5 * time.Minute)
		if got := w.seen(); len(got.replaced) != 3 {
			t.Errorf("replaced %v, want all", got.replaced)
		}
	})
}

// Deadlines are times of the API server's clock, whatever the local clock shows.
func TestDeadlineOfAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		watching(t, 2, "spot", func(w *world) {
			w.watcher.opts.Ahead = func() time.Duration { return ahead }
			w.Must(w.Impair(w.ids[0], "system"))
			w.Pass(5 * time.Minute)
			got := w.seen()
			if at := got.replaced[w.ids[0]]; at.IsZero() || !got.deadlines[w.ids[0]].Equal(at.Add(-ahead)) {
				t.Errorf("a clock that is %s ahead: replaced at %v, the drain ends at %v", ahead, at, got.deadlines[w.ids[0]])
			}
		})
	}
}

// A machine counts as failing only if EC2's summary is impaired and a check has failed.
func TestStatusesOf(t *testing.T) {
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	check := func(summary ec2types.SummaryStatus, details ...ec2types.InstanceStatusDetails) *ec2types.InstanceStatusSummary {
		return &ec2types.InstanceStatusSummary{Status: summary, Details: details}
	}
	failed, passed := ec2types.InstanceStatusDetails{Status: ec2types.StatusTypeFailed, ImpairedSince: &at},
		ec2types.InstanceStatusDetails{Status: ec2types.StatusTypePassed}
	for _, c := range []struct {
		name    string
		summary *ec2types.InstanceStatusSummary
		want    []Status
	}{
		{"none", nil, nil},
		{"empty", check(""), nil},
		{"ok", check(ec2types.SummaryStatusOk, passed), nil},
		{"ok with a failed check", check(ec2types.SummaryStatusOk, failed), nil},
		{"insufficient data", check(ec2types.SummaryStatusInsufficientData,
			ec2types.InstanceStatusDetails{Status: ec2types.StatusTypeInsufficientData}), nil},
		{"initializing", check(ec2types.SummaryStatusInitializing, ec2types.InstanceStatusDetails{Status: ec2types.StatusTypeInitializing}), nil},
		{"not applicable", check(ec2types.SummaryStatusNotApplicable), nil},
		{"impaired without details", check(ec2types.SummaryStatusImpaired), nil},
		{"impaired, all passed", check(ec2types.SummaryStatusImpaired, passed), nil},
		{"impaired", check(ec2types.SummaryStatusImpaired, passed, failed), []Status{{Instance: "i-1", Since: at}}},
		{"impaired, not since when", check(ec2types.SummaryStatusImpaired,
			ec2types.InstanceStatusDetails{Status: ec2types.StatusTypeFailed}), []Status{{Instance: "i-1"}}},
	} {
		for category, status := range map[Category]ec2types.InstanceStatus{
			CategoryInstance: {InstanceId: aws.String("i-1"), InstanceStatus: c.summary},
			CategorySystem:   {InstanceId: aws.String("i-1"), SystemStatus: c.summary},
		} {
			if diff := cmp.Diff(c.want, statusesOf(status, category, nil)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", c.name, category, diff)
			}
		}
	}
}
