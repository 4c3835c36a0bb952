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
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/internal/compat/v1beta1"
)

// reviewer responds to ConversionReviews. Objects are read, converted and written one at a time, so that a list needs
// no more memory than its largest object.
type reviewer struct {
	expiries *expiries
	gate     *gate
	log      *quietLog
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

func newReviewer(api client.Reader, now func() time.Time, log logr.Logger) *reviewer {
	return &reviewer{expiries: &expiries{client: api, now: now, wait: pauseFor}, gate: newGate(), log: newQuietLog(log, now), single: single}
}

// ServeHTTP converts the objects that the API server sends. A request counts for its address from its beginning, and
// takes a place among the requests of all when its first bytes have arrived: a client that sends nothing keeps no
// other out.
func (r *reviewer) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	controls := http.NewResponseController(w)
	turnAway := func(err error) {
		_ = controls.SetReadDeadline(time.Now().Add(r.gate.patience)) // for the rest of the body
		refuse(w, err)
	}
	if request.ContentLength > longestReview {
		turnAway(&tooLongError{fmt.Sprintf("the request has %d bytes, want at most %d", request.ContentLength, longestReview)})
		return
	}
	address := hostOf(request.RemoteAddr)
	own, ok := r.gate.shares.enter(address, r.gate.most)
	if !ok {
		turnAway(errBusy)
		return
	}
	defer r.gate.shares.leave(address)
	ctx, cancel := context.WithTimeout(request.Context(), longestTime)
	defer cancel()
	// With HTTP/1, the response begins while the request is still being read. HTTP/2 always allows that.
	_ = controls.EnableFullDuplex()
	from := &paced{from: http.MaxBytesReader(w, request.Body, longestReview), until: controls.SetReadDeadline,
		end: time.Now().Add(longestTime), spare: r.gate.patience}
	first := make([]byte, 512)
	n, err := from.Read(first)
	if n == 0 && err != nil && !errors.Is(err, io.EOF) {
		refuse(w, err)
		return
	}
	select {
	case r.gate.under <- struct{}{}:
		defer func() { <-r.gate.under }()
	default:
		turnAway(errBusy)
		return
	}
	place := &pass{}
	if request.ContentLength < 0 || request.ContentLength > shortReview {
		place.places = []chan struct{}{own.long, r.gate.long}
	}
	if err := place.enter(ctx); err != nil {
		turnAway(err)
		return
	}
	defer func() { place.leave() }()
	body := &meter{from: io.MultiReader(bytes.NewReader(first[:n]), from), own: &own.room, room: &r.gate.room}
	defer body.close()
	r.answer(ctx, w, newReview(body), place)
}

// answer converts the objects of a request. A body that cannot be read is refused if the response has not begun.
func (r *reviewer) answer(ctx context.Context, w http.ResponseWriter, review *review, place *pass) {
	answer := &answer{to: w}
	err := review.each(func(raw json.RawMessage) error {
		if !answer.begun {
			answer.begin(review.uid)
		}
		converted, err := r.convert(ctx, raw, review.version, place)
		if err != nil {
			return err
		}
		return answer.add(converted)
	})
	if err != nil && !answer.begun {
		refuse(w, err)
		return
	}
	if !answer.begun {
		answer.begin(review.uid)
	}
	result := metav1.Status{Status: metav1.StatusSuccess}
	if err != nil {
		message := short(err.Error())
		r.log.info("objects could not be converted", err, "version", short(review.version))
		result = metav1.Status{Status: metav1.StatusFailure, Message: message}
	}
	if err := answer.end(result); err != nil {
		r.log.log.V(1).Info("the API server did not wait for a conversion", "why", short(err.Error()))
	}
}

// refuse responds to a request of which nothing was converted.
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
// pools before it can list them, so the list is read while other objects may be converted. While it waits for the
// list, the request releases its place, which the conversion of the pools may need.
func (r *reviewer) convert(ctx context.Context, raw []byte, version string, place *pass) ([]byte, error) {
	if err := affordable(raw); err != nil {
		return nil, fmt.Errorf("%s: %w", nameOf(raw), err)
	}
	c := conversion{raw: raw, version: version, known: r.expiries.known, ignored: func(err *v1beta1.BoundError) {
		r.log.info("an annotation of an object is not read; the object is converted without it", err)
	}}
	converted, pool, err := r.inTurn(ctx, c)
	if !errors.Is(err, errAsk) {
		return converted, err
	}
	place.leave()
	age, err := r.expiries.of(ctx, pool)
	if again := place.enter(ctx); err == nil {
		err = again
	}
	if err != nil {
		return nil, err
	}
	c.known = func(string) (string, bool) { return age, true }
	converted, _, err = r.inTurn(ctx, c)
	return converted, err
}

func (r *reviewer) inTurn(ctx context.Context, c conversion) (_ []byte, pool string, _ error) {
	release, err := take(ctx, r.gate.turn)
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

// answer writes a ConversionReview object by object. The result is the last field, because it is only known at the
// end.
type answer struct {
	to    io.Writer
	begun bool
	some  bool
	err   error
}

func (a *answer) begin(uid string) {
	a.begun = true
	if w, ok := a.to.(http.ResponseWriter); ok {
		w.Header().Set("Content-Type", "application/json")
	}
	quoted, err := json.Marshal(uid)
	a.err = errors.Join(a.err, err)
	a.write(`{"kind":"ConversionReview","apiVersion":"`+apiextensionsv1.SchemeGroupVersion.String()+`","response":{"uid":`, string(quoted), `,"convertedObjects":[`)
}

func (a *answer) add(object []byte) error {
	if a.some {
		a.write(",")
	}
	a.some = true
	if a.err == nil {
		_, a.err = a.to.Write(object)
	}
	return a.err
}

func (a *answer) end(result metav1.Status) error {
	text, err := json.Marshal(result)
	a.err = errors.Join(a.err, err)
	a.write(`],"result":`, string(text), "}}\n")
	return a.err
}

func (a *answer) write(texts ...string) {
	for _, text := range texts {
		if a.err == nil {
			_, a.err = io.WriteString(a.to, text)
		}
	}
}
