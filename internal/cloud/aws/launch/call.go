package launch

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go/middleware"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
)

// EC2API has the methods of *ec2.Client that the package calls.
type EC2API interface {
	CreateFleet(context.Context, *ec2.CreateFleetInput, ...func(*ec2.Options)) (*ec2.CreateFleetOutput, error)
	CreateLaunchTemplate(context.Context, *ec2.CreateLaunchTemplateInput, ...func(*ec2.Options)) (*ec2.CreateLaunchTemplateOutput, error)
	DeleteLaunchTemplate(context.Context, *ec2.DeleteLaunchTemplateInput, ...func(*ec2.Options)) (*ec2.DeleteLaunchTemplateOutput, error)
	DescribeLaunchTemplates(context.Context, *ec2.DescribeLaunchTemplatesInput,
		...func(*ec2.Options)) (*ec2.DescribeLaunchTemplatesOutput, error)
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	TerminateInstances(context.Context, *ec2.TerminateInstancesInput, ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
	CreateTags(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
}

// callTimeout is the timeout of one call to EC2.
const callTimeout = 30 * time.Second

// send makes one call with its rate limiter, timeout and report. The SDK does not retry it: the handling of an error
// depends on whether the call launches instances.
func send[In, Out any](ctx context.Context, l *Launcher, name string, do func(context.Context, In, ...func(*ec2.Options)) (Out, error),
	in In) (Out, error) {
	var none Out
	g := l.limiters[name]
	if err := g.wait(ctx); err != nil {
		return none, fmt.Errorf("waiting to call EC2 %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	began := l.opts.Clock.Now()
	id := ""
	out, err := do(ctx, in, withoutRetries, func(o *ec2.Options) {
		o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
			return stack.Deserialize.Add(noteRequestID(&id), middleware.Before)
		})
	})
	report := call.Call{Service: service, Operation: name, Code: call.OK, RequestID: id, Took: l.opts.Clock.Since(began)}
	var failed *call.Error
	if err != nil {
		failed = call.ErrorOf(service, name, err)
		report.Code = failed.Label()
	}
	switch callResultOf(err) {
	case executed:
		g.succeeded()
	case throttled:
		g.throttled()
	}
	if l.opts.Observe != nil {
		l.opts.Observe(report)
	}
	if failed != nil {
		return none, failed
	}
	return out, nil
}

// service is the name of the AWS service in call reports.
const service = "EC2"

func withoutRetries(o *ec2.Options) { o.Retryer = aws.NopRetryer{} }

// noteRequestID stores AWS's ID of the request.
func noteRequestID(id *string) middleware.DeserializeMiddleware {
	return middleware.DeserializeMiddlewareFunc("NoteRequestID",
		func(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput,
			middleware.Metadata, error) {
			out, metadata, err := next.HandleDeserialize(ctx, in)
			*id, _ = awsmiddleware.GetRequestIDMetadata(metadata)
			return out, metadata, err
		})
}

// withRetries makes an idempotent call and retries it until it is executed or refused. It retries at most five times,
// except after throttling.
func withRetries[In, Out any](ctx context.Context, l *Launcher, name string,
	do func(context.Context, In, ...func(*ec2.Options)) (Out, error), in In) (Out, error) {
	for try := 1; ; try++ {
		out, err := send(ctx, l, name, do, in)
		if f := callResultOf(err); f != throttled && (f != lost || try >= 5) || ctx.Err() != nil {
			return out, err
		}
		if waited := backOff(ctx, l.opts.Clock, try); waited != nil {
			return out, err
		}
	}
}
