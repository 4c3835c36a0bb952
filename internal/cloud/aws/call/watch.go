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

// Request is the result of a request of the SDK, or of one of its attempts.
type Request struct {
	Service, Operation string // the SDK's names, such as EC2 and DescribeSubnets
	Status             int    // HTTP status; 0 without a response
	Took               time.Duration
	// Retries is the number of attempts of a request after the first. It is 0 for an attempt.
	Retries int
}

// Watch returns a middleware that reports all requests of a client, and each of their attempts. Both functions are
// called concurrently.
func Watch(requested, attempted func(Request)) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		whole := middleware.InitializeMiddlewareFunc("WatchRequest",
			func(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput,
				middleware.Metadata, error) {
				began := time.Now()
				out, metadata, err := next.HandleInitialize(ctx, in)
				r := requestOf(ctx, metadata, err, began)
				if attempts, ok := retry.GetAttemptResults(metadata); ok {
					r.Retries = max(0, len(attempts.Results)-1)
				}
				requested(r)
				return out, metadata, err
			})
		attempt := middleware.FinalizeMiddlewareFunc("WatchAttempt",
			func(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput,
				middleware.Metadata, error) {
				began := time.Now()
				out, metadata, err := next.HandleFinalize(ctx, in)
				attempted(requestOf(ctx, metadata, err, began))
				return out, metadata, err
			})
		// The request is observed once the service and the operation are known, and the attempts within the retries.
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
