package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/legacy/v1beta1"
)

// reviewer responds to ConversionReviews. Objects are decoded, converted and written one at a time, so that a list
// needs no more memory than its text and its largest object.
type reviewer struct {
	expiries *expiries
	log      logr.Logger
	long     chan struct{} // requests that are longer than shortReview
	turn     chan struct{} // the one object that is being converted: the other CPUs are left to the planner
	// failed and ignored limit the log lines of each cause to one per second: a client can cause one per request.
	failed, ignored rate.Sometimes
	// single converts one object. At most one call is in progress.
	single func(c conversion) (_ []byte, pool string, _ error)
}

// conversion is an object, as JSON, to be converted to an API version.
type conversion struct {
	raw     []byte
	version string
	// known returns the expireAfter of a pool, if it is known.
	known func(pool string) (string, bool)
	// ignored is called with each annotation that is not read.
	ignored func(*v1beta1.BoundError)
}

// review is a ConversionReview of which the objects are not decoded yet.
type review struct {
	Request *struct {
		UID     string          `json:"uid"`
		Version string          `json:"desiredAPIVersion"`
		Objects json.RawMessage `json:"objects"`
	} `json:"request"`
}

func newReviewer(api client.Reader, now func() time.Time, log logr.Logger) *reviewer {
	return &reviewer{
		expiries: &expiries{client: api, now: now, wait: pauseFor}, log: log, single: single,
		long: make(chan struct{}, longReviews), turn: make(chan struct{}, 1),
		failed: rate.Sometimes{Interval: time.Second}, ignored: rate.Sometimes{Interval: time.Second},
	}
}

// ServeHTTP converts the objects that the API server sends.
func (r *reviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	ctx, cancel := context.WithTimeout(request.Context(), longestTime)
	defer cancel()
	if request.ContentLength > longestReview {
		refuse(w, &tooLongError{fmt.Sprintf("the request has %d bytes, want at most %d", request.ContentLength, longestReview)})
		return
	}
	if request.ContentLength < 0 || request.ContentLength > shortReview {
		waiting, stop := context.WithTimeout(ctx, placeTime)
		defer stop()
		release, err := take(waiting, r.long)
		if err != nil {
			refuse(w, err)
			return
		}
		defer release()
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(readTime)) // unsupported only by the writers of tests
	asked, err := read(http.MaxBytesReader(w, request.Body, longestReview))
	if err != nil {
		refuse(w, err)
		return
	}
	r.answer(ctx, w, asked)
}

func read(body io.Reader) (review, error) {
	var asked review
	text, err := io.ReadAll(body)
	if err != nil {
		return asked, err
	}
	if err := json.Unmarshal(text, &asked); err != nil {
		return asked, err
	}
	if asked.Request == nil {
		return asked, errors.New("there is no request")
	}
	return asked, nil
}

// answer converts the objects of a request. It writes each as soon as it is converted; the result is the last field,
// because it is only known at the end.
func (r *reviewer) answer(ctx context.Context, w http.ResponseWriter, asked review) {
	w.Header().Set("Content-Type", "application/json")
	uid, _ := json.Marshal(asked.Request.UID) // a string can always be encoded
	_, _ = fmt.Fprintf(w, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","response":{"uid":%s,"convertedObjects":[`, uid)
	separator := ""
	err := each(asked.Request.Objects, func(raw []byte) error {
		converted, err := r.convert(ctx, raw, asked.Request.Version)
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, separator); err != nil {
			return err
		}
		separator = ","
		_, err = w.Write(converted)
		return err
	})
	result := metav1.Status{Status: metav1.StatusSuccess}
	if err != nil {
		result = metav1.Status{Status: metav1.StatusFailure, Message: short(err.Error())}
		r.failed.Do(func() {
			r.log.Info("objects could not be converted", "version", short(asked.Request.Version), "why", result.Message)
		})
	}
	text, _ := json.Marshal(result)
	_, _ = fmt.Fprintf(w, "],\"result\":%s}}\n", text) // an API server that did not wait reports its timeout
}

// each passes the objects of a list one by one.
func each(list json.RawMessage, object func(raw []byte) error) error {
	decoder := json.NewDecoder(bytes.NewReader(list))
	switch start, err := decoder.Token(); {
	case errors.Is(err, io.EOF) || err == nil && start == nil:
		return nil // no objects
	case err != nil:
		return err
	case start != json.Delim('['):
		return fmt.Errorf("objects are %v, want a list", start)
	}
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		if err := object(raw); err != nil {
			return err
		}
	}
	return nil
}

// refuse responds to a request of which nothing is converted.
func refuse(w http.ResponseWriter, err error) {
	var long *tooLongError
	var longer *http.MaxBytesError
	switch {
	case errors.Is(err, errBusy):
		w.Header().Set("Retry-After", "1")
		http.Error(w, short(err.Error()), http.StatusServiceUnavailable)
	case errors.Is(err, os.ErrDeadlineExceeded):
		http.Error(w, "the request arrived too slowly", http.StatusRequestTimeout)
	case errors.As(err, &long), errors.As(err, &longer):
		http.Error(w, short(err.Error()), http.StatusRequestEntityTooLarge)
	default:
		http.Error(w, short(fmt.Sprintf("want a ConversionReview with a request: %v", err)), http.StatusBadRequest)
	}
}

// errAsk means that a pool has to be read before the object can be converted.
var errAsk = errors.New("a pool has to be asked")

// convert converts one object while no other is being converted. The API server may need this webhook to convert
// pools before it can list them, so the list is read while other objects may be converted.
func (r *reviewer) convert(ctx context.Context, raw []byte, version string) ([]byte, error) {
	if err := affordable(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(raw), err)
	}
	c := conversion{raw: raw, version: version, known: r.expiries.known, ignored: func(err *v1beta1.BoundError) {
		r.ignored.Do(func() {
			r.log.Info("an annotation of an object is not read; the object is converted without it", "why", short(err.Error()))
		})
	}}
	converted, pool, err := r.inTurn(ctx, c)
	if !errors.Is(err, errAsk) {
		return converted, err
	}
	age, err := r.expiries.of(ctx, pool)
	if err != nil {
		return nil, err
	}
	c.known = func(string) (string, bool) { return age, true }
	converted, _, err = r.inTurn(ctx, c)
	return converted, err
}

func (r *reviewer) inTurn(ctx context.Context, c conversion) (_ []byte, pool string, _ error) {
	release, err := take(ctx, r.turn)
	if err != nil {
		return nil, "", err
	}
	defer release()
	return r.single(c)
}

// single converts one object. It returns errAsk and the name of a pool if known does not know the pool's expiry.
func single(c conversion) (_ []byte, pool string, _ error) {
	var object map[string]any
	if err := utiljson.Unmarshal(c.raw, &object); err != nil {
		return nil, "", fmt.Errorf("reading an object to be converted: %w", err)
	}
	converter := v1beta1.Converter{Ignored: c.ignored}
	if pool = v1beta1.PoolToAsk(object); pool != "" {
		age, ok := c.known(pool)
		if !ok {
			return nil, pool, errAsk
		}
		converter.Expiry = func(string) string { return age }
	}
	result, err := converter.Convert(object, c.version)
	if err != nil {
		return nil, "", err
	}
	if result["metadata"] == nil { // pruning in a server-side apply leaves objects without metadata; the response must have some
		result["metadata"] = map[string]any{}
	}
	written, err := v1beta1.Marshal(result)
	if err != nil {
		return nil, "", fmt.Errorf("writing a converted object: %w", err)
	}
	return written, "", nil
}
