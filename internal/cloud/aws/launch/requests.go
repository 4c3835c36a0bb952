package launch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
)

// request is a request that may have been sent with a token.
type request struct {
	// Origin describes what its machines are made from.
	Made Origin                `json:"made"`
	Sent *ec2.CreateFleetInput `json:"sent"`
	// Holds are the capacity reservations that the request uses, by type and zone (placeKey). It is nil for other
	// capacity types, and in requests of earlier versions.
	Holds map[string]Hold `json:"holds,omitempty"`
}

// requests are those that may have been sent with one token, oldest first. EC2 has executed at most one of them. The
// others do not match the token then, and EC2 reports it. There is more than one if EC2 refused a request after a
// response to it may have been lost.
type requests []request

// maxRequests is the maximum number of requests that are stored for one fleet launch.
const maxRequests = 4

// requestsKept is how long requests are stored. Claims without a machine are deleted before that, and EC2 keeps tokens
// much longer (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html).
const requestsKept = time.Hour

// text returns the requests as JSON, compressed, in base64. It has 1,100 characters for one type in one zone, and 5,400
// for the maximum of 300 overrides. An annotation can have 262,144.
func (r requests) text() string {
	var text bytes.Buffer
	coder := base64.NewEncoder(base64.StdEncoding, &text)
	packer := gzip.NewWriter(coder)
	if err := errors.Join(json.NewEncoder(packer).Encode(r), packer.Close(), coder.Close()); err != nil {
		// strings and finite numbers always have a JSON form, and writes to a buffer do not fail
		panic("writing fleet requests: " + err.Error())
	}
	return text.String()
}

// requestsOf is the inverse of text. It returns at least one request, or an error.
func requestsOf(text string) (requests, error) {
	const most = 16 << 20 // bytes; limits the decompression of a malicious text
	packed, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, bytes.NewBufferString(text)))
	if err != nil {
		return nil, fmt.Errorf("unpacking fleet requests: %w", err)
	}
	plain, err := io.ReadAll(io.LimitReader(packed, most))
	if err != nil {
		return nil, fmt.Errorf("unpacking fleet requests: %w", err)
	}
	var r requests
	if err := json.Unmarshal(plain, &r); err != nil {
		return nil, fmt.Errorf("reading fleet requests: %w", err)
	}
	for i := range r {
		if r[i].Sent == nil || r[i].Sent.TargetCapacitySpecification == nil {
			return nil, fmt.Errorf("reading fleet requests: number %d requests no instance", i+1)
		}
	}
	if len(r) == 0 {
		return nil, errors.New("reading fleet requests: there are none")
	}
	return r, nil
}

// equal reports whether EC2 treats the two as the same request.
func (r request) equal(other request) bool { return reflect.DeepEqual(r.Sent, other.Sent) }

// indexes returns the indexes that the request is for.
func (r request) indexes() indexSet {
	for _, s := range r.Sent.TagSpecifications {
		if text := tagMap(s.Tags)[TagIndexes]; text != "" {
			return indexSetOf(text)
		}
	}
	return nil
}

// templates returns the names of the launch templates that the request needs.
func (r request) templates() []string {
	var names []string
	for _, c := range r.Sent.LaunchTemplateConfigs {
		if c.LaunchTemplateSpecification != nil {
			names = append(names, aws.ToString(c.LaunchTemplateSpecification.LaunchTemplateName))
		}
	}
	return names
}

// sweepRequests removes requests that are no longer needed from their claims, and returns the launch templates that the
// others need. If a claim cannot be written, it continues with the others.
func (l *Launcher) sweepRequests(ctx context.Context) (map[string]bool, error) {
	records, err := l.opts.RecordStore.Records(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing recorded launches: %w", err)
	}
	needed := map[string]bool{}
	var failed []error
	for claim, e := range records {
		if e.Requests == "" {
			continue
		}
		if l.opts.Clock.Since(e.RecordedAt) < requestsKept {
			kept, _ := requestsOf(e.Requests) // invalid requests cannot be sent
			for _, r := range kept {
				for _, name := range r.templates() {
					needed[name] = true
				}
			}
			continue
		}
		without := e
		without.Requests = ""
		if err := l.opts.RecordStore.Replace(ctx, e.Coordinator.object(), e, without); err != nil && !errors.Is(err,
			ErrChanged) && !errors.Is(err, ErrNoRecord) {
			failed = append(failed, fmt.Errorf("removing the requests of launch %s from NodeClaim %q: %w", e.Token(), claim, err))
		}
	}
	return needed, errors.Join(failed...)
}
