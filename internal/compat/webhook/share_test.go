package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// idle is a body of which nothing arrives until the request ends.
type idle struct{ ctx context.Context }

func (b idle) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// from returns a client with a loopback address of its own.
func from(address string) *http.Client {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	return &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext, ForceAttemptHTTP2: true,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
}

func send(ctx context.Context, c *http.Client, url string, body io.Reader) (int, string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+Path, body)
	if err != nil {
		return 0, "", err
	}
	answer, err := c.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text), err
}

// TestIdleRequests verifies that one address with 300 requests, of which nothing but the header arrives, keeps no other
// address out: with HTTP/2 in front of the same handler, and with the server that is used.
func TestIdleRequests(t *testing.T) {
	for name, serve := range map[string]func(*testing.T, http.Handler) string{"HTTP/2": overHTTP2, "as served": asServed} {
		t.Run(name, func(t *testing.T) {
			r := newReviewer(deaf{}, time.Now, logr.Discard())
			r.gate.patience = time.Minute       // the requests stay until the end of the test
			waiting := make(chan struct{}, 600) // a request that arrived or failed; one may do both
			url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
				waiting <- struct{}{}
				r.ServeHTTP(w, request)
			}))
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			hostile := from("127.0.0.1")
			for range 300 {
				running.Go(func() {
					if _, _, err := send(ctx, hostile, url, idle{ctx}); err != nil && ctx.Err() == nil {
						waiting <- struct{}{}
					}
				})
			}
			for range 300 {
				<-waiting
			}
			code, text, err := send(ctx, from("127.0.0.2"), url, strings.NewReader(reviewOf(poolWith(`"a"`))))
			switch {
			case err != nil:
				t.Errorf("a valid request of another address: error %v, %s", err, short(text))
			case code != http.StatusOK:
				t.Errorf("a valid request of another address: code is %v, want %v, %s", code, http.StatusOK, short(text))
			case !strings.Contains(text, `"status":"Success"`):
				t.Errorf("a valid request of another address: text lacks `\"status\":\"Success\"`, %s", short(text))
			}
			cancel()
			running.Wait()
		})
	}
}

func overHTTP2(t *testing.T, handler http.Handler) string {
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL
}

func asServed(t *testing.T, handler http.Handler) string {
	other := httptest.NewTLSServer(nil)
	other.Close()
	server := (&Server{keeper: &keeper{}}).bounded(handler)
	server.TLSConfig.GetCertificate, server.TLSConfig.Certificates = nil, other.TLS.Certificates
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(&limitedListener{Listener: listener}, "", "") }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serving ended: %v", err)
		}
	})
	return "https://" + listener.Addr().String()
}

// TestServedProtocol verifies that a connection has one request at a time, also of clients that prefer HTTP/2.
func TestServedProtocol(t *testing.T) {
	url := asServed(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	if _, text, err := send(t.Context(), from("127.0.0.1"), url, strings.NewReader("")); err != nil || text != "HTTP/1.1" {
		t.Errorf("%q (%v), want HTTP/1.1", text, err)
	}
}

// TestSlowRequests verifies that a request of which nothing arrives, or no more after its beginning, is refused after
// the patience, and takes a place among the requests of all only from its first byte on.
func TestSlowRequests(t *testing.T) {
	for name, beginning := range map[string]string{"nothing arrives": "", "the beginning arrives": `{"kind":`} {
		t.Run(name, func(t *testing.T) {
			r := newReviewer(deaf{}, time.Now, logr.Discard())
			r.gate.patience = 200 * time.Millisecond
			url := asServed(t, r)
			for range waiting {
				if beginning == "" { // with all places taken, a request with a first byte is refused as busy
					r.gate.under <- struct{}{}
				}
			}
			before := time.Now()
			code, _, err := send(t.Context(), from("127.0.0.1"), url, io.MultiReader(strings.NewReader(beginning), idle{t.Context()}))
			switch {
			case err != nil:
				t.Errorf("error %v", err)
			case code != http.StatusRequestTimeout:
				t.Errorf("code is %v, want %v", code, http.StatusRequestTimeout)
			case time.Since(before) > longestTime/2:
				t.Errorf("time.Since(before) is %v, want at most %v", time.Since(before), longestTime/2)
			}
		})
	}
}

// TestSharesOfOne verifies that the long requests of one address take a part of the places and of the memory.
func TestSharesOfOne(t *testing.T) {
	g := newGate()
	one, _ := g.shares.enter("one", g.most)
	for range requestsOfOne - 1 {
		if again, ok := g.shares.enter("one", g.most); !ok || again != one {
			t.Fatal("a request within the limit is refused, or has another share")
		}
	}
	if _, ok := g.shares.enter("one", g.most); ok {
		t.Error("a request beyond the limit is not refused")
	}
	other, ok := g.shares.enter("other", g.most)
	if !ok {
		t.Fatal("another address is refused")
	}
	for range longReviewsOfOne {
		if err := (&pass{places: []chan struct{}{one.long, g.long}}).enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := (&pass{places: []chan struct{}{one.long}}).enter(ended); !errors.Is(err, errBusy) {
		t.Errorf("a long request beyond the limit of the address: %v, want %v", err, errBusy)
	}
	if err := (&pass{places: []chan struct{}{other.long, g.long}}).enter(t.Context()); err != nil {
		t.Errorf("a long request of another address: %v", err)
	}
	hostile := &meter{from: strings.NewReader(strings.Repeat("a", 1<<20)), own: &one.room, room: &g.room}
	one.room.left = 1 << 10
	if _, err := hostile.Read(make([]byte, 32<<10)); !errors.Is(err, errBusy) || g.room.left != g.most {
		t.Errorf("without room of its own: %v, and %d bytes are left of all, want %v and %d", err, g.room.left, errBusy, g.most)
	}
	for range requestsOfOne {
		g.shares.leave("one")
	}
	if g.shares.leave("other"); len(g.shares.of) > 0 {
		t.Errorf("%d addresses have a share after their requests", len(g.shares.of))
	}
}
