package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/karpenter-go/karpenter/internal/legacy/v1beta1"
)

// These constants bound the cost of one request and of all together. Any client that reaches the port may send one.
const (
	// longestReview, in bytes, bounds one request. The API server sends a list as a whole: some 5,000 objects. A client
	// of an older version that has more must read pages.
	longestReview = 16 << 20
	// longestObject, in bytes, bounds one object. The limit of etcd is 1.5 MiB by default.
	longestObject = 3 << 20
	// shortReview, in bytes, is the longest request that needs no place: one object, nearly always. longReviews is how
	// many longer ones are in memory at a time, and placeTime how long another waits for a place.
	shortReview = 64 << 10
	longReviews = 2
	placeTime   = 5 * time.Second
	// mostConnections bounds the open connections, and so the short requests.
	mostConnections = 128
	// readTime is how long a request may take to arrive, and longestTime how long it may take in all. The API server
	// waits for 30 s.
	readTime    = 10 * time.Second
	longestTime = 30 * time.Second
	// cheapObject and dearness bound the memory cost of an object: the first in bytes, the second as a multiple of
	// its length.
	cheapObject, dearness = 3 << 20, 3
	// deepestObject bounds the nesting of an object, and so the stack of a conversion. Files have the same bound.
	deepestObject = 1000
	// longestText, in bytes, bounds the part of a client's text in a response or in the log.
	longestText = 256
)

// errBusy refuses a request because of other requests in progress. The API server's clients retry.
var errBusy = errors.New("too many conversions are in progress; try again")

// tooLongError refuses an object because of its length or its cost.
type tooLongError struct{ what string }

func (e *tooLongError) Error() string { return e.what }

// short returns a text of a client, truncated to longestText.
func short(text string) string { return truncated(text, longestText) }

func truncated(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most-len("...")], "") + "..."
}

// nameOf returns the kind and the name of an object that is not read.
func nameOf(raw []byte) string {
	var head struct {
		Kind     string                `json:"kind"`
		Metadata struct{ Name string } `json:"metadata"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return "an object without a name"
	}
	return truncated(head.Kind, longestText/4) + " " + truncated(head.Metadata.Name, longestText/4)
}

// affordable returns nil for an object that may be converted. The texts of annotations that are read as JSON have
// bounds of their own (v1beta1.BoundError).
func affordable(raw []byte) error {
	if len(raw) > longestObject {
		return &tooLongError{fmt.Sprintf("an object has %d bytes, want at most %d", len(raw), longestObject)}
	}
	fields, depth := v1beta1.Cost(raw)
	if most := max(cheapObject, dearness*len(raw)); fields > most {
		return &tooLongError{fmt.Sprintf("an object of %d bytes has so many fields that converting it would take %d bytes, want at most %d", len(raw), fields, most)}
	}
	if depth > deepestObject {
		return &tooLongError{fmt.Sprintf("an object is nested %d deep, want at most %d", depth, deepestObject)}
	}
	if !utf8.Valid(raw) { // each wrong byte would take three when it is read
		return errors.New("an object is not UTF-8")
	}
	return nil
}

// take waits for a place in a channel, and returns a function that releases it. It returns an error if the context
// ends before.
func take(ctx context.Context, places chan struct{}) (release func(), err error) {
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", errBusy, ctx.Err())
	}
}
