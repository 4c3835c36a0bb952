package awssim

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// latency is how long the first bytes of an answer take. It must not be nothing: the SDK closes a request's body when
// the answer is there, and net/http then takes the connection for broken if it has not looked for the body's end yet.
const latency = time.Millisecond

// Pipe is a listener in memory: nothing goes through the operating system, so that it works under testing/synctest.
// Answers take a millisecond.
type Pipe struct {
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// NewPipe makes a listener for Serve, with HTTPClient on the other end.
func NewPipe() *Pipe { return &Pipe{incoming: make(chan net.Conn), closed: make(chan struct{})} }

// Accept implements net.Listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case conn := <-p.incoming:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (p *Pipe) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

// Dial connects to the listener.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.incoming <- &distant{Conn: far}:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// distant is the server's end of a connection that has latency.
type distant struct {
	net.Conn
	answering atomic.Bool // bytes of this answer are on their way already
}

// Read implements net.Conn. What is read begins another request.
func (d *distant) Read(b []byte) (int, error) {
	n, err := d.Conn.Read(b)
	if n > 0 {
		d.answering.Store(false)
	}
	return n, err
}

// Write implements net.Conn.
func (d *distant) Write(b []byte) (int, error) {
	if !d.answering.Swap(true) {
		<-time.After(latency)
	}
	return d.Conn.Write(b)
}

// Endpoint is the base URL to give the SDK with HTTPClient.
const Endpoint = "http://aws.local"

// HTTPClient is a client whose every connection goes to the listener, whatever the host.
func (p *Pipe) HTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) },
		MaxIdleConnsPerHost: 100,
	}}
}
