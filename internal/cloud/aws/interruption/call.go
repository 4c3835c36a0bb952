package interruption

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// SQSAPI has the methods of *sqs.Client that the package calls.
type SQSAPI interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
}

// EC2API has the methods of *ec2.Client that the package calls.
type EC2API interface {
	DescribeVolumeStatus(context.Context, *ec2.DescribeVolumeStatusInput, ...func(*ec2.Options)) (*ec2.DescribeVolumeStatusOutput, error)
	DescribeInstanceStatus(context.Context, *ec2.DescribeInstanceStatusInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceStatusOutput, error)
}

// causeOf returns a string that is equal for errors with the same cause.
func causeOf(e *call.Error) string { return e.Service + " " + e.Operation + " " + e.Code }

const (
	// answerTime is the time limit of a call, in addition to the time that a long poll waits for messages.
	answerTime = 10 * time.Second
	// serviceSQS and serviceEC2 are the names of the services.
	serviceSQS, serviceEC2 = "SQS", "EC2"
)

// send makes one call of a service. The loops handle retries, so the SDK does not.
func send[Out any](ctx context.Context, w *Watcher, of operation, do func(context.Context) (Out, error)) (Out, error) {
	out, err := call.Do(ctx, w.caller(of), of.service, of.name, do)
	return out, w.advised(of, err)
}

// pagesOf makes a call of EC2 for each page. It ends at the first error.
func pagesOf[Out any](ctx context.Context, w *Watcher, of operation, pages call.Paginator[Out, ec2.Options]) iter.Seq2[Out, error] {
	return func(yield func(Out, error) bool) {
		for page, err := range call.Pages(ctx, w.caller(of), of.service, of.name, pages, onceEC2) {
			if !yield(page, w.advised(of, err)) {
				return
			}
		}
	}
}

// caller returns what makes the calls of an operation.
func (w *Watcher) caller(of operation) *call.Caller {
	return &call.Caller{Timeout: of.wait + answerTime, Now: w.opts.Clock.Now, Observe: w.opts.Observer.Called}
}

// advised returns the error of a call with what a user must do about it.
func (w *Watcher) advised(of operation, err error) error {
	var failed *call.Error
	if errors.As(err, &failed) {
		failed.Advice = w.advice(of, failed.Code)
	}
	return err
}

// operation is an operation of a service. wait is added to its time limit.
type operation struct {
	service, name string
	wait          time.Duration
	permission    string
}

// advice returns what a user must do about an error with that code.
func (w *Watcher) advice(of operation, code string) string {
	switch {
	case call.Forbids(code):
		advice := "the controller's role needs the permission " + of.permission
		if of.service == serviceSQS {
			advice += fmt.Sprintf(" on the queue %q", w.opts.Queue)
		}
		return advice
	case slices.Contains(strangers, code):
		return "the controller's credentials are not valid, or no longer"
	case slices.Contains(absences, code):
		return fmt.Sprintf("the queue %q does not exist in this account and region: create it, or change the setting interruption-queue",
			w.opts.Queue)
	}
	return ""
}

// absent reports whether an error means that the queue does not exist.
func absent(err error) bool {
	var failed *call.Error
	return errors.As(err, &failed) && slices.Contains(absences, failed.Code)
}

// Error codes: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html,
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
var (
	strangers = []string{"AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId",
		"InvalidSecurity", "RequestExpired", "UnrecognizedClientException",
		"InvalidSignatureException", "SignatureDoesNotMatch", "MissingAuthenticationToken", "InvalidAccessKeyId"}
	absences = []string{"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
)

func onceSQS(o *sqs.Options) { o.Retryer = aws.NopRetryer{} }
func onceEC2(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }
