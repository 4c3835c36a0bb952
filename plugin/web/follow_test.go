package web

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// TestNotFresh: when the cluster cannot be read, the last reading stays, and page and stream say since when; a later reading
// is taken up.
func TestNotFresh(t *testing.T) {
	o := overview(t, cluster())
	var mu sync.Mutex
	var fails error
	_, c := serve(t, Options{Live: true, Interval: time.Millisecond, Source: "test", Read: func(context.Context) (*offline.Overview, error) {
		mu.Lock()
		defer mu.Unlock()
		return o, fails
	}})
	set := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		fails = err
	}
	if page, _ := c.get("/fleet"); !strings.Contains(page, `data-follow="true"`) || strings.Contains(page, "not fresh since") {
		t.Errorf("a live page does not follow, or is not fresh:\n%s", page)
	}
	if page, _ := c.get("/fleet?follow=0"); !strings.Contains(page, `data-follow="false"`) {
		t.Error("a page follows that shall not")
	}
	stream := bufio.NewScanner(c.do(http.MethodGet, "/events", nil, nil).Body)
	next := func(kind string) string {
		for stream.Scan() {
			if stream.Text() == "event: "+kind {
				stream.Scan()
				return strings.TrimPrefix(stream.Text(), "data: ")
			}
		}
		t.Fatalf("the stream ends without %s: %v", kind, stream.Err())
		return ""
	}
	first := next("reading")
	set(errors.New("the API server is away"))
	if text := next("trouble"); !strings.HasPrefix(text, "not fresh since ") || !strings.HasSuffix(text, "UTC: the API server is away") {
		t.Errorf("the stream says %q", text)
	}
	if page, answer := c.get("/fleet"); answer.StatusCode != http.StatusOK || !strings.Contains(page, "not fresh since ") ||
		strings.Count(page, "<tr data-row=") != 3 {
		t.Errorf("the page is answered with %s, without the last reading or its age:\n%s", answer.Status, page)
	}
	set(nil)
	if again := next("reading"); again == first {
		t.Errorf("the reading after the trouble has the number %s of the one before", again)
	}
	if page, _ := c.get("/fleet"); strings.Contains(page, "not fresh since") {
		t.Error("the page is not fresh after a reading")
	}
}

// TestNotReadWhileComputing: an open page does not have the cluster read again while its plan is computed from the last reading.
func TestNotReadWhileComputing(t *testing.T) {
	o := overview(t, cluster())
	reads := 0
	s, _ := serve(t, Options{Live: true, Interval: time.Nanosecond, Read: func(context.Context) (*offline.Overview, error) {
		reads++
		return o, nil
	}})
	r, err := s.current(t.Context(), longPatience)
	if err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	compute := r.plan.compute
	r.plan.compute = func(ctx context.Context, tell func(*view.Plan)) (*view.Plan, error) {
		<-release
		return compute(ctx, tell)
	}
	done := r.plan.start()
	if s.refresh(t.Context()); reads != 1 {
		t.Errorf("read %d times while the plan is computed", reads)
	}
	close(release)
	<-done
	if s.refresh(t.Context()); reads != 2 {
		t.Errorf("read %d times after the plan is computed, want twice", reads)
	}
}

// slowReads returns a server whose cluster takes so long to read, and a function that returns when its readings ended. A
// reading that is canceled ends at once, with an error.
func slowReads(o *offline.Overview, interval, takes time.Duration) (s *Server, ends func() []time.Time) {
	var mu sync.Mutex
	var list []time.Time
	read := func(ctx context.Context) (*offline.Overview, error) {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		mu.Lock()
		defer mu.Unlock()
		list = append(list, time.Now())
		return o, nil
	}
	return New(Options{Live: true, Interval: interval, Read: read}), func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return list
	}
}

// shown is the reading that requests get now, without waiting for another.
func (s *Server) shown() (number int, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reading == nil {
		return 0, time.Time{}
	}
	return s.reading.number, s.reading.at
}

// TestFollowSlowReads: an open page follows a cluster however long a reading takes, without any other request, and knows
// when each reading ended.
func TestFollowSlowReads(t *testing.T) {
	o := overview(t, cluster())
	for _, interval := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		for _, takes := range []time.Duration{time.Second, 12 * time.Second, 25 * time.Second, 2 * time.Minute} {
			synctest.Test(t, func(t *testing.T) {
				s, ends := slowReads(o, interval, takes)
				ctx, cancel := context.WithCancel(t.Context())
				go s.events(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/events", nil))
				began, last := time.Now(), 0
				for time.Since(began) < 20*time.Minute {
					time.Sleep(time.Second)
					synctest.Wait()
					number, at := s.shown()
					if number != last && !at.Equal(ends()[number-1]) {
						t.Errorf("interval %s, a reading takes %s: reading %d is of %s, want %s", interval, takes, number, at, ends()[number-1])
					}
					last = number
				}
				// Between the end of a reading and the beginning of the next are the interval and pauses of the stream.
				want := int(20*time.Minute/(takes+interval+2*wanted)) - 1
				if last < want {
					t.Errorf("interval %s, a reading takes %s: %d readings in 20 minutes, want %d or more", interval, takes, last, want)
				}
				cancel()
				time.Sleep(2 * wanted) // nothing asks for the reading in progress, which ends
			})
		}
	}
}

// TestOldReading: a reading that has ended without a request to wait for it is used with the time at which it ended, and a
// new one begins.
func TestOldReading(t *testing.T) {
	o := overview(t, cluster())
	synctest.Test(t, func(t *testing.T) {
		s, ends := slowReads(o, 10*time.Second, 3*time.Second)
		if r, err := s.current(t.Context(), patience); r != nil || err != nil {
			t.Fatalf("the first request is answered with %v, %v before anything is read", r, err)
		}
		time.Sleep(time.Hour)
		r, err := s.current(t.Context(), patience)
		if err != nil || r == nil {
			t.Fatalf("no reading after an hour: %v", err)
		}
		if r.number != 1 || !r.at.Equal(ends()[0]) {
			t.Errorf("after an hour: reading %d of %s, want the first, of %s", r.number, r.at, ends()[0])
		}
		if r, err = s.current(t.Context(), longPatience); err != nil || r.number != 2 || !r.at.Equal(time.Now()) {
			t.Errorf("the request after it gets reading %d of %s, %v, want a new one", r.number, r.at, err)
		}
	})
}
