package fakeapi

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Faults are what the server does wrong. The zero value is a server without faults.
type Faults struct {
	// PerSecond is the number of requests per second that are accepted, in the long run and at once; more are refused with 429
	// and RetryAfter, in seconds. 0 accepts all. Only those of the verbs count, all but watch if none is named, and none of
	// Leases.
	PerSecond  float64  `json:"perSecond,omitempty"`
	RetryAfter int      `json:"retryAfter,omitempty"`
	Verbs      []string `json:"verbs,omitempty"`
	// FailEvery makes every n-th request fail with 500; 0 makes none.
	FailEvery int `json:"failEvery,omitempty"`
	// Latency is how long a request waits before it is answered.
	Latency time.Duration `json:"latency,omitempty"`
	// NoWatchList refuses sendInitialEvents, as Kubernetes 1.33 does with its default gates.
	NoWatchList bool `json:"noWatchList,omitempty"`
}

// faults holds the faults and what they need to count.
type faults struct {
	mutex   sync.Mutex
	set     Faults
	tokens  float64
	filled  time.Time
	number  int
	changed chan struct{} // closed to end all watches
}

func (f *faults) now() Faults {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.set
}

func (f *faults) closed() <-chan struct{} {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.changed
}

// strike waits, and returns the error that the request gets.
func (f *faults) strike(ctx context.Context, verb, resource string) error {
	f.mutex.Lock()
	set, now := f.set, time.Now()
	f.number++
	number, excess := f.number, false
	if counts := len(set.Verbs) == 0 && verb != "watch" || slices.Contains(set.Verbs, verb); counts && set.PerSecond > 0 &&
		resource != "leases" {
		f.tokens = min(set.PerSecond, f.tokens+set.PerSecond*now.Sub(f.filled).Seconds())
		f.filled = now
		if excess = f.tokens < 1; !excess {
			f.tokens--
		}
	}
	f.mutex.Unlock()
	if set.Latency > 0 {
		timer := time.NewTimer(set.Latency)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	switch {
	case excess:
		return apierrors.NewTooManyRequests("the server is told to refuse requests", set.RetryAfter)
	case set.FailEvery > 0 && number%set.FailEvery == 0:
		return apierrors.NewInternalError(errFault)
	}
	return nil
}

// SetFaults replaces the faults.
func (s *Server) SetFaults(set Faults) {
	s.faults.mutex.Lock()
	defer s.faults.mutex.Unlock()
	s.faults.set, s.faults.tokens, s.faults.filled = set, set.PerSecond, time.Now()
}

// CloseWatches ends all watches. With forget, the changes so far are forgotten, so that a watch that continues from an older
// version is answered 410 Gone.
func (s *Server) CloseWatches(forget bool) {
	if forget {
		s.mutex.Lock()
		for _, shelf := range s.shelves {
			shelf.log, shelf.since = nil, s.version
		}
		s.version++ // no client has seen the newest version
		for _, shelf := range s.shelves {
			shelf.since = s.version
		}
		s.mutex.Unlock()
	}
	s.faults.mutex.Lock()
	defer s.faults.mutex.Unlock()
	close(s.faults.changed)
	s.faults.changed = make(chan struct{})
}

// Call is a kind of request.
type Call struct {
	Client      string `json:"client,omitempty"` // the token of its kubeconfig
	Verb        string `json:"verb"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
}

// Count is how many requests of a kind were accepted, and refused by a fault.
type Count struct {
	Call
	Accepted int `json:"accepted"`
	Refused  int `json:"refused,omitempty"`
}

type counts struct {
	mutex sync.Mutex
	calls map[Call]*Count
}

func (c *counts) add(call Call, refused bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.calls == nil {
		c.calls = map[Call]*Count{}
	}
	count := c.calls[call]
	if count == nil {
		count = &Count{Call: call}
		c.calls[call] = count
	}
	if refused {
		count.Refused++
	} else {
		count.Accepted++
	}
}

// Counts returns the requests since the start, in no order.
func (s *Server) Counts() []Count {
	s.counts.mutex.Lock()
	defer s.counts.mutex.Unlock()
	var all []Count
	for _, count := range s.counts.calls {
		all = append(all, *count)
	}
	return all
}

// control serves the above to other processes: POST /fake/faults, POST /fake/close (?forget=true), GET /fake/counts.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/fake/faults":
		var set Faults
		if err := json.NewDecoder(r.Body).Decode(&set); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		s.SetFaults(set)
		answer(w, http.StatusOK, set)
	case "/fake/close":
		s.CloseWatches(r.URL.Query().Get("forget") == "true")
		answer(w, http.StatusOK, metav1.Status{})
	case "/fake/counts":
		answer(w, http.StatusOK, s.Counts())
	default:
		http.NotFound(w, r)
	}
}
