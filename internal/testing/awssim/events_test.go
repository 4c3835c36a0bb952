package awssim

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"
)

// spotInstance launches a spot instance and returns its ID.
func (w *world) spotInstance(ctx context.Context) string {
	w.Helper()
	w.template(ctx, "nodes", nil)
	out, err := w.ec2.CreateFleet(ctx, fleetOf(1, spotType, w.way("m5.large", zoneA)))
	w.must(err)
	w.pass(time.Minute)
	return launched(out)[0]
}

// receive receives all messages in the queue. It waits up to 20 s for the first one.
func (w *world) receive(ctx context.Context) []envelope {
	w.Helper()
	url, err := w.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("queue")})
	w.must(err)
	var events []envelope
	for wait := int32(20); ; wait = 0 {
		out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url.QueueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: wait})
		w.must(err)
		if len(out.Messages) == 0 {
			return events
		}
		for _, m := range out.Messages {
			var e envelope
			if err := json.Unmarshal([]byte(*m.Body), &e); err != nil {
				e = envelope{DetailType: "malformed"}
			}
			events = append(events, e)
			_, err = w.sqs.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: url.QueueUrl, ReceiptHandle: m.ReceiptHandle})
			w.must(err)
		}
	}
}

func (e envelope) summary() string {
	detail, ok := e.Detail.(map[string]any)
	if !ok {
		return e.DetailType
	}
	state, _ := detail["state"].(string)
	return strings.TrimSpace(e.DetailType + " " + state)
}

func summaries(events []envelope) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.summary())
	}
	return all
}

// The end of a spot instance is announced two minutes in advance. All states have events.
func TestInterruption(t *testing.T) {
	in(t, Options{Queue: "queue"}, func(ctx context.Context, w *world) {
		id := w.spotInstance(ctx)
		states := "EC2 Instance State-change Notification "
		if diff := cmp.Diff([]string{states + "pending", states + "running"}, summaries(w.receive(ctx))); diff != "" {
			t.Errorf("events of the launch -want +got:\n%s", diff)
		}
		reported := make(chan []envelope)
		go func() { reported <- w.receive(ctx) }()
		w.pass(5 * time.Second)
		began := time.Now()
		w.must(w.Interrupt(id))
		events := <-reported
		if elapsed := time.Since(began); elapsed > 100*time.Millisecond {
			t.Errorf("a long poll returned %v after the notice", elapsed)
		}
		if diff := cmp.Diff([]string{"EC2 Spot Instance Interruption Warning"}, summaries(events)); diff != "" {
			t.Fatalf("notice -want +got:\n%s", diff)
		}
		e := events[0]
		want := map[string]any{"instance-id": id, "instance-action": "terminate"}
		switch diff := cmp.Diff(want, e.Detail); {
		case diff != "":
			t.Errorf(`diff is %v, want ""`, diff)
		case e.Version != "0":
			t.Errorf(`e.Version is %v, want "0"`, e.Version)
		case e.Source != "aws.ec2":
			t.Errorf(`e.Source is %v, want "aws.ec2"`, e.Source)
		case e.Resources[0] != "arn:aws:ec2:us-east-1a:instance/"+id:
			t.Errorf("e.Resources[0] is %v, want %v", e.Resources[0], "arn:aws:ec2:us-east-1a:instance/"+id)
		}
		w.pass(2*time.Minute - time.Second)
		if s := w.state(ctx, id); s != "running" {
			t.Errorf("before two minutes have passed: %s", s)
		}
		w.pass(time.Second)
		if s := w.state(ctx, id); s != "shutting-down" {
			t.Errorf("after two minutes: %s", s)
		}
		w.pass(time.Minute)
		if diff := cmp.Diff([]string{states + "shutting-down", states + "terminated"}, summaries(w.receive(ctx))); diff != "" {
			t.Errorf("events of the termination -want +got:\n%s", diff)
		}
	})
}

// All other kinds of events, and corrupted messages.
func TestEvents(t *testing.T) {
	in(t, Options{Queue: "queue"}, func(ctx context.Context, w *world) {
		id := w.spotInstance(ctx)
		w.receive(ctx)
		w.must(w.Rebalance(id))
		w.must(w.Schedule(id, "instance-retirement", time.Now().Add(24*time.Hour)))
		for _, how := range []Spoilage{SpoilDuplicate, SpoilTruncate, SpoilForeign, SpoilUnknown} {
			w.must(w.Spoil(how))
		}
		want := []string{"EC2 Instance Rebalance Recommendation", "AWS Health Event", "AWS Health Event", "malformed",
			"Object Created", "EC2 Spot Instance Interruption Warning"}
		events := w.receive(ctx)
		if diff := cmp.Diff(want, summaries(events)); diff != "" {
			t.Fatalf("events -want +got:\n%s", diff)
		}
		detail := events[1].Detail.(map[string]any)
		entity := detail["affectedEntities"].([]any)[0].(map[string]any)["entityValue"]
		switch {
		case entity != id:
			t.Errorf("health event: entity is %v, want %v", entity, id)
		case detail["service"] != "EC2":
			t.Errorf(`health event: detail["service"] is %v, want "EC2"`, detail["service"])
		case detail["eventTypeCategory"] != "scheduledChange":
			t.Errorf(`health event: detail["eventTypeCategory"] is %v, want "scheduledChange"`, detail["eventTypeCategory"])
		}
		status, err := w.ec2.DescribeInstanceStatus(ctx,
			&ec2.DescribeInstanceStatusInput{Filters: []ec2types.Filter{{Name: aws.String("event.code"), Values: []string{"instance-retirement"}}}})
		w.must(err)
		switch {
		case len(status.InstanceStatuses) != 1:
			t.Errorf("status: len(status.InstanceStatuses) is %v, want 1, %+v", len(status.InstanceStatuses), status.InstanceStatuses)
		case *status.InstanceStatuses[0].InstanceId != id:
			t.Errorf("status: *status.InstanceStatuses[0].InstanceId is %v, want %v, %+v", *status.InstanceStatuses[0].InstanceId,
				id, status.InstanceStatuses)
		case status.InstanceStatuses[0].Events[0].NotBefore == nil:
			t.Errorf("status: status.InstanceStatuses[0].Events[0].NotBefore is nil, %+v", status.InstanceStatuses)
		}
		w.must(w.Impair(id, "system"))
		status, err = w.ec2.DescribeInstanceStatus(ctx,
			&ec2.DescribeInstanceStatusInput{Filters: []ec2types.Filter{{Name: aws.String("system-status.status"), Values: []string{"impaired"}}}})
		w.must(err)
		if len(status.InstanceStatuses) != 1 || status.InstanceStatuses[0].SystemStatus.Details[0].ImpairedSince == nil {
			t.Errorf("impaired: %+v", status.InstanceStatuses)
		}
		w.must(w.Spoil(SpoilNext))
		w.must(w.Interrupt(id))
		if diff := cmp.Diff([]string{"malformed"}, summaries(w.receive(ctx))); diff != "" {
			t.Errorf("a corrupted notice -want +got:\n%s", diff)
		}
		w.must(w.EndSchedule(id, "Completed"))
		if d := w.instances[id].events[0].description; !strings.HasPrefix(d, "[Completed]") {
			t.Errorf("description %q", d)
		}
	})
}

// A message is delivered again if it is not deleted in time. It is gone after its deletion, and after its retention.
func TestQueue(t *testing.T) {
	in(t, Options{Queue: "queue"}, func(ctx context.Context, w *world) {
		_, err := w.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("other")})
		w.refused(err, "AWS.SimpleQueueService.NonExistentQueue")
		url, err := w.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("queue")})
		w.must(err)
		_, err = w.sqs.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: url.QueueUrl, MessageBody: aws.String("hello")})
		w.must(err)
		receive := func(wait int32) []string {
			out, err := w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url.QueueUrl, VisibilityTimeout: 20,
				WaitTimeSeconds: wait, MaxNumberOfMessages: 10})
			w.must(err)
			var receipts []string
			for _, m := range out.Messages {
				receipts = append(receipts, *m.ReceiptHandle)
			}
			return receipts
		}
		first, hidden := receive(0), receive(0)
		began := time.Now()
		second := receive(20)
		switch {
		case len(first) != 1:
			t.Fatalf("len(first) is %v, want 1, received %v", len(first), first)
		case len(hidden) != 0:
			t.Fatalf("len(hidden) is %v, want 0, then %v", len(hidden), hidden)
		case len(second) != 1:
			t.Fatalf("len(second) is %v, want 1, then %v", len(second), second)
		case time.Since(began).Truncate(time.Second) > 20*time.Second:
			t.Fatalf("time.Since(began).Truncate(time.Second) is %v, want at most %v", time.Since(began).Truncate(time.Second), 20*time.Second)
		}
		old, err := w.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url.QueueUrl, Entries: deletions(first)})
		w.must(err)
		if len(old.Successful) != 1 || w.Queued() != 1 {
			t.Errorf("deleting by an old receipt: %d done, %d remain", len(old.Successful), w.Queued())
		}
		_, err = w.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: url.QueueUrl, Entries: deletions(second)})
		w.must(err)
		if w.Queued() != 0 {
			t.Errorf("%d messages remain", w.Queued())
		}
		w.Send("stale")
		w.pass(retention + time.Second)
		if late := receive(0); len(late) != 0 {
			t.Errorf("received a message after its retention")
		}
	})
}

func deletions(receipts []string) []sqstypes.DeleteMessageBatchRequestEntry {
	var entries []sqstypes.DeleteMessageBatchRequestEntry
	for k, r := range receipts {
		entries = append(entries, sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(string(rune('a' + k))), ReceiptHandle: &r})
	}
	return entries
}
