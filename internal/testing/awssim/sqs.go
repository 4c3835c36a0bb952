package awssim

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// retention is how long a message is kept: five minutes, a common setting for queues with short-lived notices.
const retention = 5 * time.Minute

// queue is a standard queue. Messages are in the order of sending, which SQS does not guarantee.
type queue struct {
	name     string
	messages []*message
	arrived  chan struct{} // closed when the next message arrives
	corrupt  int           // the number of next messages that lose their second half
}

type message struct {
	id, body string
	sent     time.Time
	visible  time.Time
	received int
	receipt  string
}

func newQueue(name string) *queue { return &queue{name: name, arrived: make(chan struct{})} }

// post sends a message to the queue. The caller holds the lock.
func (c *Cloud) post(body string, now time.Time) {
	if c.queue == nil {
		return
	}
	if c.queue.corrupt > 0 {
		c.queue.corrupt--
		body = body[:(len(body)+1)/2]
	}
	c.queue.messages = append(c.queue.messages, &message{id: c.uuid(), body: body, sent: now, visible: now})
	close(c.queue.arrived)
	c.queue.arrived = make(chan struct{})
}

func sqsMethods() map[string]method {
	return map[string]method{
		"GetQueueUrl": {run: getQueueURL, params: []string{"QueueName", "QueueOwnerAWSAccountId"}},
		"SendMessage": {run: sendMessage, params: []string{"MessageBody", "QueueUrl"}},
		"ReceiveMessage": {waiting: receiveMessage, params: []string{"AttributeNames", "MaxNumberOfMessages", "MessageAttributeNames",
			"MessageSystemAttributeNames", "QueueUrl", "VisibilityTimeout", "WaitTimeSeconds"}},
		"DeleteMessage":      {run: deleteMessage, params: []string{"QueueUrl", "ReceiptHandle"}},
		"DeleteMessageBatch": {run: deleteMessageBatch, params: []string{"Entries", "QueueUrl"}},
	}
}

func noQueue() error {
	return &apiError{"QueueDoesNotExist", "The specified queue does not exist.", http.StatusBadRequest}
}

func (c *Cloud) hasQueue(url string) error {
	if c.queue == nil || !strings.HasSuffix(url, "/"+c.opts.AccountID+"/"+c.queue.name) {
		return noQueue()
	}
	return nil
}

// getQueueURL implements sqs:GetQueueUrl.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueUrl.html
func getQueueURL(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct{ QueueName, QueueOwnerAWSAccountId string }
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if c.queue == nil || in.QueueName != c.queue.name {
		return nil, noQueue()
	}
	return map[string]string{"QueueUrl": r.host + "/" + c.opts.AccountID + "/" + c.queue.name}, nil
}

// sendMessage implements sqs:SendMessage.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func sendMessage(c *Cloud, r *request, now time.Time) (any, error) {
	var in struct{ QueueUrl, MessageBody string }
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if err := c.hasQueue(in.QueueUrl); err != nil {
		return nil, err
	}
	if in.MessageBody == "" {
		return nil, &apiError{"MissingParameter", "The request must contain the parameter MessageBody.", http.StatusBadRequest}
	}
	c.post(in.MessageBody, now)
	m := c.queue.messages[len(c.queue.messages)-1]
	return map[string]string{"MessageId": m.id, "MD5OfMessageBody": digest(m.body)}, nil
}

func digest(body string) string {
	sum := md5.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

// receive has the members of sqs:ReceiveMessage that are simulated.
type receive struct {
	QueueUrl                    string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
}

// receiveMessage implements sqs:ReceiveMessage. It returns immediately if there are messages, otherwise when one
// arrives or becomes visible again, or when the wait time is over.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
func receiveMessage(ctx context.Context, c *Cloud, r *request) (any, error) {
	var in receive
	if err := r.in(&in); err != nil {
		return nil, err
	}
	most, visibility := 1, 30
	if in.MaxNumberOfMessages != nil {
		most = *in.MaxNumberOfMessages
	}
	if in.VisibilityTimeout != nil {
		visibility = *in.VisibilityTimeout
	}
	if most < 1 || most > 10 || in.WaitTimeSeconds < 0 || in.WaitTimeSeconds > 20 || visibility < 0 || visibility > 43200 {
		return nil, &apiError{"InvalidParameterValue",
			"MaxNumberOfMessages must be 1 to 10, WaitTimeSeconds 0 to 20, VisibilityTimeout 0 to 43200", http.StatusBadRequest}
	}
	end := c.opts.Clock.Now().Add(time.Duration(in.WaitTimeSeconds) * time.Second)
	for {
		var got []map[string]any
		var err error
		var next time.Time
		var arrived chan struct{}
		c.locked(func(now time.Time) {
			if err = c.hasQueue(in.QueueUrl); err != nil {
				return
			}
			got = c.hand(most, time.Duration(visibility)*time.Second, now)
			arrived, next = c.queue.arrived, c.nextVisible(end, now)
		})
		if wait := next.Sub(c.opts.Clock.Now()); err != nil || len(got) > 0 || wait <= 0 {
			if len(got) == 0 {
				return nil, err
			}
			return map[string]any{"Messages": got}, nil
		}
		if err := c.waitFor(ctx, arrived, next); err != nil {
			return nil, err
		}
	}
}

// waitFor waits for a message or a time.
func (c *Cloud) waitFor(ctx context.Context, arrived <-chan struct{}, until time.Time) error {
	timer := c.opts.Clock.NewTimer(until.Sub(c.opts.Clock.Now()))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-arrived:
	case <-timer.C():
	}
	return nil
}

// nextVisible returns when to check again: at the end, when a message becomes visible, or when an event is due that may
// send one. The caller holds the lock.
func (c *Cloud) nextVisible(end, now time.Time) time.Time {
	next := end
	for _, m := range c.queue.messages {
		if m.visible.After(now) && m.visible.Before(next) {
			next = m.visible
		}
	}
	if len(c.due) > 0 && c.due[0].at.Before(next) && c.due[0].at.After(now) {
		next = c.due[0].at
	}
	return next
}

// hand delivers visible messages and hides them for a while. The caller holds the lock.
func (c *Cloud) hand(most int, visibility time.Duration, now time.Time) []map[string]any {
	c.queue.messages = slices.DeleteFunc(c.queue.messages, func(m *message) bool { return now.Sub(m.sent) > retention })
	var got []map[string]any
	for _, m := range c.queue.messages {
		if len(got) == most {
			break
		}
		if m.visible.After(now) {
			continue
		}
		m.received++
		m.visible = now.Add(visibility)
		m.receipt = fmt.Sprintf("%s#%d", m.id, m.received)
		got = append(got, map[string]any{
			"MessageId": m.id, "ReceiptHandle": m.receipt, "Body": m.body, "MD5OfBody": digest(m.body),
			"Attributes": map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.received),
				"SentTimestamp": strconv.FormatInt(m.sent.UnixMilli(), 10)},
		})
	}
	return got
}

// remove deletes by receipt. A receipt that a later delivery has replaced deletes nothing, which is not an error.
func (c *Cloud) remove(receipt string) error {
	if !strings.Contains(receipt, "#") {
		return &apiError{"ReceiptHandleIsInvalid", "The input receipt handle is invalid.", http.StatusBadRequest}
	}
	c.queue.messages = slices.DeleteFunc(c.queue.messages, func(m *message) bool { return m.receipt == receipt })
	return nil
}

// deleteMessage implements sqs:DeleteMessage.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html
func deleteMessage(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct{ QueueUrl, ReceiptHandle string }
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if err := c.hasQueue(in.QueueUrl); err != nil {
		return nil, err
	}
	return nil, c.remove(in.ReceiptHandle)
}

// deleteMessageBatch implements sqs:DeleteMessageBatch: one to ten entries, each of which may fail.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessageBatch.html
func deleteMessageBatch(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct {
		QueueUrl string
		Entries  []struct{ Id, ReceiptHandle string }
	}
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if err := c.hasQueue(in.QueueUrl); err != nil {
		return nil, err
	}
	if len(in.Entries) == 0 {
		return nil, &apiError{"EmptyBatchRequest", "There should be at least one DeleteMessageBatchRequestEntry in the request.",
			http.StatusBadRequest}
	}
	if len(in.Entries) > 10 {
		return nil, &apiError{"TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10.", http.StatusBadRequest}
	}
	done, failed := []map[string]any{}, []map[string]any{}
	for _, e := range in.Entries {
		if err := c.remove(e.ReceiptHandle); err != nil {
			failed = append(failed, map[string]any{"Id": e.Id, "SenderFault": true, "Code": "ReceiptHandleIsInvalid"})
			continue
		}
		done = append(done, map[string]any{"Id": e.Id})
	}
	return map[string]any{"Successful": done, "Failed": failed}, nil
}
