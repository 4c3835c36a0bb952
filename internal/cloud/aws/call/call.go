// Package call represents one request to AWS: its result as data, and the kind of its error.
//
//	Do(ctx, caller, "EC2", "DescribeSubnets", send) --> response
//	                                               \--> *Error: code, request ID, kind (throttled, denied, ...)
//	                           caller.Observe(Call) : service, operation, code, time, for metrics
//
// Every request of the provider has a timeout and is reported to an observer. An error has the service, the operation
// and the request ID that AWS support needs, so that logging code does not have to add them.
//
// The kind of an error determines the possible reactions: wait (throttled), retry (transient), require a change by a
// user (denied, rejected), or continue (not found). The caller decides.
//
// The package must not depend on the purpose of the calls, nor on any service.
package call

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Kind is the kind of an AWS error. Kinds differ in how they are handled.
type Kind string

// The kinds.
const (
	// Throttled calls may be repeated later, and less often.
	Throttled Kind = "throttled"
	// Transient errors are temporary: no response, no connection, an internal error of AWS, a timeout.
	Transient Kind = "transient"
	// NotFound means that the resource does not exist.
	NotFound Kind = "not found"
	// Denied means that the credentials do not allow the call, or are not valid.
	Denied Kind = "denied"
	// Rejected requests are invalid. Repeating them changes nothing.
	Rejected Kind = "rejected"
)

// Error is an error of one AWS call, after the SDK's own retries.
type Error struct {
	Service   string // such as EC2
	Operation string // such as DescribeSubnets
	Code      string // AWS's code, such as RequestLimitExceeded; empty without a response
	RequestID string // for AWS support; empty without a response
	Kind      Kind
	// Advice describes what a user must do. It is empty if the error is temporary or the solution is unknown.
	Advice string
	Err    error
}

func (e *Error) Error() string {
	text := e.Service + " " + e.Operation
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	if e.Advice != "" {
		text += ": " + e.Advice
	}
	var refusal smithy.APIError
	if errors.As(e.Err, &refusal) {
		return fmt.Sprintf("%s: %s: %s", text, refusal.ErrorCode(), refusal.ErrorMessage())
	}
	return text + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of an error. It is empty if the error is not from an AWS call.
func KindOf(err error) Kind {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Kind
	}
	return ""
}

// Codes for results without an AWS code.
const (
	OK       = "OK"
	NoAnswer = "NoAnswer"
)

// Call is the result of one call.
type Call struct {
	Service   string
	Operation string
	// Code is AWS's error code, OK without an error, and NoAnswer for an error that is not from AWS.
	Code string
	// RequestID is set if there was a response and the caller knows the ID.
	RequestID string
	Took      time.Duration
}

// Caller makes calls.
type Caller struct {
	// Timeout is the limit of one call, including the SDK's retries.
	Timeout time.Duration
	Now     func() time.Time
	// Observe receives every call when it has ended. It may be nil.
	Observe func(Call)
	// Unasked receives items in responses that the request did not ask for. It may be nil.
	Unasked func(Unasked)
}

// Do calls an operation of a service. Errors: *Error.
func Do[Out any](ctx context.Context, c *Caller, service, operation string, send func(context.Context) (Out, error)) (Out, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	began := c.Now()
	out, err := send(limited)
	done := Call{Service: service, Operation: operation, Code: OK, Took: c.Now().Sub(began)}
	var failed *Error
	if err != nil {
		failed = ErrorOf(service, operation, err)
		done.Code, done.RequestID = failed.Label(), failed.RequestID
	}
	if c.Observe != nil {
		c.Observe(done)
	}
	if failed != nil {
		return out, failed
	}
	return out, nil
}

// Forbidden reports whether a policy denies the call. Other errors of kind Denied, such as an expired token, concern
// the credentials and not the operation.
func (e *Error) Forbidden() bool { return Forbids(e.Code) }

// Forbids reports whether an AWS code means that a policy denies a call.
func Forbids(code string) bool { return slices.Contains(policies, code) }

// Label returns the code, or NoAnswer.
func (e *Error) Label() string {
	if e.Code == "" {
		return NoAnswer
	}
	return e.Code
}

// ErrorOf converts an error of the SDK.
func ErrorOf(service, operation string, err error) *Error {
	e := &Error{Service: service, Operation: operation, Err: err}
	var response *awshttp.ResponseError
	status := 0
	if errors.As(err, &response) {
		e.RequestID, status = response.ServiceRequestID(), response.HTTPStatusCode()
	}
	e.Code = CodeOf(err)
	e.Kind = kindOf(e.Code, status)
	return e
}

// unknown is the SDK's code for an error without an AWS code: the page of a load balancer, an empty body.
const unknown = "UnknownError"

// CodeOf returns AWS's code of an error, or an empty string if it has none. Without a code, it is unknown whether the
// call was executed.
func CodeOf(err error) string {
	var refusal smithy.APIError
	if errors.As(err, &refusal) && refusal.ErrorCode() != unknown {
		return refusal.ErrorCode()
	}
	return ""
}

// kindOf derives the kind from the code of an error and the HTTP status, which are "" and 0 without a response.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
// https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html,
// https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html
func kindOf(code string, status int) Kind {
	_, throttle := retry.DefaultThrottleErrorCodes[code]
	switch {
	case throttle || status == http.StatusTooManyRequests:
		return Throttled
	case slices.Contains(denials, code):
		return Denied
	case strings.HasSuffix(code, ".NotFound") || slices.Contains(absences, code):
		return NotFound
	case code == "" || status >= 500 || slices.Contains(transients, code):
		return Transient
	}
	return Rejected
}

var (
	policies = []string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "NotAuthorized"}
	denials  = append(slices.Clip(policies), "AuthFailure", "Blocked", "ExpiredToken",
		"ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException",
		"SignatureDoesNotMatch", "MissingAuthenticationToken", "OptInRequired", "UnrecognizedClient", "InvalidSecurity", "InvalidAccessKeyId")
	absences = []string{"NoSuchEntity", "NoSuchEntityException", "ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException",
		"AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist"}
	transients = []string{"InternalError", "InternalFailure", "InternalServerError", "ServiceUnavailable",
		"Unavailable", "ServiceFailure", "RequestTimeout",
		"ConcurrentModification"}
)
