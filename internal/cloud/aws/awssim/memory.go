package awssim

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// Pipe is a listener in memory: nothing goes through the operating system, so that it works under testing/synctest.
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
	case p.incoming <- far:
		return near, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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
