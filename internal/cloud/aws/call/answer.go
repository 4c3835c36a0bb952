package call

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// NoAnswerError is a response with a success status that is not from AWS: an empty one, or the page of a proxy. The SDK
// treats both as an empty result: no instance, no subnet, no price.
type NoAnswerError struct {
	Status int
	What   string
}

func (e *NoAnswerError) Error() string {
	return fmt.Sprintf("HTTP status %d with %s, which is not a response of AWS; is there a proxy in between?", e.Status, e.What)
}

// RetryableError reports to the SDK's retryer that a retry may succeed.
func (e *NoAnswerError) RetryableError() bool { return true }

// Answered is a middleware that makes a client reject such responses. Every response of the called services has a body,
// except for those of SQS, whose client must not use this.
func Answered(stack *middleware.Stack) error {
	return stack.Deserialize.Add(middleware.DeserializeMiddlewareFunc("Answered", answered), middleware.After)
}

func answered(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput,
	middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	response, ok := out.RawResponse.(*smithyhttp.Response)
	if err != nil || !ok || response.StatusCode < 200 || response.StatusCode >= 300 {
		return out, metadata, err // an error in any case
	}
	if strings.Contains(strings.ToLower(response.Header.Get("Content-Type")), "html") {
		return out, metadata, &NoAnswerError{response.StatusCode, "a page of HTML"}
	}
	body := bufio.NewReaderSize(response.Body, 16)
	if _, err := body.Peek(1); err == io.EOF {
		return out, metadata, &NoAnswerError{response.StatusCode, "an empty body"}
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{body, response.Body}
	return out, metadata, nil
}
