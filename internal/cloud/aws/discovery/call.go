package discovery

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

// CallError is an error of one call of AWS, after the SDK's own retries.
type CallError struct {
	Service   string // EC2
	Operation string // DescribeSubnets
	Code      string // of AWS, such as RequestLimitExceeded; empty if there was no answer
	RequestID string // for AWS's support; empty if there was no answer
	Kind      Kind
	Err       error
}

func (e *CallError) Error() string {
	text := e.Service + " " + e.Operation
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	var refusal smithy.APIError
	if errors.As(e.Err, &refusal) {
		return fmt.Sprintf("%s: %s: %s", text, refusal.ErrorCode(), refusal.ErrorMessage())
	}
	return text + ": " + e.Err.Error()
}

func (e *CallError) Unwrap() error { return e.Err }

// KindOf is the kind of an error of this package; empty if no call of AWS is the cause.
func KindOf(err error) Kind {
	var call *CallError
	if errors.As(err, &call) {
		return call.Kind
	}
	return ""
}

// Call is what became of one call.
type Call struct {
	Service   string
	Operation string
	Code      string // of the error; empty for success, "NoAnswer" without an answer
	Took      time.Duration
}

// Caller makes calls.
type Caller struct {
	// Timeout of one call, the SDK's retries included.
	Timeout time.Duration
	Now     func() time.Time
	// Observe is told of every call when it has ended.
	Observe func(Call)
}

// Do makes one call of an operation of a service. Errors: *CallError.
func Do[Out any](ctx context.Context, c *Caller, service, operation string, call func(context.Context) (Out, error)) (Out, error) {
	limited, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	began := c.Now()
	out, err := call(limited)
	done := Call{Service: service, Operation: operation, Took: c.Now().Sub(began)}
	if err == nil {
		c.Observe(done)
		return out, nil
	}
	failed := callErrorOf(service, operation, err)
	if done.Code = failed.Code; done.Code == "" {
		done.Code = "NoAnswer"
	}
	c.Observe(done)
	return out, failed
}

func callErrorOf(service, operation string, err error) *CallError {
	e := &CallError{Service: service, Operation: operation, Err: err}
	var response *awshttp.ResponseError
	status := 0
	if errors.As(err, &response) {
		e.RequestID, status = response.ServiceRequestID(), response.HTTPStatusCode()
	}
	var refusal smithy.APIError
	if errors.As(err, &refusal) {
		e.Code = refusal.ErrorCode()
	}
	e.Kind = kindOf(e.Code, status)
	return e
}

// kindOf tells the kind by the code of an error and the HTTP status, "" and 0 without an answer.
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html,
// https://docs.aws.amazon.com/IAM/latest/APIReference/CommonErrors.html
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
	denials = []string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException", "AuthFailure", "Blocked", "ExpiredToken",
		"ExpiredTokenException", "RequestExpired", "InvalidClientTokenId", "UnrecognizedClientException", "InvalidSignatureException",
		"SignatureDoesNotMatch", "MissingAuthenticationToken", "NotAuthorized", "OptInRequired", "UnrecognizedClient"}
	absences   = []string{"NoSuchEntity", "NoSuchEntityException", "ParameterNotFound", "ParameterVersionNotFound", "ResourceNotFoundException"}
	transients = []string{"InternalError", "InternalFailure", "InternalServerError", "ServiceUnavailable", "Unavailable", "ServiceFailure", "RequestTimeout",
		"ConcurrentModification"}
)
