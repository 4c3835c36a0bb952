package web

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// events is the stream of an open page: it is told the number of each new reading, and when the cluster cannot be read.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	s.mu.Lock()
	s.streams++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.streams--
		s.mu.Unlock()
	}()
	control := http.NewResponseController(w)
	last := ""
	for {
		event := s.event()
		if event == last {
			event = ": open\n\n"
		} else {
			last = event
		}
		if _, err := w.Write([]byte(event)); err != nil || control.Flush() != nil {
			return
		}
		pause := 15 * time.Second
		if s.options.Live {
			pause = min(s.options.Interval, wanted/2) // a reading that takes long is asked for again before it is canceled
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(pause):
		}
		s.refresh(r.Context())
	}
}

// event is the state of the readings as an event.
func (s *Server) event() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.trouble != nil:
		return fmt.Sprintf("event: trouble\ndata: %s\n\n", s.stale())
	case s.reading != nil:
		return fmt.Sprintf("event: reading\ndata: %d\n\n", s.reading.number)
	}
	return ": nothing is read\n\n"
}

// stale says since when the reading is not fresh and why, "" if it is. The mutex is held.
func (s *Server) stale() string {
	switch {
	case s.trouble == nil:
		return ""
	case s.reading == nil:
		return offline.OneLine(s.trouble)
	}
	return fmt.Sprintf("not fresh since %s: %s", s.reading.at.UTC().Format("15:04:05 UTC"), offline.OneLine(s.trouble))
}

// refresh reads again for an open page, unless what a page shows is being computed from the last reading: that would begin
// anew. It waits for a reading in progress too. An error keeps the last reading.
func (s *Server) refresh(ctx context.Context) {
	s.mu.Lock()
	needed := s.options.Live && (s.reading == nil || !s.reading.busy())
	if needed {
		s.take()
		needed = s.reading == nil || time.Since(s.reading.at) >= s.options.Interval
	}
	if needed {
		s.load()
	}
	s.mu.Unlock()
	if needed {
		_, _ = s.current(ctx, wanted) // the error is kept as trouble
	}
}

// busy says whether a part that takes long is being computed.
func (r *reading) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.whatIfs {
		if running, _ := w.state(); running {
			return true
		}
	}
	plan, _ := r.plan.state()
	savings, _ := r.savings.state()
	return plan || savings
}
