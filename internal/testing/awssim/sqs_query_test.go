package awssim

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// queried makes one call of SQS in the Query protocol and returns the response without what differs from run to run.
func queried(t *testing.T, c *Cloud, form url.Values) string {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://sqs.test/111122223333/queue", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIDTEST/20261128/us-east-1/sqs/aws4_request, Signature=0")
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	body := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`).ReplaceAllString(w.Body.String(), "UUID")
	_, body, _ = strings.Cut(body, "\n")
	return http.StatusText(w.Code) + " " + body
}

// TestSQSQueryProtocol compares whole responses with those that the API reference shows.
func TestSQSQueryProtocol(t *testing.T) {
	c, err := New(Options{Queue: "queue"})
	if err != nil {
		t.Fatal(err)
	}
	const ns = ` xmlns="http://queue.amazonaws.com/doc/2012-11-05/"`
	const end = `<ResponseMetadata><RequestId>UUID</RequestId></ResponseMetadata>`
	for _, step := range []struct {
		form url.Values
		want string
	}{
		{url.Values{"Action": {"GetQueueUrl"}, "Version": {"2012-11-05"}, "QueueName": {"queue"}},
			`OK <GetQueueUrlResponse` + ns + `><GetQueueUrlResult><QueueUrl>http://sqs.test/111122223333/queue</QueueUrl></GetQueueUrlResult>` +
				end + `</GetQueueUrlResponse>`},
		{url.Values{"Action": {"SendMessageBatch"}, "SendMessageBatchRequestEntry.1.Id": {"a"},
			"SendMessageBatchRequestEntry.1.MessageBody": {"<x>"},
			"SendMessageBatchRequestEntry.2.Id":          {"b"}, "SendMessageBatchRequestEntry.2.MessageBody": {"y"},
			"SendMessageBatchRequestEntry.2.DelaySeconds": {"901"}},
			`OK <SendMessageBatchResponse` + ns + `><SendMessageBatchResult><SendMessageBatchResultEntry><Id>a</Id><MessageId>UUID</MessageId>` +
				`<MD5OfMessageBody>` + digest("<x>") + `</MD5OfMessageBody></SendMessageBatchResultEntry><BatchResultErrorEntry><Id>b</Id>` +
				`<SenderFault>true</SenderFault><Code>InvalidParameterValue</Code><Message>Value 901 for parameter DelaySeconds is invalid. ` +
				`Reason: DelaySeconds must be &gt;= 0 and &lt;= 900.</Message></BatchResultErrorEntry></SendMessageBatchResult>` + end + `</SendMessageBatchResponse>`},
		{url.Values{"Action": {"ReceiveMessage"}, "MaxNumberOfMessages": {"10"}, "AttributeName.1": {"ApproximateReceiveCount"}},
			`OK <ReceiveMessageResponse` + ns + `><ReceiveMessageResult><Message><MessageId>UUID</MessageId><ReceiptHandle>UUID#1</ReceiptHandle>` +
				`<MD5OfBody>` + digest("<x>") + `</MD5OfBody><Body>&lt;x&gt;</Body><Attribute><Name>ApproximateReceiveCount</Name><Value>1</Value></Attribute>` +
				`</Message></ReceiveMessageResult>` + end + `</ReceiveMessageResponse>`},
		{url.Values{"Action": {"DeleteMessage"}, "ReceiptHandle": {"x#1"}, "QueueUrl": {"http://sqs.test/111122223333/other"}},
			`Bad Request <ErrorResponse` + ns + `><Error><Type>Sender</Type><Code>AWS.SimpleQueueService.NonExistentQueue</Code>` +
				`<Message>The specified queue does not exist.</Message></Error><RequestId>UUID</RequestId></ErrorResponse>`},
		{url.Values{"Action": {"SendMessage"}, "MessageBody": {"x"}, "MessageDeduplicationId": {"y"}},
			`Bad Request <ErrorResponse` + ns + `><Error><Type>Sender</Type><Code>AWS.SimpleQueueService.UnsupportedOperation</Code>` +
				`<Message>The parameter MessageDeduplicationId is not recognized or not simulated in SendMessage</Message></Error>` +
				`<RequestId>UUID</RequestId></ErrorResponse>`},
	} {
		if diff := cmp.Diff(step.want, queried(t, c, step.form)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", step.form, diff)
		}
	}
}
