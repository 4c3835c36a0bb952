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

// request is what may have been asked for under a token.
type request struct {
	// Made is what its machines are made from.
	Made Origin                `json:"made"`
	Sent *ec2.CreateFleetInput `json:"sent"`
}

// requests are those that may have been sent under one token, the oldest first. EC2 has carried out one of them at most, and
// says which: the others do not match the token then. There is more than one if EC2 refused a request after an answer to it may
// have been lost.
type requests []request

// mostRequests are kept for one purchase.
const mostRequests = 4

// requestsKept is how long they are. Claims that have no machine by then are gone, and EC2 knows tokens for much longer
// (https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html).
const requestsKept = time.Hour

// text is JSON, compressed, in base64: 1,100 characters for one type in one zone, 5,400 for the 300 overrides that EC2 takes at
// most, of an annotation's 262,144.
func (r requests) text() string {
	var text bytes.Buffer
	coder := base64.NewEncoder(base64.StdEncoding, &text)
	packer := gzip.NewWriter(coder)
	if err := errors.Join(json.NewEncoder(packer).Encode(r), packer.Close(), coder.Close()); err != nil {
		panic("writing fleet requests: " + err.Error()) // strings and finite numbers always have a JSON form, and a buffer takes all
	}
	return text.String()
}

// requestsOf is the inverse of text. There is at least one.
func requestsOf(text string) (requests, error) {
	const most = 16 << 20 // bytes; what a hostile text unpacks to has no bound
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
			return nil, fmt.Errorf("reading fleet requests: number %d asks for nothing", i+1)
		}
	}
	if len(r) == 0 {
		return nil, errors.New("reading fleet requests: there are none")
	}
	return r, nil
}

// is says whether EC2 takes the two for one request.
func (r request) is(other request) bool { return reflect.DeepEqual(r.Sent, other.Sent) }

// places that the request is for.
func (r request) places() places {
	for _, s := range r.Sent.TagSpecifications {
		if text := tagMap(s.Tags)[TagPlaces]; text != "" {
			return placesOf(text)
		}
	}
	return nil
}

// templates are the names of the launch templates that the request needs.
func (r request) templates() []string {
	var names []string
	for _, c := range r.Sent.LaunchTemplateConfigs {
		if c.LaunchTemplateSpecification != nil {
			names = append(names, aws.ToString(c.LaunchTemplateSpecification.LaunchTemplateName))
		}
	}
	return names
}

// sweepRequests takes the requests that are no longer needed off their claims, and returns the launch templates that the others
// need. It goes on with the others if a claim cannot be written.
func (l *Launcher) sweepRequests(ctx context.Context) (map[string]bool, error) {
	entries, err := l.opts.Recorder.Entries(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for purchases on record: %w", err)
	}
	needed := map[string]bool{}
	var failed []error
	for claim, e := range entries {
		if e.Requests == "" {
			continue
		}
		if l.opts.Clock.Since(e.At) < requestsKept {
			kept, _ := requestsOf(e.Requests) // nobody can ask for what cannot be read
			for _, r := range kept {
				for _, name := range r.templates() {
					needed[name] = true
				}
			}
			continue
		}
		without := e
		without.Requests = ""
		if err := l.opts.Recorder.Record(ctx, e.Lead.object(), e, without); err != nil && !errors.Is(err, ErrChanged) && !errors.Is(err, ErrNoRecord) {
			failed = append(failed, fmt.Errorf("taking the requests of purchase %s off NodeClaim %q: %w", e.Token(), claim, err))
		}
	}
	return needed, errors.Join(failed...)
}
