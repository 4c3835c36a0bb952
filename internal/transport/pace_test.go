package transport

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace sends as many requests as the pace allows, on a virtual clock, to a server that accepts some in each second: few are
// refused and most of what the server can do is used; when it accepts all again, the pace ends.
func TestPace(t *testing.T) {
	for _, able := range []int{20, 50, 120} {
		p, now := &Pace{Ceiling: 200}, time.Unix(1800000000, 0)
		end, second, taken, accepted, refused := now.Add(2*time.Minute), now, 0, 0, 0
		for now.Before(end) {
			now = now.Add(max(p.reserve(now), 2*time.Millisecond)) // 500 a second when nothing slows them down
			if now.Sub(second) >= time.Second {
				second, taken = now, 0
			}
			taken++
			if taken > able {
				refused++
			} else {
				accepted++
			}
			p.saw(now, taken > able)
		}
		if used, rate := float64(accepted)/float64(120*able), float64(refused)/float64(accepted+refused); used < 0.7 || rate > 0.1 {
			t.Errorf("of %d requests a second %.2f are used, and %.2f of all are refused; want 0.7 at least and 0.1 at most", able, used, rate)
		}
		for range 10_000 {
			now = now.Add(max(p.reserve(now), 2*time.Millisecond))
			p.saw(now, false)
		}
		if pause := p.reserve(now); pause != 0 || p.rate != 0 {
			t.Errorf("requests still wait for %s at %.0f a second, though none is refused any more", pause, p.rate)
		}
	}
}

// answers is a server in memory: it refuses all while busy, and records the paths of what it accepts.
type answers struct {
	mutex    sync.Mutex
	busy     bool
	accepted []string
}

func (a *answers) RoundTrip(request *http.Request) (*http.Response, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.busy {
		return &http.Response{StatusCode: http.StatusTooManyRequests, Body: io.NopCloser(strings.NewReader(""))}, nil
	}
	a.accepted = append(a.accepted, request.URL.Path)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// TestPaceRecovers sends 500 requests at once while the pace is slowest, of which 200 are canceled soon: at that rate the last
// one would wait for 100 s. The server accepts all again, so the rate rises while they wait. All others are sent in the order in
// which they came, in the time in which a rate that rises from slowestPace to Ceiling in 30 s allows so many: 8.8 s.
func TestPaceRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &answers{busy: true}
		p := &Pace{Ceiling: 200}
		client := p.Transport(server)
		send := func(ctx context.Context, path string) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server"+path, nil)
			if err != nil {
				return err
			}
			response, err := client.RoundTrip(request)
			if err == nil {
				err = response.Body.Close()
			}
			return err
		}
		for p.rate != slowestPace {
			if err := send(t.Context(), "/refused"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		server.busy = false
		short, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var want []string
		begun := time.Now()
		for i := range 500 {
			path, ctx := "/"+strings.Repeat("x", i), t.Context()
			if canceled := i >= 100 && i < 300; canceled {
				ctx = short
			} else {
				want = append(want, path)
			}
			all.Go(func() {
				if err := send(ctx, path); err != nil && !errors.Is(err, ctx.Err()) {
					t.Errorf("request %d: %v", i, err)
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		cancel()
		all.Wait()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the last request was sent after %s", took)
		}
		if !slices.Equal(server.accepted, want) {
			t.Errorf("%d requests are sent, want %d, in the order in which they came", len(server.accepted), len(want))
		}
	})
}

// TestPaceLeaves checks that watches and evictions neither wait nor slow others down.
func TestPaceLeaves(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }))
	defer server.Close()
	p := &Pace{Ceiling: 200}
	send := func(method, path string) {
		request, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		response, err := p.Transport(http.DefaultTransport).RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	send(http.MethodGet, "/api/v1/pods?watch=true")
	send(http.MethodPost, "/api/v1/namespaces/n/pods/p/eviction")
	if p.rate != 0 {
		t.Errorf("the rate is %.0f after a watch and an eviction were refused", p.rate)
	}
	if send(http.MethodPost, "/apis/karpenter.sh/v1/nodeclaims"); p.rate != slowestPace {
		t.Errorf("the rate is %.0f after a write was refused, want %d", p.rate, slowestPace)
	}
}
