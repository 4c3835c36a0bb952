package awssim

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// retention is how long the queue of Options keeps a message: a common setting for queues with short-lived notices.
const retention = 5 * time.Minute

// queueDefaults are the attributes of a queue that its creation does not name.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
var queueDefaults = map[string]string{"DelaySeconds": "0", "MaximumMessageSize": "262144", "MessageRetentionPeriod": "345600",
	"ReceiveMessageWaitTimeSeconds": "0", "SqsManagedSseEnabled": "true", "VisibilityTimeout": "30"}

// queueBounds are the least and the most of the attributes that are numbers.
var queueBounds = map[string][2]int{"DelaySeconds": {0, 900}, "MaximumMessageSize": {1024, 1 << 20},
	"MessageRetentionPeriod": {60, 1209600}, "ReceiveMessageWaitTimeSeconds": {0, 20}, "VisibilityTimeout": {0, 43200}}

// queue is a standard queue. Messages are in the order of sending, which SQS does not guarantee.
type queue struct {
	name       string
	created    time.Time
	modified   time.Time
	purged     time.Time
	attributes map[string]string // those that can be set
	messages   []*message
	arrived    chan struct{} // closed when the next message arrives
	corrupt    int           // the number of next messages that lose their second half
}

type message struct {
	id, body   string
	attributes messageAttributes
	sent       time.Time
	visible    time.Time
	received   int
	first      time.Time // of the first receipt
	receipt    string
}

func newQueue(name string, attributes map[string]string, now time.Time) *queue {
	all := maps.Clone(queueDefaults)
	maps.Copy(all, attributes)
	return &queue{name: name, created: now, modified: now, attributes: all, arrived: make(chan struct{})}
}

// seconds returns an attribute that is a number.
func (q *queue) seconds(attribute string) int {
	n, _ := strconv.Atoi(q.attributes[attribute])
	return n
}

// post sends an event to the queue of Options. The caller holds the lock.
func (c *Cloud) post(body string, now time.Time) {
	if c.queue != nil {
		c.queue.send(&message{id: c.uuid(), body: body}, 0, now)
	}
}

// send adds a message that becomes visible after some seconds.
func (q *queue) send(m *message, delay int, now time.Time) *message {
	if q.corrupt > 0 {
		q.corrupt--
		m.body = m.body[:(len(m.body)+1)/2]
	}
	m.sent, m.visible = now, now.Add(time.Duration(delay)*time.Second)
	q.messages = append(q.messages, m)
	close(q.arrived)
	q.arrived = make(chan struct{})
	return m
}

// sqsError is an error of SQS; code is that of the JSON protocol.
func sqsError(code, format string, args ...any) error {
	return &apiError{code, fmt.Sprintf(format, args...), http.StatusBadRequest}
}

func noQueue() error { return sqsError("QueueDoesNotExist", "The specified queue does not exist.") }

// queueAt returns the queue with a URL.
func (c *Cloud) queueAt(url string) (*queue, error) {
	if url == "" {
		return nil, sqsError("MissingParameter", "The request must contain the parameter QueueUrl.")
	}
	account, name, _ := strings.Cut(strings.TrimPrefix(pathOf(url), "/"), "/")
	if q := c.queues[name]; q != nil && account == c.opts.AccountID {
		return q, nil
	}
	return nil, noQueue()
}

// pathOf returns the path of a URL.
func pathOf(url string) string {
	if _, rest, ok := strings.Cut(url, "://"); ok {
		_, path, _ := strings.Cut(rest, "/")
		return "/" + path
	}
	return url
}

// receive has the members of sqs:ReceiveMessage that are simulated.
type receive struct {
	QueueUrl                    string
	MaxNumberOfMessages         *int
	VisibilityTimeout           *int
	WaitTimeSeconds             *int
	AttributeNames              []string
	MessageSystemAttributeNames []string
	MessageAttributeNames       []string
}

// receipt is a parsed request to receive.
type receipt struct {
	most, visibility, wait int
	system, named          []string
}

// parse applies the queue's defaults and checks bounds and names.
func (in receive) parse(q *queue) (receipt, error) {
	given := receipt{1, q.seconds("VisibilityTimeout"), q.seconds("ReceiveMessageWaitTimeSeconds"),
		slices.Concat(in.AttributeNames, in.MessageSystemAttributeNames), in.MessageAttributeNames}
	for _, number := range []struct {
		name        string
		said        *int
		value       *int
		least, most int
	}{{"MaxNumberOfMessages", in.MaxNumberOfMessages, &given.most, 1, 10}, {"VisibilityTimeout", in.VisibilityTimeout,
		&given.visibility, 0, 43200},
		{"WaitTimeSeconds", in.WaitTimeSeconds, &given.wait, 0, 20}} {
		if number.said == nil {
			continue
		}
		if *number.value = *number.said; *number.value < number.least || *number.value > number.most {
			return given, sqsError("InvalidParameterValue", "Value %d for parameter %s is invalid. Reason: Must be between %d and %d, if provided.",
				*number.value, number.name, number.least, number.most)
		}
	}
	for _, name := range given.system {
		if name != "All" && !slices.Contains(systemAttributes, name) {
			return given, sqsError("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	return given, nil
}

// receiveMessage implements sqs:ReceiveMessage. It returns immediately if there are messages, otherwise when one
// arrives or becomes visible again, or when the wait time is over.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ReceiveMessage.html
func receiveMessage(ctx context.Context, c *Cloud, r *request) (any, error) {
	var in receive
	if err := r.in(&in); err != nil {
		return nil, err
	}
	var end time.Time
	for {
		var got []receivedMessage
		var err error
		var next time.Time
		var arrived chan struct{}
		c.locked(func(now time.Time) {
			var q *queue
			if q, err = c.queueAt(in.QueueUrl); err != nil {
				return
			}
			var given receipt
			if given, err = in.parse(q); err != nil {
				return
			}
			if end.IsZero() {
				end = now.Add(time.Duration(given.wait) * time.Second)
			}
			got = c.hand(q, given, now)
			arrived, next = q.arrived, c.nextVisible(q, end, now)
		})
		if wait := next.Sub(c.opts.Clock.Now()); err != nil || len(got) > 0 || wait <= 0 {
			return receivedMessages{got}, err
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
func (c *Cloud) nextVisible(q *queue, end, now time.Time) time.Time {
	next := end
	for _, m := range q.messages {
		if m.visible.After(now) && m.visible.Before(next) {
			next = m.visible
		}
	}
	if len(c.due) > 0 && c.due[0].at.Before(next) && c.due[0].at.After(now) {
		next = c.due[0].at
	}
	return next
}

// expire drops the messages that are older than the queue keeps them.
func (q *queue) expire(now time.Time) {
	most := time.Duration(q.seconds("MessageRetentionPeriod")) * time.Second
	q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return now.Sub(m.sent) > most })
}

// systemAttributes are those of a received message in a standard queue without a dead-letter source.
var systemAttributes = []string{"ApproximateFirstReceiveTimestamp", "ApproximateReceiveCount", "SenderId", "SentTimestamp"}

// hand delivers visible messages and hides them for a while. The caller holds the lock.
func (c *Cloud) hand(q *queue, given receipt, now time.Time) []receivedMessage {
	q.expire(now)
	var got []receivedMessage
	for _, m := range q.messages {
		if len(got) == given.most {
			break
		}
		if m.visible.After(now) {
			continue
		}
		m.received++
		if m.received == 1 {
			m.first = now
		}
		m.visible = now.Add(time.Duration(given.visibility) * time.Second)
		m.receipt = fmt.Sprintf("%s#%d", m.id, m.received)
		values := map[string]string{"ApproximateReceiveCount": strconv.Itoa(m.received), "SenderId": "AIDASENDER000000000000",
			"ApproximateFirstReceiveTimestamp": strconv.FormatInt(m.first.UnixMilli(),
				10), "SentTimestamp": strconv.FormatInt(m.sent.UnixMilli(), 10)}
		out := receivedMessage{MessageId: m.id, ReceiptHandle: m.receipt, Body: m.body, MD5OfBody: digest(m.body), Attributes: attributes{}}
		for name, value := range values {
			if slices.Contains(given.system, "All") || slices.Contains(given.system, name) {
				out.Attributes[name] = value
			}
		}
		if out.MessageAttributes = m.attributes.named(given.named); len(out.MessageAttributes) > 0 {
			out.MD5OfMessageAttributes = out.MessageAttributes.digest()
		}
		got = append(got, out)
	}
	return got
}

// held returns the message of a receipt: nil if a later delivery has replaced the receipt or the message is deleted.
func (q *queue) held(receipt string) (*message, error) {
	if !strings.Contains(receipt, "#") {
		return nil, sqsError("ReceiptHandleIsInvalid", "The input receipt handle \"%s\" is not a valid receipt handle.", receipt)
	}
	for _, m := range q.messages {
		if m.receipt == receipt {
			return m, nil
		}
	}
	return nil, nil
}

// remove deletes by receipt. One without a message deletes nothing, which is not an error.
func (q *queue) remove(receipt string) error {
	held, err := q.held(receipt)
	if held != nil {
		q.messages = slices.DeleteFunc(q.messages, func(m *message) bool { return m == held })
	}
	return err
}
