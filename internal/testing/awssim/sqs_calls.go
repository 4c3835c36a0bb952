package awssim

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func sqsMethods() map[string]method {
	return map[string]method{
		"CreateQueue":        {run: createQueue, params: []string{"Attributes", "QueueName"}},
		"DeleteQueue":        {run: deleteQueue, params: []string{"QueueUrl"}},
		"GetQueueUrl":        {run: getQueueURL, params: []string{"QueueName", "QueueOwnerAWSAccountId"}},
		"GetQueueAttributes": {run: getQueueAttributes, params: []string{"AttributeNames", "QueueUrl"}},
		"SetQueueAttributes": {run: setQueueAttributes, params: []string{"Attributes", "QueueUrl"}},
		"PurgeQueue":         {run: purgeQueue, params: []string{"QueueUrl"}},
		"SendMessage":        {run: sendMessage, params: []string{"DelaySeconds", "MessageAttributes", "MessageBody", "QueueUrl"}},
		"SendMessageBatch":   {run: sendMessageBatch, params: []string{"Entries", "QueueUrl"}},
		"ReceiveMessage": {waiting: receiveMessage, params: []string{"AttributeNames", "MaxNumberOfMessages", "MessageAttributeNames",
			"MessageSystemAttributeNames", "QueueUrl", "VisibilityTimeout", "WaitTimeSeconds"}},
		"ChangeMessageVisibility": {run: changeMessageVisibility, params: []string{"QueueUrl", "ReceiptHandle", "VisibilityTimeout"}},
		"DeleteMessage":           {run: deleteMessage, params: []string{"QueueUrl", "ReceiptHandle"}},
		"DeleteMessageBatch":      {run: deleteMessageBatch, params: []string{"Entries", "QueueUrl"}},
	}
}

var queueName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

type queueURL struct{ QueueUrl string }

func (c *Cloud) urlOf(r *request, q *queue) queueURL {
	return queueURL{r.host + "/" + c.opts.AccountID + "/" + q.name}
}

// settable checks attributes that a queue can be given.
func settable(given map[string]string) error {
	for _, name := range sortedKeys(given) {
		bounds, number := queueBounds[name]
		n, err := strconv.Atoi(given[name])
		switch {
		case number && (err != nil || n < bounds[0] || n > bounds[1]):
			return sqsError("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
		case name == "SqsManagedSseEnabled" && given[name] != "true" && given[name] != "false":
			return sqsError("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
		case !number && name != "SqsManagedSseEnabled" && name != "Policy":
			return sqsError("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	return nil
}

// createQueue implements sqs:CreateQueue for standard queues. A queue that exists with the same attributes is returned.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_CreateQueue.html
func createQueue(c *Cloud, r *request, now time.Time) (any, error) {
	var in struct {
		QueueName  string
		Attributes map[string]string
	}
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if err := settable(in.Attributes); err != nil {
		return nil, err
	}
	if !queueName.MatchString(in.QueueName) {
		return nil, sqsError("InvalidParameterValue",
			"Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	if q := c.queues[in.QueueName]; q != nil {
		for name, value := range in.Attributes {
			if q.attributes[name] != value {
				return nil, sqsError("QueueNameExists", "A queue already exists with the same name and a different value for attribute %s", name)
			}
		}
		return c.urlOf(r, q), nil
	}
	q := newQueue(in.QueueName, in.Attributes, now)
	c.queues[q.name] = q
	return c.urlOf(r, q), nil
}

// deleteQueue implements sqs:DeleteQueue.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteQueue.html
func deleteQueue(c *Cloud, r *request, _ time.Time) (any, error) {
	var in queueURL
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	delete(c.queues, q.name)
	if c.queue == q {
		c.queue = nil
	}
	return nil, nil
}

// queueIn decodes a request and returns the queue that it names.
func (c *Cloud) queueIn(r *request, in any, url *string) (*queue, error) {
	if err := r.in(in); err != nil {
		return nil, err
	}
	return c.queueAt(*url)
}

// getQueueURL implements sqs:GetQueueUrl.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueUrl.html
func getQueueURL(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct{ QueueName, QueueOwnerAWSAccountId string }
	if err := r.in(&in); err != nil {
		return nil, err
	}
	q := c.queues[in.QueueName]
	if q == nil || in.QueueOwnerAWSAccountId != "" && in.QueueOwnerAWSAccountId != c.opts.AccountID {
		return nil, noQueue()
	}
	return c.urlOf(r, q), nil
}

// getQueueAttributes implements sqs:GetQueueAttributes.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_GetQueueAttributes.html
func getQueueAttributes(c *Cloud, r *request, now time.Time) (any, error) {
	var in struct {
		QueueUrl       string
		AttributeNames []string
	}
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	q.expire(now)
	all := maps.Clone(q.attributes)
	var waiting, hidden, delayed int
	for _, m := range q.messages {
		switch {
		case !m.visible.After(now):
			waiting++
		case m.received > 0:
			hidden++
		default:
			delayed++
		}
	}
	for name, n := range map[string]int{"ApproximateNumberOfMessages": waiting, "ApproximateNumberOfMessagesNotVisible": hidden,
		"ApproximateNumberOfMessagesDelayed": delayed, "CreatedTimestamp": int(q.created.Unix()),
		"LastModifiedTimestamp": int(q.modified.Unix())} {
		all[name] = strconv.Itoa(n)
	}
	all["QueueArn"] = "arn:aws:sqs:" + c.opts.Region + ":" + c.opts.AccountID + ":" + q.name
	out := attributes{}
	for _, name := range in.AttributeNames {
		value, ok := all[name]
		switch {
		case name == "All":
			maps.Copy(out, all)
		case ok:
			out[name] = value
		case name != "Policy":
			return nil, sqsError("InvalidAttributeName", "Unknown Attribute %s.", name)
		}
	}
	return struct {
		Attributes attributes `json:",omitempty" xml:"Attribute"`
	}{out}, nil
}

// setQueueAttributes implements sqs:SetQueueAttributes.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SetQueueAttributes.html
func setQueueAttributes(c *Cloud, r *request, now time.Time) (any, error) {
	var in struct {
		QueueUrl   string
		Attributes map[string]string
	}
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if len(in.Attributes) == 0 {
		return nil, sqsError("MissingParameter", "The request must contain the parameter Attribute.Name.")
	}
	if err := settable(in.Attributes); err != nil {
		return nil, err
	}
	maps.Copy(q.attributes, in.Attributes)
	q.modified = now
	return nil, nil
}

// purgeQueue implements sqs:PurgeQueue, once in 60 seconds.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_PurgeQueue.html
func purgeQueue(c *Cloud, r *request, now time.Time) (any, error) {
	var in queueURL
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	if !q.purged.IsZero() && now.Sub(q.purged) < time.Minute {
		return nil, sqsError("PurgeQueueInProgress", "Only one PurgeQueue operation on %s is allowed every 60 seconds.", q.name)
	}
	q.messages, q.purged = nil, now
	return nil, nil
}

// outgoing is a message to send.
type outgoing struct {
	MessageBody       string
	DelaySeconds      *int
	MessageAttributes messageAttributes
}

// put checks a message and sends it.
func (c *Cloud) put(q *queue, out outgoing, now time.Time) (*message, error) {
	delay := q.seconds("DelaySeconds")
	if out.DelaySeconds != nil {
		delay = *out.DelaySeconds
	}
	bounds := queueBounds["DelaySeconds"]
	most := q.seconds("MaximumMessageSize")
	switch {
	case out.MessageBody == "":
		return nil, sqsError("MissingParameter", "The request must contain the parameter MessageBody.")
	case !utf8.ValidString(out.MessageBody):
		return nil, sqsError("InvalidMessageContents", "Invalid characters found.")
	case len(out.MessageBody) > most:
		return nil, sqsError("InvalidParameterValue",
			"One or more parameters are invalid. Reason: Message must be shorter than %d bytes.", most)
	case delay < bounds[0] || delay > bounds[1]:
		return nil, sqsError("InvalidParameterValue",
			"Value %d for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.", delay)
	}
	if err := out.MessageAttributes.check(); err != nil {
		return nil, err
	}
	return q.send(&message{id: c.uuid(), body: out.MessageBody, attributes: out.MessageAttributes}, delay, now), nil
}

// sendMessage implements sqs:SendMessage.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html
func sendMessage(c *Cloud, r *request, now time.Time) (any, error) {
	var in struct {
		queueURL
		outgoing
	}
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	m, err := c.put(q, in.outgoing, now)
	if err != nil {
		return nil, err
	}
	return sentMessage{MD5OfMessageBody: digest(m.body), MD5OfMessageAttributes: m.attributes.digest(), MessageId: m.id}, nil
}

// sendMessageBatch implements sqs:SendMessageBatch: one to ten entries, each of which may fail.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessageBatch.html
func sendMessageBatch(c *Cloud, r *request, now time.Time) (any, error) {
	var in struct {
		QueueUrl string
		Entries  []struct {
			Id string
			outgoing
		}
	}
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range in.Entries {
		ids = append(ids, e.Id)
	}
	if err := batchIDs("SendMessageBatchRequestEntry", ids); err != nil {
		return nil, err
	}
	out := sentBatch{Successful: []sentMessage{}}
	for _, e := range in.Entries {
		m, err := c.put(q, e.outgoing, now)
		if err != nil {
			out.Failed = append(out.Failed, failedEntry(e.Id, err))
			continue
		}
		out.Successful = append(out.Successful, sentMessage{Id: e.Id, MessageId: m.id, MD5OfMessageBody: digest(m.body),
			MD5OfMessageAttributes: m.attributes.digest()})
	}
	return out, nil
}

var batchID = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// batchIDs checks the number of the entries of a batch and their IDs.
func batchIDs(kind string, ids []string) error {
	sorted := slices.Sorted(slices.Values(ids))
	switch {
	case len(ids) == 0:
		return sqsError("EmptyBatchRequest", "There should be at least one %s in the request.", kind)
	case len(ids) > 10:
		return sqsError("TooManyEntriesInBatchRequest", "Maximum number of entries per request are 10. You have sent %d.", len(ids))
	case slices.ContainsFunc(ids, func(id string) bool { return !batchID.MatchString(id) }):
		return sqsError("InvalidBatchEntryId",
			"A batch entry id can only contain alphanumeric characters, hyphens and underscores. It can be at most 80 letters long.")
	case len(slices.Compact(sorted)) < len(ids):
		return sqsError("BatchEntryIdsNotDistinct", "Two or more batch entries in the request have the same Id.")
	}
	return nil
}

// changeMessageVisibility implements sqs:ChangeMessageVisibility for a message that is in flight.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_ChangeMessageVisibility.html
func changeMessageVisibility(c *Cloud, r *request, now time.Time) (any, error) {
	var in struct {
		QueueUrl, ReceiptHandle string
		VisibilityTimeout       int
	}
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	m, err := q.held(in.ReceiptHandle)
	bounds := queueBounds["VisibilityTimeout"]
	switch {
	case err != nil:
		return nil, err
	case in.VisibilityTimeout < bounds[0] || in.VisibilityTimeout > bounds[1]:
		return nil, sqsError("InvalidParameterValue", "Value %d for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and 43200.",
			in.VisibilityTimeout)
	case m == nil || !m.visible.After(now):
		return nil, sqsError("MessageNotInflight", "The message referred to is not in flight.")
	}
	m.visible = now.Add(time.Duration(in.VisibilityTimeout) * time.Second)
	close(q.arrived) // a call that waits looks again
	q.arrived = make(chan struct{})
	return nil, nil
}

// deleteMessage implements sqs:DeleteMessage.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessage.html
func deleteMessage(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct{ QueueUrl, ReceiptHandle string }
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	return nil, q.remove(in.ReceiptHandle)
}

// deleteMessageBatch implements sqs:DeleteMessageBatch: one to ten entries, each of which may fail.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_DeleteMessageBatch.html
func deleteMessageBatch(c *Cloud, r *request, _ time.Time) (any, error) {
	var in struct {
		QueueUrl string
		Entries  []struct{ Id, ReceiptHandle string }
	}
	q, err := c.queueIn(r, &in, &in.QueueUrl)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range in.Entries {
		ids = append(ids, e.Id)
	}
	if err := batchIDs("DeleteMessageBatchRequestEntry", ids); err != nil {
		return nil, err
	}
	out := deletedBatch{Successful: []batchEntry{}}
	for _, e := range in.Entries {
		if err := q.remove(e.ReceiptHandle); err != nil {
			out.Failed = append(out.Failed, failedEntry(e.Id, err))
			continue
		}
		out.Successful = append(out.Successful, batchEntry{e.Id})
	}
	return out, nil
}

// named returns the attributes with one of the names, which may end in ".*" or be All.
func (m messageAttributes) named(names []string) messageAttributes {
	out := messageAttributes{}
	for key, value := range m {
		if slices.ContainsFunc(names, func(name string) bool {
			prefix, any := strings.CutSuffix(name, "*")
			return name == "All" || name == key || any && strings.HasPrefix(key, cmp.Or(strings.TrimSuffix(prefix, "."), ""))
		}) {
			out[key] = value
		}
	}
	return out
}
