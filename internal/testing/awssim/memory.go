package awssim

import (
	"context"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// latency is the time until the first bytes of a response. It must not be zero: the SDK closes a request's body when
// the response arrives, and net/http then treats the connection as broken if it has not reached the end of the body
// yet.
const latency = time.Millisecond

// Pipe is an in-memory listener. It does not use the operating system, so it works under testing/synctest. Responses
// take a millisecond.
type Pipe struct {
	incoming chan net.Conn
	closed   chan struct{}
	once     sync.Once
}

// NewPipe returns a listener for Serve. HTTPClient is its other end.
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

// distant is the server's end of a connection with latency.
type distant struct {
	net.Conn
	answering atomic.Bool // bytes of this response have been sent
}

// Read implements net.Conn. A read starts another request.
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

// Endpoint is the base URL for the SDK with HTTPClient.
const Endpoint = "http://aws.local"

// HTTPClient returns a client whose connections all go to the listener, whatever the host.
func (p *Pipe) HTTPClient() *http.Client {
	return &http.Client{Transport: &http.Transport{
		DialContext:         func(ctx context.Context, _, _ string) (net.Conn, error) { return p.Dial(ctx) },
		MaxIdleConnsPerHost: 100,
	}}
}
