package interruption

import (
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
		if len(got.replaced) != 2 || got.replaced[w.ids[0]].Sub(began) > time.Second || got.replaced[w.ids[2]].IsZero() {
			t.Errorf("replaced: %v", got.replaced)
		}
		if d := got.deadlines[w.ids[0]].Sub(began); d < 119*time.Second || d > 121*time.Second {
			t.Errorf("the deadline is %v after the notice", d)
		}
		sold := Offering{Type: "m5.large", Zone: "us-east-1a", CapacityType: "spot"}
		if diff := cmp.Diff([]Offering{sold, sold}, got.sold); diff != "" {
			t.Errorf("unavailable -want +got:\n%s", diff)
		}
		if diff := cmp.Diff(map[Kind]int{SpotInterrupted: 2},
			got.received); diff != "" || got.deleted != 2 || len(got.waited) != 2 || w.Queued() != 0 {
			t.Errorf("deleted %d of 2, %d waited, %d remain; received -want +got:\n%s", got.deleted, len(got.waited), w.Queued(), diff)
		}
		w.Pass(3 * time.Minute)
		if got := w.seen(); len(got.replaced) != 2 || got.received[InstanceTerminated] != 4 || len(got.failed)+len(got.troubles) != 0 {
			t.Errorf("after the termination: %+v", got)
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
		if len(got.replaced) != 100 || got.deleted != 100 || w.Queued() != 0 {
			t.Errorf("%d replaced, %d messages deleted, %d remain", len(got.replaced), got.deleted, w.Queued())
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
		if n := got.calls["DescribeInstanceStatus OK"]; n < 27 || n > 33 {
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
		if got.spoilt != 3 || got.deleted != 8 || w.Queued() != 0 {
			t.Errorf("%d corrupted, %d deleted, %d remain", got.spoilt, got.deleted, w.Queued())
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
		if got := w.seen(); len(got.replaced) != 1 || got.replaced[w.ids[0]].IsZero() || len(got.deadlines)+len(got.sold) != 0 || got.received[InstanceTerminated] != 4 {
			t.Errorf("%+v", got)
		}
	})
}

// A message that cannot be handled is delivered again.
func TestActFails(t *testing.T) {
	watching(t, 1, "spot", func(w *world) {
		w.locked(func() { w.refuse = 2 })
		began := time.Now()
		w.Must(w.Interrupt(w.ids[0]))
		w.Pass(time.Second)
		if got := w.seen(); len(got.replaced) != 0 || w.Queued() != 1 || len(got.failed) != 1 || !strings.Contains(got.failed[0],
			"acting on spot_interrupted of nodeclaim claim-0: the API server is away") {
			t.Errorf("at first: replaced %v, failed %q, %d remain", got.replaced, got.failed, w.Queued())
		}
		w.Pass(time.Minute)
		if got := w.seen(); got.replaced[w.ids[0]].Sub(began) > 41*time.Second || len(got.failed) != 2 || w.Queued() != 0 {
			t.Errorf("after a minute: replaced %v after the notice, failed %q, %d remain", got.replaced[w.ids[0]].Sub(began), got.failed, w.Queued())
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
		if len(got.replaced) != 2 || got.replaced[w.ids[0]].Sub(began) > 45*time.Second || w.Queued() != 0 {
			t.Errorf("replaced %v, %d messages remain", got.replaced, w.Queued())
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
		if len(got.troubles) != 2 || !contains(got.troubles, "receiving: SQS ReceiveMessage",
			`needs the permission sqs:ReceiveMessage on the queue "interruptions"`) ||
			!contains(got.troubles, "polling: EC2 DescribeInstanceStatus (request ", "needs the permission ec2:DescribeInstanceStatus: ") {
			t.Errorf("troubles: %q", got.troubles)
		}
		if n := got.calls["ReceiveMessage AccessDenied"] + got.calls["ReceiveMessage AccessDeniedException"]; n < 80 || n > 100 {
			t.Errorf("calls in half an hour: %v", got.calls)
		}
		w.Clear(0)
		w.Pass(10 * time.Minute)
		w.ExpireCredentials(awstest.Key)
		w.Pass(10 * time.Minute)
		if got := w.seen(); len(got.troubles) != 6 || !slices.Contains(got.troubles, "receiving: <nil>") || !slices.Contains(got.troubles,
			"polling: <nil>") ||
			!contains(got.troubles[4:], "receiving: ", "credentials are not valid, or no longer") || !contains(got.troubles[4:],
			"polling: ", "credentials are not valid, or no longer") {
			t.Errorf("troubles: %q", got.troubles)
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
		var told []string
		for _, text := range got.troubles {
			if strings.HasPrefix(text, "deleting: ") {
				told = append(told, text)
			}
		}
		if len(told) != 2 || !strings.Contains(told[0],
			"needs the permission sqs:DeleteMessage on") || told[1] != "deleting: <nil>" || w.Queued() != 0 {
			t.Errorf("troubles with deleting: %q; %d messages remain", told, w.Queued())
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
		if err == nil || !absent(err) || !strings.Contains(err.Error(), `there is no queue "elsewhere" in this account and region`) {
			t.Errorf("error %v", err)
		}
		opts.Queue = ""
		nameless, err := NewWatcher(w.watcher.sqs, w.watcher.ec2, opts)
		w.Must(err)
		if err := nameless.RunQueue(w.Context()); err == nil || !strings.Contains(err.Error(), "it has no name") {
			t.Errorf("error %v", err)
		}
	})
	if _, err := NewWatcher(nil, nil, Options{}); err == nil {
		t.Error("a watcher without Claims and Act is accepted")
	}
}
