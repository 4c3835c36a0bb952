package wire

import (
	"bytes"
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
	// A watch is a sequence of documents, any other response is one document. A document ends with its last byte, so
	// that no event waits for the next one.
	response.Body = &documents{body: response.Body, bound: t.bound}
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

// documents reads a body document by document. Its depth does not matter: a decoder would fail for a whole list.
type documents struct {
	body   io.ReadCloser
	bound  func([]byte) ([]byte, error)
	ready  bytes.Reader
	failed error

	buffer []byte // what was read and is not ready yet, from the beginning of a document
	state  scan   // of the first read bytes of it
	read   int
	ended  error // of the body
}

// leastRead is the free space of a buffer for each read, in bytes.
const leastRead = 16 << 10

func (d *documents) Read(p []byte) (int, error) {
	for d.ready.Len() == 0 {
		if d.failed != nil {
			return 0, d.failed
		}
		document, err := d.next()
		if err != nil {
			d.failed = err
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

// next returns the next document. Input that does not begin as an object or a list is made ready, unchanged, and its
// end is the error.
func (d *documents) next() ([]byte, error) {
	for {
		if begin := afterBlanks(d.buffer, 0); d.read == 0 && begin > 0 {
			d.buffer = d.buffer[begin:]
		}
		if len(d.buffer) > 0 && d.buffer[0] != '{' && d.buffer[0] != '[' {
			rest, err := io.ReadAll(d.body)
			d.ready.Reset(append(d.buffer, rest...))
			return nil, errors.Join(err, io.ErrUnexpectedEOF)
		}
		for d.read < len(d.buffer) {
			d.state.next(d.buffer[d.read])
			d.read++
			if d.state.depth == 0 && !d.state.quoted {
				document := d.buffer[:d.read:d.read]
				d.buffer, d.read, d.state = d.buffer[d.read:], 0, scan{}
				return document, nil
			}
		}
		switch {
		case d.ended == nil:
			d.fill()
		case errors.Is(d.ended, io.EOF) && len(d.buffer) > 0:
			return nil, io.ErrUnexpectedEOF
		default:
			return nil, d.ended
		}
	}
}

// fill reads more of the body. It does not change documents that were returned.
func (d *documents) fill() {
	if cap(d.buffer)-len(d.buffer) < leastRead {
		larger := make([]byte, len(d.buffer), 2*len(d.buffer)+2*leastRead)
		copy(larger, d.buffer)
		d.buffer = larger
	}
	n, err := d.body.Read(d.buffer[len(d.buffer):cap(d.buffer)])
	d.buffer, d.ended = d.buffer[:len(d.buffer)+n], err
}

func (d *documents) Close() error { return d.body.Close() }
