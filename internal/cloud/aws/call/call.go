// Package call is one request to AWS: what became of it, as data, and what kind of error it ended in.
//
//	Do(ctx, caller, "EC2", "DescribeSubnets", send) --> answer
//	                                               \--> *Error: code, request id, kind (throttled, denied, ...)
//	                           caller.Observe(Call) : service, operation, code, time, for metrics
//
// Every request of the provider has a time limit and is told to an observer, whoever makes it. An error names the
// service, the operation and the request id that AWS's support asks for, so that whoever logs it need not.
//
// The kind of an error says what may be done about it: wait (throttled), try again (transient), tell a human (denied,
// rejected), or go on (not found). Whether it is done is the business of whoever called.
//
// The package must not know what the calls are for, nor any service.
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

// Kind is the kind of an error of AWS, as far as one does different things about it.
type Kind string

// The kinds.
const (
	// Throttled calls may be repeated later, and less often.
	Throttled Kind = "throttled"
	// Transient errors go away by themselves: no answer, no connection, an error of AWS's own, a time-out.
	Transient Kind = "transient"
	// NotFound says that what was asked for does not exist.
	NotFound Kind = "not found"
	// Denied says that our credentials do not allow it, or are not valid.
	Denied Kind = "denied"
	// Rejected requests are wrong; repeating them changes nothing.
	Rejected Kind = "rejected"
)

// Error is an error of one call of AWS, after the SDK's own retries.
type Error struct {
	Service   string // EC2
	Operation string // DescribeSubnets
	Code      string // of AWS, such as RequestLimitExceeded; empty if there was no answer
	RequestID string // for AWS's support; empty if there was no answer
	Kind      Kind
	// Advice is what somebody has to do about it; empty if it may go away by itself, or if nobody knows.
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

// KindOf is the kind of an error; empty if no call of AWS is the cause.
func KindOf(err error) Kind {
	var failed *Error
	if errors.As(err, &failed) {
		return failed.Kind
	}
	return ""
}

// Codes of calls that AWS has no code for.
const (
	OK       = "OK"
	NoAnswer = "NoAnswer"
)

// Call is what became of one call.
type Call struct {
	Service   string
	Operation string
	// Code is AWS's code of the error, OK without one, NoAnswer for an error that is not AWS's.
	Code string
	// RequestID of a call that was answered, as far as the caller knows it.
	RequestID string
	Took      time.Duration
}

// Caller makes calls.
type Caller struct {
	// Timeout of one call, the SDK's retries included.
	Timeout time.Duration
	Now     func() time.Time
	// Observe is told of every call when it has ended; it may be nil.
	Observe func(Call)
	// Unasked is told what answers contained although it was not asked for; it may be nil.
	Unasked func(Unasked)
}

// Do makes one call of an operation of a service. Errors: *Error.
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

// Forbidden reports whether a policy does not allow the call. Other errors that are Denied, such as an expired token, are about
// who asks and not about what.
func (e *Error) Forbidden() bool { return Forbids(e.Code) }

// Forbids reports whether a code of AWS says that a policy does not allow a call.
func Forbids(code string) bool { return slices.Contains(policies, code) }

// Label is the code, or NoAnswer.
func (e *Error) Label() string {
	if e.Code == "" {
		return NoAnswer
	}
	return e.Code
}

// ErrorOf reads an error of the SDK.
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

// unknown is the SDK's code for an error in which it finds no code of AWS's: the page of a load balancer, an empty body.
const unknown = "UnknownError"

// CodeOf is AWS's code of an error, empty if it has none: then nobody knows whether the call was carried out.
func CodeOf(err error) string {
	var refusal smithy.APIError
	if errors.As(err, &refusal) && refusal.ErrorCode() != unknown {
		return refusal.ErrorCode()
	}
	return ""
}

// kindOf tells the kind by the code of an error and the HTTP status, "" and 0 without an answer.
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
	transients = []string{"InternalError", "InternalFailure", "InternalServerError", "ServiceUnavailable", "Unavailable", "ServiceFailure", "RequestTimeout",
		"ConcurrentModification"}
)
