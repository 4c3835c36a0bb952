package webhook

import (
	"encoding/json"
	"errors"
	"fmt"
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
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/karpenter-go/karpenter/internal/compat/v1beta1"
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

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
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

// TestAList verifies that a list needs as much memory as its largest object.
func TestAList(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	var objects []string
	for range 100 {
		objects = append(objects, poolWith(filled("[", shapes[5].repeated, "]", 40<<10)))
	}
	body := reviewOf(objects...)
	r := newReviewer(deaf{}, time.Now, logr.Discard())
	request := httptest.NewRequest(http.MethodPost, Path, strings.NewReader(body))
	before := liveBytes()
	w := &held{}
	r.ServeHTTP(w, request)
	if w.size < len(body)/2 {
		t.Fatalf("%d bytes of input were returned as %d", len(body), w.size)
	}
	if got := int64(w.peak) - int64(before); got > 3<<20 {
		t.Errorf("a list of %d bytes kept %d bytes", len(body), got)
	}
	if got, want := r.gate.room.left, newGate().room.left; got != want {
		t.Errorf("%d bytes are free after the request, want %d", got, want)
	}
}

// TestCost compares the estimate with the allocations of a conversion.
func TestCost(t *testing.T) {
	for _, shape := range shapes {
		checkCost(t, shape.name, poolWith(filled(shape.open, shape.repeated, shape.end, 100<<10)), 0)
	}
	for _, hostile := range hostileTexts {
		for length, cost := 100<<10, mebibyte+1; cost > 0; length -= length / 20 { // as long as it is read
			text := hostile.text(t, length)
			if cost, _ = v1beta1.Cost(text); cost > mebibyte {
				continue
			}
			for _, hidden := range []bool{false, true} {
				checkCost(t, hostile.name, poolText(hostile.from, `{"template":{"spec":{"nodeClassRef":{"name":"a"}}}}`,
					map[string]string{hostile.key: quoted(t, text, hidden)}), cost)
			}
			break
		}
	}
}

// checkCost compares the estimate of an object's cost, and of what is in its annotations, with the allocations.
func checkCost(t *testing.T, name, object string, annotations int) {
	t.Helper()
	// The minimum of several runs counts: pools that a collection has emptied, and other goroutines, add
	// allocations.
	got := conversionBytes(t, []byte(object))
	for range 4 {
		got = min(got, conversionBytes(t, []byte(object)))
	}
	estimate := cost([]byte(object)) + annotations
	t.Logf("%s: %d bytes, estimate %d", name, got, estimate)
	if got > estimate+64<<10 {
		t.Errorf("%s: %d bytes allocated, estimate %d", name, got, estimate)
	}
}

// conversionBytes returns how many bytes a conversion of an object to the other version allocates.
func conversionBytes(t *testing.T, raw []byte) int {
	t.Helper()
	before := allocated()
	var object map[string]any
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	to := map[any]string{"karpenter.sh/v1": "karpenter.sh/v1beta1", "karpenter.sh/v1beta1": "karpenter.sh/v1"}[object["apiVersion"]]
	converted, err := v1beta1.Converter{}.Convert(object, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(converted); err != nil {
		t.Fatal(err)
	}
	return int(allocated() - before)
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
	switch {
	case len(r.gate.under) > 0:
		t.Errorf("places are taken after all requests have ended: len(r.gate.under) is %v, want 0", len(r.gate.under))
	case len(r.gate.long) > 0:
		t.Errorf("places are taken after all requests have ended: len(r.gate.long) is %v, want 0", len(r.gate.long))
	case len(r.gate.turn) > 0:
		t.Errorf("places are taken after all requests have ended: len(r.gate.turn) is %v, want 0", len(r.gate.turn))
	case len(r.gate.shares.of) > 0:
		t.Errorf("places are taken after all requests have ended: len(r.gate.shares.of) is %v, want 0", len(r.gate.shares.of))
	}
}

// TestTooMany verifies that requests beyond the limit are refused at once, and that failed requests release their
// memory.
func TestTooMany(t *testing.T) {
	r := newReviewer(deaf{}, time.Now, logr.Discard())
	for range waiting {
		r.gate.under <- struct{}{}
	}
	w := httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path, strings.NewReader(reviewOf())))
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("code %d beyond the limit, want 503", w.Code)
	}
	r = newReviewer(deaf{}, time.Now, logr.Discard())
	r.gate.room.left = 1 << 20
	w = httptest.NewRecorder()
	r.ServeHTTP(w, httptest.NewRequest(http.MethodPost, Path,
		strings.NewReader(reviewOf(poolWith(filled("[", `"aaaaaaaaaaaaaaaa"`, "]", 2<<20))))))
	if w.Code != http.StatusServiceUnavailable || r.gate.room.left != 1<<20 {
		t.Errorf("code %d without room, and %d bytes are left; want 503, and all released", w.Code, r.gate.room.left)
	}
	if low, high := roomOf(100<<20), roomOf(1<<62); low != 16<<20 || high != 64<<20 {
		t.Errorf("with little and with much memory there is room for %d and %d bytes", low, high)
	}
}

func TestConnections(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer inner.Close()
	limitedListener := &limitedListener{Listener: inner}
	accepted := make(chan net.Conn)
	go func() {
		for {
			conn, err := limitedListener.Accept()
			if err != nil {
				close(accepted)
				return
			}
			accepted <- conn
		}
	}()
	var open []net.Conn
	for range connectionsOfOne {
		conn, err := net.Dial("tcp", inner.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		open = append(open, <-accepted)
	}
	conn, err := net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a connection beyond the limit reads %d bytes, want it to be closed", n)
	}
	for _, c := range open {
		if err := errors.Join(c.Close(), ignoreClosed(c.Close())); err != nil {
			t.Error(err)
		}
	}
	if limitedListener.all != 0 || len(limitedListener.of) != 0 {
		t.Errorf("%d connections are counted after all were closed: %v", limitedListener.all, limitedListener.of)
	}
	conn, err = net.Dial("tcp", inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if c := <-accepted; c == nil {
		t.Error("no connection is accepted after others were closed")
	}
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return fmt.Errorf("closed twice: %w", err)
}
