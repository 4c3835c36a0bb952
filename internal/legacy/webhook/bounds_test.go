package webhook

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
)

// reviewOf returns a request with these objects.
func reviewOf(objects ...string) string {
	return `{"kind":"ConversionReview","request":{"uid":"1","desiredAPIVersion":"karpenter.sh/v1","objects":[` + strings.Join(objects,
		",") + `]}}`
}

// poolWith returns a pool of v1beta1 with a text in its spec.
func poolWith(spec string) string {
	return `{"apiVersion":"karpenter.sh/v1beta1","kind":"NodePool","metadata":{"name":"x"},"spec":{"x":` + spec + `}}`
}

// filled repeats a text up to a length.
func filled(open, repeated, end string, length int) string {
	return open + strings.Repeat(repeated+",", (length-len(open)-len(end))/(len(repeated)+1)-1) + repeated + end
}

// shapes lists JSON texts, the densest first.
var shapes = []struct{ name, open, repeated, end string }{
	{"empty maps", "[", "{}", "]"},
	{"maps", "[", `{"a":1}`, "]"},
	{"empty lists", "[", "[]", "]"},
	{"numbers", "[", "1", "]"},
	{"short strings", "[", `"a"`, "]"},
	{"requirements", "[", `{"key":"node.kubernetes.io/instance-type","operator":"In","values":["m5.large","m5.xlarge"]}`, "]"},
	{"values", "[", `"m5.24xlarge"`, "]"},
	{"one text", `["`, strings.Repeat("a", 1000), `"]`},
	{"quoted maps", `"`, "{}", `"`},
}

// held is a writer that counts, and measures how much memory is in use.
type held struct {
	httptest.ResponseRecorder
	peak uint64
	size int
}

func (h *held) Write(p []byte) (int, error) {
	h.size += len(p)
	h.peak = max(h.peak, liveBytes())
	return len(p), nil
}

func (h *held) WriteString(s string) (int, error) { return h.Write([]byte(s)) }

func liveBytes() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestOneMebibyte verifies that a request of 1 MiB costs at most 10 MiB, whatever its content.
func TestOneMebibyte(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	for _, shape := range shapes {
		// The whole text is dense, or as much of it as one object may have, next to plain text.
		dense := filled(shape.open, shape.repeated, shape.end, mebibyte-300)
		for n := len(dense); affordable([]byte(poolWith(dense))) != nil; {
			n -= n / 20
			dense = "[" + filled(shape.open, shape.repeated, shape.end, n) + `,"` + strings.Repeat("a", mebibyte-300-n) + `"]`
		}
		for what, spec := range map[string]string{"whole": filled(shape.open, shape.repeated, shape.end, mebibyte-300), "bounded": dense} {
			// A delayed garbage collection on a busy machine only increases the result, so the minimum of a few
			// requests counts.
			got := heldFor(spec)
			for range 4 {
				if got > 10*mebibyte {
					got = min(got, heldFor(spec))
				}
			}
			t.Logf("%s, %s: %.1f MiB", shape.name, what, float64(got)/mebibyte)
			if got > 10*mebibyte {
				t.Errorf("%s, %s: a request of 1 MiB used %d bytes of memory", shape.name, what, got)
			}
		}
	}
}

// heldFor returns the maximum memory in use while a pool with a spec is converted, in bytes beyond the use before.
func heldFor(spec string) int64 {
	r := newReviewer(deaf{}, time.Now, logr.Discard())
	request := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(reviewOf(poolWith(spec))))
	before := liveBytes()
	peak, end := sample()
	r.ServeHTTP(&held{}, request)
	end()
	return int64(peak.Load()) - int64(before)
}

// sample measures the maximum memory in use until end is called.
func sample() (peak *atomic.Uint64, end func()) {
	peak = &atomic.Uint64{}
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			in := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}} // equals HeapAlloc, without stopping the world
			metrics.Read(in)
			peak.Store(max(peak.Load(), in[0].Value.Uint64()))
			select {
			case <-stop:
				return
			default:
				runtime.Gosched()
			}
		}
	})
	return peak, func() { close(stop); running.Wait() }
}

// TestFlood sends hostile requests, more at a time than are read concurrently, and valid ones among them. The heap stays
// bounded and no more than one object is converted at a time, which leaves the other CPUs to the planner.
func TestFlood(t *testing.T) {
	r := newReviewer(deaf{}, time.Now, logr.Discard())
	var converting, most, conversions atomic.Int64
	r.single = func(c conversion) ([]byte, string, error) {
		conversions.Add(1)
		now := converting.Add(1)
		defer converting.Add(-1)
		for before := most.Load(); now > before && !most.CompareAndSwap(before, now); before = most.Load() {
		}
		return single(c)
	}
	server := httptest.NewServer(r)
	defer server.Close()
	post := func(body string) (int, string, error) {
		answer, err := server.Client().Post(server.URL+Path, "application/json", strings.NewReader(body))
		if err != nil {
			return 0, "", err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		return answer.StatusCode, string(text), err
	}
	hostile := make([]string, len(shapes))
	for i, shape := range shapes {
		hostile[i] = reviewOf(poolWith(filled(shape.open, shape.repeated, shape.end, 2<<20)))
	}
	before := liveBytes()
	var peak uint64
	var running sync.WaitGroup
	work := make(chan int)
	for range 20 {
		running.Go(func() {
			for i := range work {
				_, _, _ = post(hostile[i%len(hostile)]) // the response is tested elsewhere; a refused one may be cut off
			}
		})
	}
	for i := range 100 {
		work <- i
		if i%20 != 0 {
			continue
		}
		peak = max(peak, liveBytes())
		code, text, err := post(reviewOf(poolWith(`"a"`)))
		switch {
		case err != nil:
			t.Errorf("a valid request among hostile ones: error %v, %s", err, short(text))
		case code != http.StatusOK:
			t.Errorf("a valid request among hostile ones: code is %v, want %v, %s", code, http.StatusOK, short(text))
		case !strings.Contains(text, `"status":"Success"`):
			t.Errorf("a valid request among hostile ones: text lacks `\"status\":\"Success\"`, %s", short(text))
		}
	}
	close(work)
	running.Wait()
	t.Logf("%.1f MiB in addition to the previous use", float64(int64(peak)-int64(before))/(1<<20))
	if got := int64(peak) - int64(before); got > 100<<20 {
		t.Errorf("a flood of requests of 2 MiB uses %d bytes", got)
	}
	if most.Load() != 1 || conversions.Load() < 10 {
		t.Errorf("of %d conversions, up to %d were in progress at a time, want 1", conversions.Load(), most.Load())
	}
	if len(r.long) > 0 || len(r.turn) > 0 {
		t.Errorf("%d and %d places are taken after all requests have ended", len(r.long), len(r.turn))
	}
}

// TestSlowRequests sends requests of which nothing arrives after the header, more than are read at a time, to the server
// that is used. Each is refused after a while, and a complete one beside them is answered at once.
func TestSlowRequests(t *testing.T) {
	server := (&Server{keeper: &keeper{}}).bounded(newReviewer(deaf{}, time.Now, logr.Discard()))
	other := httptest.NewTLSServer(nil)
	other.Close()
	server.TLSConfig.GetCertificate, server.TLSConfig.Certificates = nil, other.TLS.Certificates
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.ServeTLS(listener, "", "") }()
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	url := "https://" + listener.Addr().String() + Path
	var running sync.WaitGroup
	before := time.Now()
	for _, length := range []int{100, longestReview, longestReview, longestReview} {
		running.Go(func() {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, idle{t.Context()})
			if err != nil {
				t.Error(err)
				return
			}
			request.ContentLength = int64(length)
			if response, err := client.Do(request); err == nil {
				defer response.Body.Close()
				if response.StatusCode != http.StatusRequestTimeout && response.StatusCode != http.StatusServiceUnavailable {
					t.Errorf("%d for a request that does not arrive", response.StatusCode)
				}
			}
		})
	}
	response, err := client.Post(url, "application/json", strings.NewReader(reviewOf(poolWith(`"a"`))))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	switch {
	case err != nil || !strings.Contains(string(text), `"status":"Success"`):
		t.Errorf("a complete request beside slow ones: %v, %s", err, short(string(text)))
	case response.Proto != "HTTP/1.1":
		t.Errorf("it was answered by %s, want one request at a time on a connection", response.Proto)
	case time.Since(before) > placeTime:
		t.Errorf("it was answered after %v", time.Since(before))
	}
	if running.Wait(); time.Since(before) > 2*(placeTime+readTime) {
		t.Errorf("the slow requests ended after %v", time.Since(before))
	}
}

// idle is a body of which nothing arrives until the request ends.
type idle struct{ ctx context.Context }

func (b idle) Read([]byte) (int, error) {
	<-b.ctx.Done()
	return 0, b.ctx.Err()
}

// TestUnknownLength verifies that a request that does not state its length is read up to the limit only.
func TestUnknownLength(t *testing.T) {
	const longer = 64 << 20
	body := strings.NewReader(strings.Repeat("a", longer))
	request := httptest.NewRequest(http.MethodPost, Path, io.MultiReader(strings.NewReader(`{"request":"`), body))
	request.ContentLength = -1
	w := httptest.NewRecorder()
	newReviewer(deaf{}, time.Now, logr.Discard()).ServeHTTP(w, request)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("code %d, want %d: %s", w.Code, http.StatusRequestEntityTooLarge, short(w.Body.String()))
	}
	if read := longer - body.Len(); read > longestReview+1 {
		t.Errorf("%d bytes were read, want at most %d", read, longestReview)
	}
}

// TestLongRequests sends lists that are as long as a request may be, more of them at a time than are read at a time.
func TestLongRequests(t *testing.T) {
	r := newReviewer(deaf{}, time.Now, logr.Discard())
	object := poolWith(`"` + strings.Repeat("a", 64<<10) + `"`)
	var objects []string
	for size := 0; size+len(object) < longestReview-(1<<10); size += len(object) + 1 {
		objects = append(objects, object)
	}
	body := reviewOf(objects...)
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	before := liveBytes()
	peak, end := sample()
	var running sync.WaitGroup
	for range 3 * longReviews {
		running.Go(func() {
			w := &counted{}
			r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body)))
			if w.code == 0 && w.size < len(body)/2 {
				t.Errorf("%d bytes of input were returned as %d", len(body), w.size)
			}
		})
	}
	running.Wait()
	end()
	got := int64(peak.Load()) - int64(before)
	t.Logf("%.1f MiB in addition to the previous use", float64(got)/mebibyte)
	if got > 3*longReviews*longestReview {
		t.Errorf("%d requests of %d bytes use %d bytes", 3*longReviews, len(body), got)
	}
}

// counted is a writer that counts what is written.
type counted struct{ code, size int }

func (c *counted) Header() http.Header               { return http.Header{} }
func (c *counted) WriteHeader(code int)              { c.code = code }
func (c *counted) Write(p []byte) (int, error)       { c.size += len(p); return len(p), nil }
func (c *counted) WriteString(p string) (int, error) { c.size += len(p); return len(p), nil }

// TestConnections opens more connections than the server accepts at a time. The others are accepted when some are closed.
func TestConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{}, 2*mostConnections)
	listener := &openListener{Listener: inner, accepted: accepted}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- (&Server{Listener: listener, keeper: &keeper{}}).listen(ctx, http.NotFoundHandler()) }()
	const more = 16
	var clients []net.Conn
	for range mostConnections + more {
		client, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		clients = append(clients, client)
	}
	for range mostConnections {
		<-accepted
	}
	for _, client := range clients[:more] {
		_ = client.Close()
	}
	for range more {
		<-accepted
	}
	if most := listener.most.Load(); most != mostConnections {
		t.Errorf("%d connections were open at a time, want %d", most, mostConnections)
	}
	for _, client := range clients[more:] {
		_ = client.Close()
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// openListener counts the connections that it accepted and that are open.
type openListener struct {
	net.Listener
	open, most atomic.Int64
	accepted   chan<- struct{}
}

func (l *openListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	l.most.Store(max(l.most.Load(), l.open.Add(1))) // Accept is called by one goroutine
	l.accepted <- struct{}{}
	return &openConn{Conn: conn, closed: sync.OnceFunc(func() { l.open.Add(-1) })}, nil
}

type openConn struct {
	net.Conn
	closed func()
}

func (c *openConn) Close() error {
	c.closed()
	return c.Conn.Close()
}
