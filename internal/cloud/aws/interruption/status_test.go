package interruption

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/awssim"
)

// A machine whose checks fail is replaced after two minutes, its drain over at once; one that recovers before is not.
// Each is counted once.
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
		if len(got.replaced) != 1 || after < 2*time.Minute || after > 3*time.Minute+time.Second || got.deadlines[w.ids[0]].After(got.replaced[w.ids[0]]) {
			t.Errorf("replaced after %v: %+v", after, got)
		}
		if diff := cmp.Diff(map[Category]int{CategorySystem: 1}, got.unhealthy); diff != "" {
			t.Errorf("unhealthy -want +got:\n%s", diff)
		}
	})
}

// A scheduled change that is far away is left to the polls, near its time the machine is replaced; one that was called
// off is nothing.
func TestScheduled(t *testing.T) {
	watching(t, 3, "on-demand", func(w *world) {
		soon, later := time.Now().Add(24*time.Hour).Truncate(time.Second), time.Now().Add(72*time.Hour).Truncate(time.Second)
		w.Must(w.Schedule(w.ids[0], "instance-stop", soon))
		w.Must(w.Schedule(w.ids[1], "instance-retirement", later))
		w.Must(w.Schedule(w.ids[2], "system-reboot", later))
		w.Must(w.EndSchedule(w.ids[2], "Canceled"))
		w.Pass(time.Hour)
		got := w.seen()
		if len(got.replaced) != 1 || !got.deadlines[w.ids[0]].Equal(soon) || got.received[ScheduledChange] != 3 || w.Queued() != 0 {
			t.Errorf("after an hour: %+v", got)
		}
		if diff := cmp.Diff(map[Category]int{CategoryEvent: 2}, got.unhealthy); diff != "" {
			t.Errorf("unhealthy -want +got:\n%s", diff)
		}
		w.Pass(24*time.Hour - time.Hour + time.Minute)
		if got := w.seen(); len(got.replaced) != 2 || !got.deadlines[w.ids[1]].Equal(later) || got.unhealthy[CategoryEvent] != 2 {
			t.Errorf("two days before: %+v", got)
		}
	})
}

// While statuses cannot be polled, a Health event is acted on at once: nobody would think of it again.
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

// Pages are all read, and a failed page is no recovery of what it would have listed.
func TestSweeps(t *testing.T) {
	watching(t, 12, "on-demand", func(w *world) {
		for _, id := range w.ids {
			w.Must(w.Impair(id, "instance"))
		}
		w.Pass(90 * time.Second)
		fault, err := w.Inject(awssim.Fault{Kind: awssim.FaultFail, Service: "ec2", Action: "DescribeInstanceStatus", Code: "RequestLimitExceeded"})
		w.Must(err)
		w.Pass(time.Minute)
		w.Clear(fault)
		w.Pass(2 * time.Minute)
		if got := w.seen(); len(got.replaced) != 12 || got.unhealthy[CategoryInstance] != 12 {
			t.Errorf("%d replaced, unhealthy %v", len(got.replaced), got.unhealthy)
		}
	})
}
