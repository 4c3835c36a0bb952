package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
)

// SQSAPI is what the package asks of SQS; *sqs.Client has it.
type SQSAPI interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// EC2API is what the package asks of EC2; *ec2.Client has it.
type EC2API interface {
	DescribeInstanceStatus(context.Context, *ec2.DescribeInstanceStatusInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error)
}

// Call is a call to AWS that is over.
type Call struct {
	Service   string // SQS or EC2
	Operation string
	// Code is AWS's code of the error, "OK" without one, "NoAnswer" for an error that is not AWS's.
	Code string
	Took time.Duration
}

// CallError is a call that failed.
type CallError struct {
	Service, Operation string
	Code               string // of AWS, empty if there was no answer
	RequestID          string // for AWS's support, empty if there was no answer
	// Advice is what somebody has to do about it, empty if it may go away by itself.
	Advice string
	Err    error
}

func (e *CallError) Error() string {
	text := "calling " + e.Service + " " + e.Operation
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	if e.Advice != "" {
		text += ": " + e.Advice
	}
	return text + ": " + e.Err.Error()
}

func (e *CallError) Unwrap() error { return e.Err }

// cause is what makes two errors the same trouble.
func (e *CallError) cause() string { return e.Service + " " + e.Operation + " " + e.Code }

const (
	// answerTime is how long an answer may take, beyond the time that a long poll waits for messages.
	answerTime = 10 * time.Second
	// service names
	serviceSQS, serviceEC2 = "SQS", "EC2"
)

// call makes one call of a service. Repeating is the loops' business, so the SDK does not.
func call[Out any](ctx context.Context, w *Watcher, of operation, do func(context.Context) (Out, error)) (Out, error) {
	limited, cancel := context.WithTimeout(ctx, of.wait+answerTime)
	defer cancel()
	began := w.opts.Clock.Now()
	out, err := do(limited)
	report := Call{Service: of.service, Operation: of.name, Code: "OK", Took: w.opts.Clock.Since(began)}
	var failed *CallError
	if err != nil {
		failed = w.errorOf(of, err)
		if report.Code = failed.Code; report.Code == "" {
			report.Code = "NoAnswer"
		}
	}
	tell(w.opts.Observer.Called, report)
	if failed != nil {
		return out, failed
	}
	return out, nil
}

// operation is one of a service's, which may take its time.
type operation struct {
	service, name string
	wait          time.Duration
	permission    string
}

func (w *Watcher) errorOf(of operation, err error) *CallError {
	e := &CallError{Service: of.service, Operation: of.name, Err: err}
	var response *awshttp.ResponseError
	if errors.As(err, &response) {
		e.RequestID = response.ServiceRequestID()
	}
	var refusal smithy.APIError
	if errors.As(err, &refusal) {
		e.Code = refusal.ErrorCode()
	}
	switch {
	case slices.Contains(denials, e.Code):
		e.Advice = fmt.Sprintf("the controller's role needs the permission %s", of.permission)
		if of.service == serviceSQS {
			e.Advice += fmt.Sprintf(" on the queue %q", w.opts.Queue)
		}
	case slices.Contains(strangers, e.Code):
		e.Advice = "the controller's credentials are not valid, or no longer"
	case slices.Contains(absences, e.Code):
		e.Advice = fmt.Sprintf("there is no queue %q in this account and region: create it, or change the setting interruption-queue", w.opts.Queue)
	}
	return e
}

// absent says that an error is about a queue that is not there.
func absent(err error) bool {
	var failed *CallError
	return errors.As(err, &failed) && slices.Contains(absences, failed.Code)
}

// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html,
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
var (
	denials   = []string{"AccessDenied", "AccessDeniedException", "UnauthorizedOperation", "NotAuthorized"}
	strangers = []string{"AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "InvalidSecurity", "RequestExpired", "UnrecognizedClientException",
		"InvalidSignatureException", "SignatureDoesNotMatch", "MissingAuthenticationToken", "InvalidAccessKeyId"}
	absences = []string{"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
)

func onceSQS(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }
func onceEC2(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }
