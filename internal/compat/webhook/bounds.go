package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/karpenter-go/karpenter/internal/compat/v1beta1"
)

// These constants bound the cost of one request. Any client that reaches the port may send one, so nothing here
// depends on the claims of a client.
const (
	// longestReview, in bytes, bounds one request. The API server sends a list as a whole. Thousands of objects in an
	// older version are a tenth of this.
	longestReview = 64 << 20
	// longestObject, in bytes, bounds one object. The limit of etcd is 1.5 MiB by default.
	longestObject = 3 << 20
	// shortReview, in bytes, is the longest request that is read without waiting for a place: one object, nearly
	// always.
	shortReview = 64 << 10
	// longReviews is how many longer requests are read concurrently.
	longReviews = 4
	// waiting is the maximum number of concurrent requests of which the first bytes have arrived. Further requests are
	// refused at once.
	waiting = 256
	// requestsOfOne and longReviewsOfOne bound the requests of one address: all of them, and those that are longer than
	// shortReview. An API server has one request per connection.
	requestsOfOne, longReviewsOfOne = connectionsOfOne, longReviews / 2
	// leastRate, in bytes per second, is the rate at which a client must send a request, and patience is how long a
	// client may be behind. A client that sends nothing is refused after that time.
	leastRate, patience = 256 << 10, 5 * time.Second
	// cheapObject and dearness bound the memory cost of an object: the first in bytes, the second as a multiple of
	// its length.
	cheapObject, dearness = 3 << 20, 3
	// deepestObject bounds the nesting of an object, and so the stack of a conversion. Files have the same bound.
	deepestObject = 1000
	// longestText, in bytes, bounds the part of a client's text in a response or in the log.
	longestText = 256
	// longestTime bounds one request. The API server itself waits for 30 s.
	longestTime = 30 * time.Second
	// mostConnections and connectionsOfOne bound the open connections: in total, and per address.
	mostConnections, connectionsOfOne = 128, 32
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

// cost estimates the memory in bytes that reading, converting and writing an object allocates, from its text. The texts
// of annotations that are read as JSON have bounds of their own (v1beta1.BoundError).
func cost(raw []byte) int {
	fields, _ := v1beta1.Cost(raw)
	return 4*len(raw) + fields
}

// affordable returns nil for an object that may be converted.
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

// gate bounds the total cost of all requests. The zero value is not ready to use.
type gate struct {
	under    chan struct{} // requests in progress
	long     chan struct{} // those that are longer than shortReview
	turn     chan struct{} // the one object that is being converted
	room     room          // memory of the readers
	shares   shares        // of the addresses
	most     int64         // of the room
	patience time.Duration
}

func newGate() *gate {
	most := roomOf(debug.SetMemoryLimit(-1))
	return &gate{
		under: make(chan struct{}, waiting), long: make(chan struct{}, longReviews), turn: make(chan struct{}, 1),
		room: room{left: most}, most: most, patience: patience,
	}
}

// roomOf returns how many bytes of requests may be held, given the soft memory limit of the process.
func roomOf(limit int64) int64 { return min(max(limit/16, 16<<20), 64<<20) }

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

// room is a budget of bytes. Taking from it never waits: readers that wait for each other while they hold what they
// have read would deadlock.
type room struct {
	lock sync.Mutex
	left int64
}

func (r *room) take(n int64) bool {
	r.lock.Lock()
	defer r.lock.Unlock()
	if n > r.left {
		return false
	}
	r.left -= n
	return true
}

func (r *room) give(n int64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.left += n
}

// meter reads a request for a decoder that buffers its input until a value is complete. It takes the bytes that the
// decoder's buffer may need from the rooms, that of the address and that of all, and ends a value that is too long.
type meter struct {
	from      io.Reader
	own, room *room
	size      int64 // of the current value, as read so far
	held      int64 // taken from the rooms
}

// decoderGrows bounds the length of a decoder's buffer, with the copy of the value, as a multiple of its content.
const decoderGrows = 3

// next marks the beginning of a value. The input that the decoder has read beyond the last value is less than one
// read.
func (m *meter) next() { m.size = 0 }

func (m *meter) Read(p []byte) (int, error) {
	if m.size > longestObject {
		return 0, &tooLongError{fmt.Sprintf("an object has more than %d bytes", longestObject)}
	}
	p = p[:min(len(p), 32<<10)]
	if more := decoderGrows*(m.size+int64(len(p))) - m.held; more > 0 {
		if !m.own.take(more) {
			return 0, errBusy
		}
		if !m.room.take(more) {
			m.own.give(more)
			return 0, errBusy
		}
		m.held += more
	}
	n, err := m.from.Read(p)
	m.size += int64(n)
	return n, err
}

func (m *meter) close() {
	m.own.give(m.held)
	m.room.give(m.held)
}

// limitedListener is a listener that bounds the open connections. Connections beyond the limit are closed at once, and
// not queued: a client that holds connections open must not delay those of the API server.
type limitedListener struct {
	net.Listener
	lock sync.Mutex
	all  int
	of   map[string]int // by address
}

func (c *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		host := hostOf(conn.RemoteAddr().String())
		if c.enter(host) {
			return &counted{Conn: conn, leave: sync.OnceFunc(func() { c.leave(host) })}, nil
		}
		_ = conn.Close()
	}
}

func (c *limitedListener) enter(host string) bool {
	c.lock.Lock()
	defer c.lock.Unlock()
	if c.all >= mostConnections || c.of[host] >= connectionsOfOne {
		return false
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.all++
	c.of[host]++
	return true
}

func (c *limitedListener) leave(host string) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.all--
	if c.of[host]--; c.of[host] == 0 {
		delete(c.of, host)
	}
}

// counted is a connection that is counted until it is closed.
type counted struct {
	net.Conn
	leave func()
}

func (c *counted) Close() error {
	defer c.leave()
	return c.Conn.Close()
}
