package web

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
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
