package interruption

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/interruption/notice"
)

const (
	// pollTime is how long SQS waits for messages before it returns an empty response. It is the maximum: an idle queue
	// requires three calls a minute.
	// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
	pollTime = 20 * time.Second
	// hidden is how long a received message is not delivered again.
	hidden = 20 * time.Second
	// batch is the maximum number of messages that one call receives or deletes.
	batch = 10
	// batches is how many are handled concurrently while the next one is received.
	batches = 8
	// firstQueueWait and mostQueueWait limit the time until the next try. A notice arrives two minutes ahead.
	firstQueueWait = time.Second
	mostQueueWait  = 20 * time.Second
)

// RunQueue receives messages and acts on them until ctx ends. It returns after all received messages are handled.
func (w *Watcher) RunQueue(ctx context.Context) error {
	if w.opts.Queue == "" {
		return errors.New("watching the interruption queue: its name is empty")
	}
	var handlers sync.WaitGroup
	defer handlers.Wait()
	slots := make(chan struct{}, batches)
	pause := backoff{first: firstQueueWait, most: mostQueueWait}
	url := ""
	for ctx.Err() == nil {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		began := w.opts.Clock.Now()
		messages, err := w.receive(ctx, &url)
		if err == nil && len(messages) == 0 && w.opts.Clock.Since(began) < firstQueueWait {
			w.sleep(ctx, firstQueueWait) // SQS would have waited for messages, so the response is from something else
		}
		if err != nil {
			<-slots
			if ctx.Err() == nil {
				w.state(partReceiving, err)
				w.sleep(ctx, pause.failed())
			}
			continue
		}
		w.state(partReceiving, nil)
		pause.wait = 0
		from := url
		handlers.Go(func() {
			defer func() { <-slots }()
			w.handle(ctx, from, messages)
		})
	}
	return nil
}

// receive waits for messages in the queue. It looks up the URL first, and drops it if the queue is gone.
func (w *Watcher) receive(ctx context.Context, url *string) ([]sqstypes.Message, error) {
	if *url == "" {
		out, err := send(ctx, w, operation{serviceSQS, "GetQueueUrl", 0, "sqs:GetQueueUrl"},
			func(ctx context.Context) (*sqs.GetQueueUrlOutput, error) {
				return w.sqs.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &w.opts.Queue}, onceSQS)
			})
		if err != nil {
			return nil, err
		}
		*url = aws.ToString(out.QueueUrl)
	}
	out, err := send(ctx, w, operation{serviceSQS, "ReceiveMessage", pollTime, "sqs:ReceiveMessage"},
		func(ctx context.Context) (*sqs.ReceiveMessageOutput, error) {
			return w.sqs.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: url, MaxNumberOfMessages: batch,
				WaitTimeSeconds: int32(pollTime / time.Second), VisibilityTimeout: int32(hidden / time.Second)}, onceSQS)
		})
	if err != nil {
		if absent(err) {
			*url = ""
		}
		return nil, err
	}
	return out.Messages, nil
}

// handle acts on the messages of one response concurrently, and deletes those that need no redelivery.
func (w *Watcher) handle(ctx context.Context, url string, messages []sqstypes.Message) {
	done := make([]bool, len(messages))
	var each sync.WaitGroup
	for i, m := range messages {
		each.Go(func() { done[i] = w.handleOne(ctx, aws.ToString(m.Body)) })
	}
	each.Wait()
	var entries []sqstypes.DeleteMessageBatchRequestEntry
	for i, m := range messages {
		if done[i] {
			entries = append(entries, sqstypes.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
	}
	w.remove(ctx, url, entries)
}

// handleOne reports whether the message is done and needs no redelivery.
func (w *Watcher) handleOne(ctx context.Context, body string) bool {
	n, err := notice.Parse(body)
	notify(w.opts.Observer.Received, n.Kind)
	if err != nil {
		notify(w.opts.Observer.Spoilt, err)
		return true
	}
	ours, err := w.react(ctx, n)
	if err != nil {
		w.failed(n.Kind, err)
		return false
	}
	if !ours {
		notify(w.opts.Observer.Foreign, n.Kind)
	} else if age := w.opts.Clock.Since(n.Sent); len(n.Instances) > 0 && !n.Sent.IsZero() {
		notify(w.opts.Observer.Waited, max(age, 0))
	}
	return true
}

// remove deletes messages. If the deletion of a message fails, it is delivered and handled again, which changes
// nothing.
func (w *Watcher) remove(ctx context.Context, url string, entries []sqstypes.DeleteMessageBatchRequestEntry) {
	if len(entries) == 0 {
		return
	}
	// Handled messages are deleted even if the context has ended.
	out, err := send(context.WithoutCancel(ctx), w, operation{serviceSQS, "DeleteMessageBatch", 0, "sqs:DeleteMessage"},
		func(ctx context.Context) (*sqs.DeleteMessageBatchOutput, error) {
			return w.sqs.DeleteMessageBatch(ctx, &sqs.DeleteMessageBatchInput{QueueUrl: &url, Entries: entries}, onceSQS)
		})
	w.state(partDeleting, err)
	if err == nil && len(out.Successful) > 0 {
		notify(w.opts.Observer.Deleted, len(out.Successful))
	}
}
