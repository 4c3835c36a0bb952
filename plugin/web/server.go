package web

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Options configures a server.
type Options struct {
	// Read reads the cluster or the file.
	Read func(context.Context) (*offline.Overview, error)
	// Source is what is read, in words for the head of the page; Command holds the flags by which commands read it.
	Source  string
	Command []string
	// Live says that a later reading may differ. Interval is the least time between two readings.
	Live     bool
	Interval time.Duration
	// Used is told the address with the next token when one has been used; nil for nowhere.
	Used func(address string)
}

// Server serves the page.
type Server struct {
	options Options
	access  *access
	host    string

	mu      sync.Mutex
	reading *reading
	// loading is the reading in progress, or one that has ended and is not taken yet.
	loading *job[loaded]
	// trouble is why the last attempt to read failed, nil if it did not.
	trouble error
	// streams is the number of open pages, and read the number of readings so far.
	streams, read int
}

// reading is what was read, with the parts that are computed in the background.
type reading struct {
	*offline.Overview
	number int
	at     time.Time // when reading it ended

	fleet   job[*view.Fleet]
	decided job[*view.Fleet]
	cost    job[view.Cost]
	// rightSized is nil without usage.
	rightSized job[*bill.RightSized]
	pending    job[[]view.Pending]
	plan       job[*view.Plan]
	savings    job[*view.Savings]
	pools      job[[]view.Pool]

	mu      sync.Mutex
	texts   map[string]*job[string] // of the panels of pools, by name
	whatIfs []*whatIf               // in the order in which they were asked for
	// turns has an entry for each what-if that is being computed.
	turns chan struct{}
}

// whatIf is the answer to a change, by its query.
type whatIf struct {
	query string
	job[*offline.WhatIf]
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{options: o}
	s.access = newAccess(func(token string) {
		if o.Used != nil {
			o.Used(s.address(token))
		}
	})
	return s
}

// Listen opens a port of the loopback address; 0 for any. It returns the address of the page with its token.
func (s *Server) Listen(port int) (net.Listener, string, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return nil, "", fmt.Errorf("opening the port of the page: %w", err)
	}
	s.host = listener.Addr().String()
	return listener, s.address(s.access.token), nil
}

func (s *Server) address(token string) string { return "http://" + s.host + "/#" + token }

// Serve answers requests until the context ends.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the page: %w", err)
	}
	return nil
}

//go:embed assets
var assets embed.FS

// Handler returns the handler of all addresses.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if s.access.has(r) {
			http.Redirect(w, r, "/fleet#", http.StatusSeeOther) // without the token of the address
			return
		}
		render(w, "entry", entryPage{Title: "Opening the page"})
	})
	mux.HandleFunc("POST /session", s.access.open)
	for name, kind := range map[string]string{"page.js": "text/javascript", "entry.js": "text/javascript",
		"page.css": "text/css", "icon.svg": "image/svg+xml"} {
		mux.HandleFunc("GET /"+name, func(w http.ResponseWriter, r *http.Request) {
			data, err := assets.ReadFile("assets/" + name)
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			if name == "page.css" {
				data = append([]byte(picture.CSS()), data...)
			}
			w.Header().Set("Content-Type", kind+"; charset=utf-8")
			compressed(w, r, data)
		})
	}
	// Browsers ask for it beside documents that cannot name an icon, such as a picture.
	mux.Handle("GET /favicon.ico", http.RedirectHandler("/icon.svg", http.StatusMovedPermanently))
	for name, v := range views {
		mux.HandleFunc("GET /"+name, s.access.session(s.bounded(s.view(name, v.show))))
	}
	mux.HandleFunc("GET /", s.access.session(s.bounded(s.missing)))
	mux.HandleFunc("GET /cost", s.access.session(s.costPart))
	mux.HandleFunc("GET /events", s.access.session(s.events))
	mux.HandleFunc("POST /what-if", s.access.session(s.bounded(s.ask)))
	mux.HandleFunc("POST /go-on", s.access.session(s.bounded(s.goOn)))
	mux.HandleFunc("POST /cancel", s.access.session(s.bounded(s.cancel)))
	return s.access.guard(mux)
}

// patience is how long a request waits for what is computed before it gets a page that says so.
const patience = 1500 * time.Millisecond

// loaded is what was read, and when that ended.
type loaded struct {
	*offline.Overview
	at time.Time
}

// load begins a reading, unless one is in progress. The mutex is held.
func (s *Server) load() *job[loaded] {
	if s.loading == nil {
		s.loading = &job[loaded]{compute: func(ctx context.Context, _ func(loaded)) (loaded, error) {
			overview, err := s.options.Read(ctx)
			return loaded{overview, time.Now()}, err
		}}
	}
	return s.loading
}

// take stores a reading that has ended, whether or not a request still waits for it. The mutex is held.
func (s *Server) take() {
	if s.loading == nil {
		return
	}
	if _, ended := s.loading.state(); !ended {
		return
	}
	last, err := s.loading.value, s.loading.err
	if s.loading, s.trouble = nil, err; err == nil {
		s.read++
		s.reading = newReading(last, s.read)
	}
}

// current returns the reading that requests use: a new one if there is none, or if the last one is too old. Two requests
// share a reading in progress. It returns nil while that takes longer than the patience.
func (s *Server) current(ctx context.Context, patience time.Duration) (*reading, error) {
	s.mu.Lock()
	s.take()
	last := s.reading
	if last != nil && (!s.options.Live || time.Since(last.at) < s.options.Interval || s.loading == nil && s.streams > 0) {
		s.mu.Unlock()
		return last, nil
	}
	loading := s.load()
	s.mu.Unlock()
	_, err, _ := loading.ask(ctx, patience)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.take(); s.reading != nil {
		return s.reading, nil
	}
	return nil, err
}

func newReading(last loaded, number int) *reading {
	o := last.Overview
	r := &reading{Overview: o, number: number, at: last.at, turns: make(chan struct{}, whatIfsAtOnce),
		texts: map[string]*job[string]{}}
	r.fleet.compute = func(context.Context, func(*view.Fleet)) (*view.Fleet, error) { return o.Fleet(false), nil }
	r.decided.compute = func(_ context.Context, tell func(*view.Fleet)) (*view.Fleet, error) {
		tell(o.Fleet(false))
		return o.Fleet(true), nil
	}
	r.rightSized.compute = func(ctx context.Context, _ func(*bill.RightSized)) (*bill.RightSized, error) {
		return o.RightSized(ctx)
	}
	r.cost.compute = func(context.Context, func(view.Cost)) (view.Cost, error) { return o.Cost(), nil }
	r.pending.compute = func(context.Context, func([]view.Pending)) ([]view.Pending, error) { return o.Pending(), nil }
	r.pools.compute = func(context.Context, func([]view.Pool)) ([]view.Pool, error) { return o.PoolViews(), nil }
	r.plan.compute = o.Plan
	r.savings.compute = func(ctx context.Context, tell func(*view.Savings)) (*view.Savings, error) {
		tell(o.Blockers())
		if err := r.planned(ctx); err != nil {
			return nil, err
		}
		return o.Savings(ctx, longestSavings, tell)
	}
	return r
}

// longestSavings is how long savings are computed before the page asks whether to go on.
const longestSavings = time.Minute

// planned waits for the plan, which goes on as long as one of the views that need it is asked for.
func (r *reading) planned(ctx context.Context) error {
	if _, err, ready := r.plan.ask(ctx, longPatience); err != nil || ready {
		return err
	}
	return cmp.Or(ctx.Err(), context.DeadlineExceeded)
}

// The limits of what-ifs: how many are computed at once, how many are computed or wait for that, and how many answers are
// kept.
const (
	whatIfsAtOnce = 2
	mostWhatIfs   = 64
	keptWhatIfs   = 16
)

var errBusy = fmt.Errorf("%d what-ifs are being computed or wait for their turn; ask again when some of them have ended", mostWhatIfs)

// ifChanged returns the job for a change, by its query, which has begun or waits for its turn.
func (r *reading) ifChanged(query string, change *offline.Change) (*whatIf, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	under, over := 0, 1-keptWhatIfs
	for _, w := range r.whatIfs {
		running, ended := w.state()
		switch {
		case w.query == query && (running || ended):
			return w, nil
		case running:
			under++
		default:
			over++
		}
	}
	if under >= mostWhatIfs {
		return nil, errBusy
	}
	r.whatIfs = slices.DeleteFunc(r.whatIfs, func(old *whatIf) bool {
		running, _ := old.state()
		remove := old.query == query || over > 0 && !running
		if remove {
			over--
		}
		return remove
	})
	w := &whatIf{query: query}
	w.compute = func(ctx context.Context, tell func(*offline.WhatIf)) (*offline.WhatIf, error) {
		return r.inTurn(ctx, change, tell)
	}
	w.start()
	r.whatIfs = append(r.whatIfs, w)
	return w, nil
}

// inTurn computes a what-if when it is its turn.
func (r *reading) inTurn(ctx context.Context, change *offline.Change, tell func(*offline.WhatIf)) (*offline.WhatIf, error) {
	select {
	case r.turns <- struct{}{}:
		defer func() { <-r.turns }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if err := r.planned(ctx); err != nil {
		return nil, err
	}
	return r.WhatIf(ctx, change, tell)
}

// stop ends what is computed for the change.
func (r *reading) stop(query string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.whatIfs {
		if w.query == query {
			w.job.stop()
		}
	}
}
