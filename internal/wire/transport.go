package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Groups lists the API groups of this project's kinds. Objects of Kubernetes' own kinds have passed the API server's
// decoder.
var Groups = []string{"karpenter.sh", "karpenter.k8s.aws", "karpenter.kwok.sh"}

// Transport returns a transport that bounds the objects of Groups in responses of an API server. It calls tell once
// for each fault of each object.
func Transport(next http.RoundTripper, tell func(Fault)) http.RoundTripper {
	return &transport{next: next, tell: tell, told: map[Fault]bool{}}
}

type transport struct {
	next http.RoundTripper
	tell func(Fault)

	lock sync.Mutex
	told map[Fault]bool
}

// mostTold limits the number of remembered faults. Beyond it, all faults are reported again.
const mostTold = 1000

// WrappedRoundTripper returns the wrapped transport.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil || !ours(request.URL.Path) || response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated ||
		!strings.HasPrefix(response.Header.Get("Content-Type"), "application/json") {
		return response, err
	}
	// A watch is a sequence of documents, any other response is one document. The decoder stops at the last byte of a
	// document, so that no event waits for the next one.
	response.Body = &documents{body: response.Body, decoder: json.NewDecoder(response.Body), bound: t.bound}
	response.ContentLength = -1
	response.Header.Del("Content-Length")
	return response, nil
}

func ours(path string) bool {
	for _, group := range Groups {
		if strings.Contains(path, "/apis/"+group+"/") {
			return true
		}
	}
	return false
}

func (t *transport) bound(document []byte) ([]byte, error) {
	bounded, faults, err := Bound(document)
	if err != nil {
		return nil, fmt.Errorf("reading a response of the API server: %w", err)
	}
	for _, fault := range faults {
		if t.isNews(fault) {
			t.tell(fault)
		}
	}
	return bounded, nil
}

func (t *transport) isNews(fault Fault) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.told[fault] {
		return false
	}
	if len(t.told) >= mostTold {
		clear(t.told)
	}
	t.told[fault] = true
	return true
}

// documents reads a body document by document.
type documents struct {
	body    io.ReadCloser
	decoder *json.Decoder
	bound   func([]byte) ([]byte, error)
	ready   bytes.Reader
	failed  error
}

func (d *documents) Read(p []byte) (int, error) {
	for d.ready.Len() == 0 {
		if d.failed != nil {
			return 0, d.failed
		}
		var document json.RawMessage
		if err := d.decoder.Decode(&document); err != nil {
			d.end(err)
			continue
		}
		bounded, err := d.bound(document)
		if err != nil {
			d.failed = err
			continue
		}
		d.ready.Reset(bounded)
	}
	return d.ready.Read(p)
}

// end passes on input that is not JSON unchanged.
func (d *documents) end(err error) {
	d.failed = err
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		rest, readErr := io.ReadAll(d.decoder.Buffered())
		d.ready.Reset(rest)
		d.failed = errors.Join(readErr, io.ErrUnexpectedEOF)
	}
}

func (d *documents) Close() error { return d.body.Close() }
