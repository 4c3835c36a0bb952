package call

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/smithy-go"
)

func TestKinds(t *testing.T) {
	for _, test := range []struct {
		code   string
		status int
		want   Kind
	}{
		{"RequestLimitExceeded", 503, Throttled}, {"Throttling", 400, Throttled}, {"ThrottlingException", 400, Throttled},
		{"EC2ThrottledException", 400, Throttled},
		{"Anything", 429, Throttled}, {"UnauthorizedOperation", 403, Denied}, {"AccessDenied", 403, Denied},
		{"ExpiredTokenException", 400, Denied},
		{"InvalidSubnetID.NotFound", 400, NotFound}, {"NoSuchEntity", 404, NotFound}, {"ParameterNotFound", 400, NotFound},
		{"InternalError", 500, Transient}, {"Unavailable", 503, Transient}, {"", 0, Transient}, {"", 502, Transient},
		{"InvalidParameterValue", 400, Rejected}, {"ValidationError", 400, Rejected},
	} {
		if got := kindOf(test.code, test.status); got != test.want {
			t.Errorf("%s with status %d: %s, want %s", test.code, test.status, got, test.want)
		}
	}
}

// A call is reported once when it ends, with its code. The error names the operation and wraps its cause.
func TestDo(t *testing.T) {
	refusal := &smithy.GenericAPIError{Code: "UnauthorizedOperation", Message: "You are not authorized."}
	for _, test := range []struct {
		name string
		err  error
		code string
		kind Kind
		text string
	}{
		{"well", nil, OK, "", ""},
		{"refused", refusal, "UnauthorizedOperation", Denied, "EC2 DescribeSubnets: UnauthorizedOperation: You are not authorized."},
		{"no answer", context.DeadlineExceeded, NoAnswer, Transient, "EC2 DescribeSubnets: context deadline exceeded"},
	} {
		var reported []Call
		caller := &Caller{Timeout: time.Minute, Now: time.Now, Observe: func(c Call) { reported = append(reported, c) }}
		out, err := Do(t.Context(), caller, "EC2", "DescribeSubnets", func(ctx context.Context) (int, error) {
			if _, limited := ctx.Deadline(); !limited {
				t.Errorf("%s: the call has no timeout", test.name)
			}
			return 7, test.err
		})
		switch {
		case len(reported) != 1:
			t.Errorf("%s: len(told) is %v, want 1, reported %+v", test.name, len(reported), reported)
		case reported[0].Code != test.code:
			t.Errorf("%s: told[0].Code is %v, want %v", test.name, reported[0].Code, test.code)
		case reported[0].Service != "EC2":
			t.Errorf(`%s: told[0].Service is %v, want "EC2"`, test.name, reported[0].Service)
		case reported[0].Operation != "DescribeSubnets":
			t.Errorf(`%s: told[0].Operation is %v, want "DescribeSubnets"`, test.name, reported[0].Operation)
		}
		if test.err == nil {
			if out != 7 || err != nil {
				t.Errorf("%s: %d, %v, want the response", test.name, out, err)
			}
			continue
		}
		switch {
		case !errors.Is(err, test.err):
			t.Errorf("%s: error is %v, not test.err", test.name, err)
		case KindOf(err) != test.kind:
			t.Errorf("%s: KindOf(err) is %v, want %v, %q", test.name, KindOf(err), test.kind, err)
		case !strings.HasPrefix(err.Error(), test.text):
			t.Errorf("%s: err.Error() is %q, want the prefix %q", test.name, err.Error(), test.text)
		}
	}
}
