package awssim

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// SQS has two protocols: JSON, and the older Query protocol that SDKs before the end of 2023 speak. A request of the
// latter becomes one of the former; the answers have names for both.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-json-faqs.html

// queryLists are the names of lists and maps in the Query protocol, by those in JSON. They are flattened.
var queryLists = map[string]string{"AttributeName": "AttributeNames", "MessageAttributeName": "MessageAttributeNames",
	"MessageSystemAttributeName": "MessageSystemAttributeNames", "Attribute": "Attributes", "MessageAttribute": "MessageAttributes",
	"MessageSystemAttribute": "MessageSystemAttributes", "SendMessageBatchRequestEntry": "Entries",
	"DeleteMessageBatchRequestEntry": "Entries", "Tag": "tags"}

// queryEmpty are the names in JSON of the lists.
var queryEmpty = slices.Collect(maps.Values(queryLists))

// queryNumbers are the members that are numbers in JSON.
var queryNumbers = []string{"DelaySeconds", "MaxNumberOfMessages", "VisibilityTimeout", "WaitTimeSeconds"}

// sqsMembers returns the members of a structure of the Query protocol as those of JSON.
func sqsMembers(n *node) (map[string]any, error) {
	out := map[string]any{}
	for _, wire := range sortedKeys(n.children) {
		name, list := queryLists[wire]
		var err error
		switch {
		case wire == "Action" || wire == "Version":
		case slices.Contains(queryEmpty, wire) && n.str(wire) == "": // how botocore writes an empty list
		case list:
			out[name], err = sqsList(name, n, wire)
		case n.children[wire].children != nil:
			out[wire], err = sqsMembers(n.children[wire])
		case slices.Contains(queryNumbers, wire):
			out[wire], err = strconv.Atoi(n.str(wire))
			if err != nil {
				err = sqsError("InvalidParameterValue", "Value %s for parameter %s is invalid. It must be an integer.", n.str(wire), wire)
			}
		default:
			out[wire] = n.str(wire)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// sqsList returns a list of texts, a list of structures, or a map.
func sqsList(name string, n *node, wire string) (any, error) {
	if strings.HasSuffix(name, "Names") {
		return n.strings(wire), nil
	}
	var entries []any
	pairs := map[string]any{}
	for _, item := range n.items(wire) {
		members, err := sqsMembers(item)
		if err != nil {
			return nil, err
		}
		key, _ := members["Name"].(string)
		entries, pairs[key] = append(entries, members), members["Value"]
	}
	if name == "Entries" {
		return entries, nil
	}
	return pairs, nil
}

// fromQuery turns a request of the Query protocol into one of JSON. The URL of a queue may be the request's own.
func (r *request) fromQuery() error {
	members, err := sqsMembers(r.form)
	if err != nil {
		return err
	}
	if _, ok := members["QueueUrl"]; !ok && strings.Count(r.path, "/") == 2 && r.action != "CreateQueue" && r.action != "GetQueueUrl" {
		members["QueueUrl"] = r.host + r.path
	}
	r.body, err = json.Marshal(members)
	r.form = nil
	return err
}

// attributes are values by name: repeated elements in XML.
type attributes map[string]string

// MarshalXML writes an element with Name and Value for each attribute, by name.
func (a attributes) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	for _, name := range sortedKeys(a) {
		if err := e.EncodeElement(struct{ Name, Value string }{name, a[name]}, start); err != nil {
			return err
		}
	}
	return nil
}

// messageAttribute is SQS's MessageAttributeValue.
type messageAttribute struct {
	DataType    string
	StringValue string `json:",omitempty" xml:",omitempty"`
	BinaryValue string `json:",omitempty" xml:",omitempty"` // base64
}

type messageAttributes map[string]messageAttribute

// MarshalXML writes an element with Name and Value for each attribute, by name.
func (m messageAttributes) MarshalXML(e *xml.Encoder, start xml.StartElement) error {
	for _, name := range sortedKeys(m) {
		pair := struct {
			Name  string
			Value messageAttribute
		}{name, m[name]}
		if err := e.EncodeElement(pair, start); err != nil {
			return err
		}
	}
	return nil
}

// check rejects a data type that SQS does not have.
func (m messageAttributes) check() error {
	for _, name := range sortedKeys(m) {
		kind, _, _ := strings.Cut(m[name].DataType, ".")
		if !slices.Contains([]string{"String", "Number", "Binary"}, kind) {
			return sqsError("InvalidParameterValue", "The message attribute '%s' has an invalid message attribute type", name)
		}
	}
	return nil
}

// digest returns the MD5 sum of message attributes, empty if there are none.
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-message-metadata.html
func (m messageAttributes) digest() string {
	if len(m) == 0 {
		return ""
	}
	var text []byte
	add := func(part []byte) {
		text = binary.BigEndian.AppendUint32(text, uint32(len(part)))
		text = append(text, part...)
	}
	for _, name := range sortedKeys(m) {
		add([]byte(name))
		add([]byte(m[name].DataType))
		if strings.HasPrefix(m[name].DataType, "Binary") {
			value, _ := base64.StdEncoding.DecodeString(m[name].BinaryValue)
			text = append(text, 2)
			add(value)
			continue
		}
		text = append(text, 1)
		add([]byte(m[name].StringValue))
	}
	return digest(string(text))
}

func digest(body string) string {
	sum := md5.Sum([]byte(body))
	return hex.EncodeToString(sum[:])
}

type receivedMessages struct {
	Messages []receivedMessage `json:",omitempty" xml:"Message,omitempty"`
}

type receivedMessage struct {
	MessageId              string
	ReceiptHandle          string
	MD5OfBody              string
	Body                   string
	Attributes             attributes        `json:",omitempty" xml:"Attribute,omitempty"`
	MD5OfMessageAttributes string            `json:",omitempty" xml:",omitempty"`
	MessageAttributes      messageAttributes `json:",omitempty" xml:"MessageAttribute,omitempty"`
}

type sentMessage struct {
	Id                     string `json:",omitempty" xml:",omitempty"`
	MessageId              string
	MD5OfMessageBody       string
	MD5OfMessageAttributes string `json:",omitempty" xml:",omitempty"`
}

type sentBatch struct {
	Successful []sentMessage `xml:"SendMessageBatchResultEntry,omitempty"`
	Failed     []failed      `json:",omitempty" xml:"BatchResultErrorEntry,omitempty"`
}

type batchEntry struct{ Id string }

type deletedBatch struct {
	Successful []batchEntry `xml:"DeleteMessageBatchResultEntry,omitempty"`
	Failed     []failed     `json:",omitempty" xml:"BatchResultErrorEntry,omitempty"`
}

type failed struct {
	Id          string
	SenderFault bool
	Code        string
	Message     string
}

func failedEntry(id string, err error) failed {
	var refusal *apiError
	errors.As(err, &refusal)
	return failed{id, true, refusal.code, refusal.message}
}

// queryCommon are the codes of errors that all services have, in the Query protocol.
var queryCommon = map[string]string{"AccessDeniedException": "AccessDenied", "ExpiredTokenException": "ExpiredToken"}

// queryErrors are the codes that the Query protocol has for errors, which the JSON protocol repeats in a header.
var queryErrors = map[string]string{
	"QueueDoesNotExist":            "AWS.SimpleQueueService.NonExistentQueue",
	"QueueNameExists":              "QueueAlreadyExists",
	"UnsupportedOperation":         "AWS.SimpleQueueService.UnsupportedOperation",
	"EmptyBatchRequest":            "AWS.SimpleQueueService.EmptyBatchRequest",
	"TooManyEntriesInBatchRequest": "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
	"InvalidBatchEntryId":          "AWS.SimpleQueueService.InvalidBatchEntryId",
	"BatchEntryIdsNotDistinct":     "AWS.SimpleQueueService.BatchEntryIdsNotDistinct",
	"PurgeQueueInProgress":         "AWS.SimpleQueueService.PurgeQueueInProgress",
	"MessageNotInflight":           "AWS.SimpleQueueService.MessageNotInflight",
}
