package call

import (
	"context"
	"errors"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Request is what became of a request of the SDK, or of one of its attempts.
type Request struct {
	Service, Operation string // as the SDK names them: EC2, DescribeSubnets
	Status             int    // of HTTP; 0 without an answer
	Took               time.Duration
	// Retries of a request, beyond its first attempt; always 0 for an attempt.
	Retries int
}

// Watch tells of all requests that a client makes, and of each attempt at one. Both functions are called by several
// goroutines.
func Watch(requested, attempted func(Request)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		whole := middleware.InitializeMiddlewareFunc("WatchRequest", func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
			began := time.Now()
			out, metadata, err := next.HandleInitialize(ctx, in)
			r := requestOf(ctx, metadata, err, began)
			if attempts, ok := retry.GetAttemptResults(metadata); ok {
				r.Retries = max(0, len(attempts.Results)-1)
			}
			requested(r)
			return out, metadata, err
		})
		attempt := middleware.FinalizeMiddlewareFunc("WatchAttempt", func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
			began := time.Now()
			out, metadata, err := next.HandleFinalize(ctx, in)
			attempted(requestOf(ctx, metadata, err, began))
			return out, metadata, err
		})
		// Once the service and the operation are known, and within the retries.
		return errors.Join(stack.Initialize.Add(whole, middleware.After), stack.Finalize.Insert(attempt, "Retry", middleware.After))
	}
}

func requestOf(ctx context.Context, metadata middleware.Metadata, err error, began time.Time) Request {
	r := Request{Service: awsmiddleware.GetServiceID(ctx), Operation: awsmiddleware.GetOperationName(ctx), Took: time.Since(began)}
	var failed *awshttp.ResponseError
	if errors.As(err, &failed) {
		r.Status = failed.HTTPStatusCode()
	} else if response, ok := awsmiddleware.GetRawResponse(metadata).(*smithyhttp.Response); ok {
		r.Status = response.StatusCode
	}
	return r
}
