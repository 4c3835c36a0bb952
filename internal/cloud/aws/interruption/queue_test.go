package interruption

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/testing/awssim"
	"github.com/karpenter-go/karpenter/internal/testing/awstest"
)

// A notice arrives two minutes before the machine is reclaimed. Its claim is deleted within a second, with the
// remaining time as its deadline, and the offering is marked as unavailable.
func TestSpotNotice(t *testing.T) {
	watching(t, 3, "spot", func(w *world) {
		began := time.Now()
		w.Must(w.Interrupt(w.ids[0]))
		w.Must(w.Interrupt(w.ids[2]))
		w.Pass(time.Second)
		got := w.seen()
		switch {
		case len(got.replaced) != 2:
			t.Errorf("replaced: len(got.replaced) is %v, want 2, %v", len(got.replaced), got.replaced)
		case got.replaced[w.ids[0]].Sub(began) > time.Second:
			t.Errorf("replaced: got.replaced[w.ids[0]].Sub(began) is %v, want at most %v", got.replaced[w.ids[0]].Sub(began), time.Second)
		case got.replaced[w.ids[2]].IsZero():
			t.Errorf("replaced: got.replaced[w.ids[2]].IsZero() is true, %v", got.replaced)
		}
		if d := got.deadlines[w.ids[0]].Sub(began); d < 119*time.Second || d > 121*time.Second {
			t.Errorf("the deadline is %v after the notice", d)
		}
		sold := Offering{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}
		if diff := cmp.Diff([]Offering{sold, sold}, got.sold); diff != "" {
			t.Errorf("unavailable -want +got:\n%s", diff)
		}
		switch diff := cmp.Diff(map[Kind]int{SpotInterrupted: 2},
			got.received); {
		case diff != "":
			t.Errorf(`diff is %v, want ""`, diff)
		case got.deleted != 2:
			t.Errorf("got.deleted is %v, want 2", got.deleted)
		case len(got.waited) != 2:
			t.Errorf("len(got.waited) is %v, want 2", len(got.waited))
		case w.Queued() != 0:
			t.Errorf("w.Queued() is %v, want 0", w.Queued())
		}
		w.Pass(3 * time.Minute)
		switch got := w.seen(); {
		case len(got.replaced) != 2:
			t.Errorf("after the termination: len(got.replaced) is %v, want 2, %+v", len(got.replaced), got)
		case got.received[InstanceTerminated] != 4:
			t.Errorf("after the termination: got.received[InstanceTerminated] is %v, want 4", got.received[InstanceTerminated])
		case len(got.failed)+len(got.troubles) != 0:
			t.Errorf("after the termination: len(got.failed)+len(got.troubles) is %v, want 0, %+v", len(got.failed)+len(got.troubles), got)
		}
	})
}

// A hundred notices at once are handled within seconds, and deleted ten at a time.
func TestWave(t *testing.T) {
	watching(t, 100, "spot", func(w *world) {
		for _, id := range w.ids {
			w.Must(w.Interrupt(id))
		}
		w.Pass(5 * time.Second)
		got := w.seen()
		switch {
		case len(got.replaced) != 100:
			t.Errorf("len(got.replaced) is %v, want 100", len(got.replaced))
		case got.deleted != 100:
			t.Errorf("got.deleted is %v, want 100", got.deleted)
		case w.Queued() != 0:
			t.Errorf("w.Queued() is %v, want 0", w.Queued())
		}
		if calls := got.calls["DeleteMessageBatch OK"]; calls > 30 {
			t.Errorf("%d calls to delete 100 messages", calls)
		}
	})
}

// An idle queue requires three calls a minute.
func TestIdle(t *testing.T) {
	watching(t, 1, "spot", func(w *world) {
		w.Pass(10 * time.Minute)
		got := w.seen()
		if n := got.calls["ReceiveMessage OK"]; n < 29 || n > 31 {
			t.Errorf("%d calls of ReceiveMessage in ten minutes", n)
		}
		if n := got.calls["DescribeInstanceStatus OK"]; n < 36 || n > 44 { // four checks
			t.Errorf("%d calls of DescribeInstanceStatus in ten minutes", n)
		}
		if len(got.calls) != 2 {
			t.Errorf("calls: %v", got.calls)
		}
	})
}

// Every kind of message, including corrupted ones, is counted and deleted, and a corrupted one does not affect the
// others.
func TestMessages(t *testing.T) {
	watching(t, 2, "spot", func(w *world) {
		w.Must(w.Rebalance(w.ids[0]))
		for _, how := range []awssim.Spoilage{awssim.SpoilTruncate, awssim.SpoilForeign, awssim.SpoilUnknown, awssim.SpoilNext} {
			w.Must(w.Spoil(how))
		}
		w.Must(w.Rebalance(w.ids[0])) // truncated
		w.Send("\x00 no event at all")
		w.Must(w.Interrupt(w.ids[1]))
		w.Must(w.Spoil(awssim.SpoilDuplicate))
		w.Pass(time.Second)
		got := w.seen()
		want := map[Kind]int{RebalanceRecommendation: 1, Malformed: 3, NoOp: 1, SpotInterrupted: 3}
		if diff := cmp.Diff(want, got.received); diff != "" {
			t.Errorf("received -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[Kind]int{SpotInterrupted: 1}, got.foreign); diff != "" {
			t.Errorf("foreign -want +got:\n%s", diff)
		}
		switch {
		case got.spoilt != 3:
			t.Errorf("got.spoilt is %v, want 3", got.spoilt)
		case got.deleted != 8:
			t.Errorf("got.deleted is %v, want 8", got.deleted)
		case w.Queued() != 0:
			t.Errorf("w.Queued() is %v, want 0", w.Queued())
		}
		if len(got.replaced) != 1 || got.replaced[w.ids[1]].IsZero() {
			t.Errorf("replaced: %v", got.replaced)
		}
	})
}

// A machine that is stopped or terminated externally is replaced. For one that the controller itself terminates, there
// is nothing to do.
func TestStateChange(t *testing.T) {
	watching(t, 2, "on-demand", func(w *world) {
		w.locked(func() {
			c := w.claims[w.ids[1]]
			c.Deleting = true
			w.claims[w.ids[1]] = c
		})
		for _, id := range w.ids {
			w.Must(w.Terminate(id))
		}
		w.Pass(time.Minute)
		switch got := w.seen(); {
		case len(got.replaced) != 1:
			t.Errorf("len(got.replaced) is %v, want 1, %+v", len(got.replaced), got)
		case got.replaced[w.ids[0]].IsZero():
			t.Errorf("got.replaced[w.ids[0]].IsZero() is true, %+v", got)
		case len(got.deadlines)+len(got.sold) != 0:
			t.Errorf("len(got.deadlines)+len(got.sold) is %v, want 0, %+v", len(got.deadlines)+len(got.sold), got)
		case got.received[InstanceTerminated] != 4:
			t.Errorf("got.received[InstanceTerminated] is %v, want 4", got.received[InstanceTerminated])
		}
	})
}

// A forged or replayed notice that an instance has stopped or terminated changes nothing while EC2 shows the instance as
// running. For two minutes the notice is delivered again, because EC2's lists may be older than its notices.
func TestForgedStateChange(t *testing.T) {
	for _, state := range []string{"stopping", "stopped", "shutting-down", "terminated"} {
		t.Run(state, func(t *testing.T) {
			watching(t, 2, "on-demand", func(w *world) {
				for _, id := range w.ids {
					w.Send(fmt.Sprintf(`{"version": "0", "source": "aws.ec2", "detail-type": "EC2 Instance State-change Notification", "time": %q,
						"detail": {"instance-id": %q, "state": %q}}`, time.Now().UTC().Format(time.RFC3339), id, state))
				}
				w.Pass(time.Minute)
				if got := w.seen(); len(got.replaced) != 0 || w.Queued() != 2 {
					w.Fatalf("after a minute %v are replaced and %d notices wait, want none and 2", got.replaced, w.Queued())
				}
				w.Must(w.Terminate(w.ids[0]))
				w.Pass(5 * time.Minute)
				got := w.seen()
				if len(got.replaced) != 1 || got.replaced[w.ids[0]].IsZero() {
					t.Errorf("replaced %v, want only %s, which really terminates", got.replaced, w.ids[0])
				}
				if got.events[w.ids[1]+" InstanceStateDisputed"] != 1 {
					t.Errorf("%d events InstanceStateDisputed, want 1: %v", got.events[w.ids[1]+" InstanceStateDisputed"], got.events)
				}
				if w.Queued() != 0 {
					t.Errorf("%d notices wait, want none", w.Queued())
				}
			})
		})
	}
}

// A message that cannot be handled is delivered again.
func TestActFails(t *testing.T) {
	watching(t, 1, "spot", func(w *world) {
		w.locked(func() { w.refuse = 2 })
		began := time.Now()
		w.Must(w.Interrupt(w.ids[0]))
		w.Pass(time.Second)
		switch got := w.seen(); {
		case len(got.replaced) != 0:
			t.Errorf("at first: len(got.replaced) is %v, want 0, replaced %v", len(got.replaced), got.replaced)
		case w.Queued() != 1:
			t.Errorf("at first: w.Queued() is %v, want 1", w.Queued())
		case len(got.failed) != 1:
			t.Errorf("at first: len(got.failed) is %v, want 1, failed %q", len(got.failed), got.failed)
		case !strings.Contains(got.failed[0], "acting on spot_interrupted of nodeclaim claim-0: the API server is away"):
			t.Errorf(`at first: got.failed[0] lacks "acting on spot_interrupted of nodeclaim claim-0: the API server is away", failed %q`,
				got.failed)
		}
		w.Pass(time.Minute)
		switch got := w.seen(); {
		case got.replaced[w.ids[0]].Sub(began) > 41*time.Second:
			t.Errorf("after a minute: got.replaced[w.ids[0]].Sub(began) is %v, want at most %v", got.replaced[w.ids[0]].Sub(began), 41*time.Second)
		case len(got.failed) != 2:
			t.Errorf("after a minute: len(got.failed) is %v, want 2, after the notice, failed %q", len(got.failed), got.failed)
		case w.Queued() != 0:
			t.Errorf("after a minute: w.Queued() is %v, want 0", w.Queued())
		}
	})
}

// Actions on a claim are remembered until its reader shows them: the same action is not repeated, but an earlier
// deadline is set.
func TestStaleClaims(t *testing.T) {
	watching(t, 1, "spot", func(w *world) {
		w.locked(func() { w.stale = true })
		w.Must(w.Impair(w.ids[0], "system"))
		w.Pass(90 * time.Second)
		w.Must(w.Interrupt(w.ids[0]))
		w.Must(w.Spoil(awssim.SpoilDuplicate))
		w.Pass(time.Second)
		first := w.seen()
		w.Pass(time.Minute)
		got := w.seen()
		if first.received[SpotInterrupted] != 2 || !got.replaced[w.ids[0]].Equal(first.replaced[w.ids[0]]) {
			t.Errorf("replaced at %v, then at %v; received %v", first.replaced, got.replaced, first.received)
		}
		if now, before := got.deadlines[w.ids[0]], first.deadlines[w.ids[0]]; !now.Before(before) {
			t.Errorf("the failed check left the deadline at %v, was %v", now, before)
		}
	})
}

// The queue does not respond for a minute: calls time out, and messages of that time are received afterwards.
func TestFrozenQueue(t *testing.T) {
	watching(t, 1, "spot", func(w *world) {
		w.Pass(25 * time.Second)
		fault, err := w.Inject(awssim.Fault{Kind: awssim.FaultFreeze, Service: "sqs"})
		w.Must(err)
		w.Pass(21 * time.Second) // the pending poll ends
		w.Must(w.Interrupt(w.ids[0]))
		noticed := time.Now()
		w.Pass(time.Minute)
		got := w.seen()
		if len(got.replaced) != 0 || got.calls["ReceiveMessage NoAnswer"] < 2 {
			t.Errorf("frozen: %+v", got)
		}
		if len(got.troubles) != 1 || !strings.HasPrefix(got.troubles[0], "receiving: SQS ReceiveMessage: ") {
			t.Errorf("troubles while the queue does not respond: %q", got.troubles)
		}
		w.Clear(fault)
		w.Pass(mostQueueWait + hidden + time.Second)
		got = w.seen()
		if after := got.replaced[w.ids[0]].Sub(noticed); after < 0 || after > 2*time.Minute {
			t.Errorf("replaced %v after the notice", after)
		}
		if !slices.Equal(got.troubles[1:], []string{"receiving: <nil>"}) || w.Queued() != 0 {
			t.Errorf("troubles %q, %d messages remain", got.troubles, w.Queued())
		}
	})
}

// Responses are lost. Messages whose receipt was lost are delivered again after they were hidden, and those whose
// deletion was lost are gone. No action is repeated.
func TestLostAnswers(t *testing.T) {
	watching(t, 2, "spot", func(w *world) {
		for _, action := range []string{"ReceiveMessage", "DeleteMessageBatch"} {
			_, err := w.Inject(awssim.Fault{Kind: awssim.FaultLose, Service: "sqs", Action: action, Count: 1})
			w.Must(err)
		}
		w.Pass(21 * time.Second) // faults apply to calls when they begin
		began := time.Now()
		w.Must(w.Interrupt(w.ids[0]))
		w.Must(w.Interrupt(w.ids[1]))
		w.Pass(time.Minute)
		got := w.seen()
		switch {
		case len(got.replaced) != 2:
			t.Errorf("len(got.replaced) is %v, want 2, replaced %v", len(got.replaced), got.replaced)
		case got.replaced[w.ids[0]].Sub(began) > 45*time.Second:
			t.Errorf("got.replaced[w.ids[0]].Sub(began) is %v, want at most %v", got.replaced[w.ids[0]].Sub(began), 45*time.Second)
		case w.Queued() != 0:
			t.Errorf("w.Queued() is %v, want 0", w.Queued())
		}
		if got.calls["ReceiveMessage NoAnswer"] != 1 || got.calls["DeleteMessageBatch NoAnswer"] != 1 {
			t.Errorf("calls: %v", got.calls)
		}
	})
}

// A missing permission and expired credentials are reported once, with the solution. The loops keep trying, and report
// when the problem is resolved.
func TestTroubles(t *testing.T) {
	watching(t, 1, "spot", func(w *world) {
		faults := map[string]int{}
		for _, action := range []string{"ReceiveMessage", "DescribeInstanceStatus"} {
			fault, err := w.Inject(awssim.Fault{Kind: awssim.FaultDeny, Action: action})
			w.Must(err)
			faults[action] = fault
		}
		w.Pass(30 * time.Minute)
		got := w.seen()
		switch {
		case len(got.troubles) != 2:
			t.Errorf("troubles: len(got.troubles) is %v, want 2, %q", len(got.troubles), got.troubles)
		case !contains(got.troubles, "receiving: SQS ReceiveMessage",
			`needs the permission sqs:ReceiveMessage on the queue "interruptions"`):
			t.Errorf("troubles: contains(got.troubles, \"receiving: SQS ReceiveMessage\", `needs the permission sqs:ReceiveMessage on the queue \"interruptions\"`) is false, %q", got.troubles)
		case !contains(got.troubles, "polling: EC2 DescribeInstanceStatus (request ", "needs the permission ec2:DescribeInstanceStatus: "):
			t.Errorf(`troubles: contains(got.troubles, "polling: EC2 DescribeInstanceStatus (request ", "needs the permission ec2:DescribeInstanceStatus: ") is false, %q`, got.troubles)
		}
		if n := got.calls["ReceiveMessage AccessDenied"] + got.calls["ReceiveMessage AccessDeniedException"]; n < 80 || n > 100 {
			t.Errorf("calls in half an hour: %v", got.calls)
		}
		w.Clear(0)
		w.Pass(10 * time.Minute)
		w.ExpireCredentials(awstest.Key)
		w.Pass(10 * time.Minute)
		switch got := w.seen(); {
		case len(got.troubles) != 6:
			t.Errorf("troubles: len(got.troubles) is %v, want 6, %q", len(got.troubles), got.troubles)
		case !slices.Contains(got.troubles, "receiving: <nil>"):
			t.Errorf("troubles: got.troubles lacks %v, %q", "receiving: <nil>", got.troubles)
		case !slices.Contains(got.troubles, "polling: <nil>"):
			t.Errorf("troubles: got.troubles lacks %v, %q", "polling: <nil>", got.troubles)
		case !contains(got.troubles[4:], "receiving: ", "credentials are not valid, or no longer"):
			t.Errorf(`troubles: contains(got.troubles[4:], "receiving: ", "credentials are not valid, or no longer") is false, %q`, got.troubles)
		case !contains(got.troubles[4:], "polling: ", "credentials are not valid, or no longer"):
			t.Errorf(`troubles: contains(got.troubles[4:], "polling: ", "credentials are not valid, or no longer") is false, %q`, got.troubles)
		}
		w.Must(w.Interrupt(w.ids[0]))
		w.Pass(30 * time.Second)
		w.RenewCredentials(awstest.Key)
		w.Pass(mostQueueWait + time.Second)
		if got := w.seen(); len(got.replaced) != 1 {
			t.Errorf("the notice was not received after the credentials were renewed: %+v", got)
		}
		denied, err := w.Inject(awssim.Fault{Kind: awssim.FaultDeny, Action: "DeleteMessageBatch"})
		w.Must(err)
		w.Must(w.Rebalance(w.ids[0]))
		w.Pass(time.Minute)
		w.Clear(denied)
		w.Pass(time.Minute)
		got = w.seen()
		var reported []string
		for _, text := range got.troubles {
			if strings.HasPrefix(text, "deleting: ") {
				reported = append(reported, text)
			}
		}
		switch {
		case len(reported) != 2:
			t.Errorf("troubles with deleting: len(told) is %v, want 2, %q", len(reported), reported)
		case !strings.Contains(reported[0], "needs the permission sqs:DeleteMessage on"):
			t.Errorf(`troubles with deleting: told[0] lacks "needs the permission sqs:DeleteMessage on", %q`, reported)
		case reported[1] != "deleting: <nil>":
			t.Errorf(`troubles with deleting: told[1] is %v, want "deleting: <nil>"`, reported[1])
		case w.Queued() != 0:
			t.Errorf("troubles with deleting: w.Queued() is %v, want 0", w.Queued())
		}
	})
}

// contains reports whether one of the texts has the prefix and the part.
func contains(texts []string, prefix, part string) bool {
	return slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, prefix) && strings.Contains(s, part) })
}

// If a proxy returns empty responses immediately, there is a pause between calls. Messages of SQS are received when it
// is back.
func TestEmptyAnswers(t *testing.T) {
	watching(t, 1, "spot", func(w *world) {
		for _, f := range []awssim.Fault{{Kind: awssim.FaultFail}, {Kind: awssim.FaultGarble, ContentType: "application/x-amz-json-1.0"}} {
			f.Service, f.Action = "sqs", "ReceiveMessage"
			_, err := w.Inject(f)
			w.Must(err)
		}
		w.Pass(2 * time.Minute)
		w.locked(func() {
			if n := w.calls["ReceiveMessage OK"]; n < 30 || n > 130 {
				t.Errorf("called %d times in two minutes, want once a second", n)
			}
		})
		w.Clear(0)
		w.Must(w.Interrupt(w.ids[0]))
		w.Pass(time.Minute)
		w.locked(func() {
			if len(w.replaced) != 1 {
				t.Errorf("replaced %v, want the machine that is reclaimed", w.replaced)
			}
		})
	})
}

// A missing queue is reported with its name.
func TestNoQueue(t *testing.T) {
	watching(t, 1, "spot", func(w *world) {
		opts := w.options()
		opts.Queue = "elsewhere"
		lost, err := NewWatcher(w.watcher.sqs, w.watcher.ec2, opts)
		w.Must(err)
		url := ""
		_, err = lost.receive(w.Context(), &url)
		switch {
		case err == nil:
			t.Errorf("no error")
		case !absent(err):
			t.Errorf("absent(err) is false, error %v", err)
		case !strings.Contains(err.Error(), `the queue "elsewhere" does not exist in this account and region`):
			t.Errorf("err.Error() lacks `the queue \"elsewhere\" does not exist in this account and region`, error %v", err)
		}
		opts.Queue = ""
		nameless, err := NewWatcher(w.watcher.sqs, w.watcher.ec2, opts)
		w.Must(err)
		if err := nameless.RunQueue(w.Context()); err == nil || !strings.Contains(err.Error(), "its name is empty") {
			t.Errorf("error %v", err)
		}
	})
	if _, err := NewWatcher(nil, nil, Options{}); err == nil {
		t.Error("a watcher without Claims and Act is accepted")
	}
}
