package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web/picture"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// request is a request for a view.
type request struct {
	// ctx is that of the HTTP request, or of the report.
	ctx      context.Context
	query    url.Values
	server   *Server
	reading  *reading
	width    int
	patience time.Duration
	// scriptless is a document in which no script paints pictures for the width of the screen.
	scriptless bool
}

// shown is a view: a picture and a table of the same rows.
type shown struct {
	Title, Lead string
	Picture     *picture.Picture
	// Narrow is the picture for narrow screens; nil if the script paints it.
	Narrow *picture.Picture
	// Canvas says that the script paints the picture.
	Canvas bool
	Sheet  *view.Sheet
	// Waiting is what is being computed, in words, if the view is not ready: it has no sheet then, or one of what is known.
	// Stopped says what was not computed. Empty is what to do if there is nothing.
	Waiting, Stopped, Empty string
	// Command is the command that says the same.
	Command  string
	Controls []control
	Scrubber *scrubber
	Detail   *detail
	Insets   []*inset
	// Chosen is the row that the picture marks.
	Chosen  string
	Form    *whatIfForm
	Facts   []fact
	Problem string
	// Extra are more values of the JSON document.
	Extra map[string]any
	// Link is the parameter that selects a row, empty for none.
	Link string
}

// control is a choice, or a text if it has no options.
type control struct {
	Name, Label, Value string
	Options            []option
	// Resets is a parameter that another choice removes.
	Resets string
	// Hint says what may be typed, Suggested are some of these texts.
	Hint      string
	Suggested []string
}

type option struct{ Value, Text string }

type scrubber struct {
	Step, Of int
	Text     string
}

// detail is the panel of the selected row.
type detail struct {
	Title, Text string
	Facts       []fact
	Link        *link
	Pods        *inset
}

// inset is a table beside that of the view.
type inset struct {
	Title   string
	Columns []view.Column
	Rows    []line
}

// fact is a figure with its name.
type fact struct{ Name, Value, Note string }

// The widths of pictures, in pixels.
const (
	usualWidth  = 1160
	narrowWidth = 360
	leastWidth  = 280
	mostWidth   = 3200
)

// formats are those of a view besides the page; view is the picture for the script.
var formats = []string{"json", "csv", "svg"}

// longPatience is how long a request for a document waits.
const longPatience = 15 * time.Minute

// view answers the requests for a view in all formats.
func (s *Server) view(name string, show func(*request) (*shown, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		format := q.Get("format")
		req := &request{ctx: r.Context(), query: q, server: s, width: usualWidth, patience: patience}
		if v, err := strconv.Atoi(q.Get("w")); err == nil {
			req.width = min(max(v, leastWidth), mostWidth)
		}
		if format != "" && format != "view" {
			req.patience = longPatience
		}
		reading, err := s.current(r.Context(), req.patience)
		switch {
		case err != nil:
			s.fail(w, r, name, format, http.StatusBadGateway, "The cluster cannot be read", err)
			return
		case reading == nil:
			s.page(w, r, name, nil, &shown{Title: views[name].title, Waiting: "reading " + s.options.Source})
			return
		}
		req.reading = reading
		v, err := show(req)
		switch {
		case errors.Is(err, errBusy):
			s.fail(w, r, name, format, http.StatusTooManyRequests, "This view is not computed now", err)
			return
		case err != nil:
			s.fail(w, r, name, format, http.StatusUnprocessableEntity, "This view cannot be computed", err)
			return
		}
		v.Title = views[name].title
		if v.Sheet != nil && q.Get("sort") != "" {
			v.Sheet.Sort(q.Get("sort"), q.Get("desc") == "1")
		}
		if format == "" {
			s.page(w, r, name, reading, v)
			return
		}
		write(w, r, format, reading, name, v)
	}
}

// fail says what went wrong, as a page or as text.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, name, format string, status int, what string, err error) {
	if format != "" {
		http.Error(w, what+": "+offline.OneLine(err), status)
		return
	}
	w.WriteHeader(status)
	s.page(w, r, name, nil, &shown{Title: cmp.Or(views[name].title, what), Problem: what + ": " + offline.OneLine(err)})
}

// The longest queries, in bytes. A page repeats its query in many links; that of a what-if may have a manifest.
const (
	mostQuery  = 4 << 10
	mostChange = 64 << 10
)

// bounded refuses queries that are too long.
func (s *Server) bounded(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		most := mostQuery
		if r.URL.Path == "/what-if" {
			most = mostChange
		}
		if len(r.URL.RawQuery) > most {
			s.tooLong(w, r, len(r.URL.RawQuery), most)
			return
		}
		next(w, r)
	}
}

// tooLong answers a request whose query is too long, or would be. The answer does not repeat it.
func (s *Server) tooLong(w http.ResponseWriter, r *http.Request, length, most int) {
	bare := *r
	bare.URL = &url.URL{Path: r.URL.Path}
	s.fail(w, &bare, "", r.URL.Query().Get("format"), http.StatusRequestURITooLong, "The address is too long",
		fmt.Errorf("its query has %d bytes, want at most %d", length, most))
}

// missing answers a request for a page that does not exist.
func (s *Server) missing(w http.ResponseWriter, r *http.Request) {
	s.fail(w, r, "", r.URL.Query().Get("format"), http.StatusNotFound, "There is no such page",
		fmt.Errorf("want one of %s", strings.Join(order, ", ")))
}

// write answers with a document.
func write(w http.ResponseWriter, r *http.Request, format string, at *reading, name string, v *shown) {
	var out bytes.Buffer
	var err error
	kind := ""
	failed := v.Problem != "" && v.Sheet == nil                          // beside an answer, a problem is a warning
	waiting := v.Waiting != "" && (format != "view" || v.Picture == nil) // documents are complete
	if v.Sheet == nil {                                                  // a what-if without a change
		v.Sheet, v.Picture = &view.Sheet{}, &picture.Picture{}
	}
	switch {
	case failed:
		http.Error(w, v.Problem, http.StatusBadRequest)
		return
	case waiting:
		http.Error(w, "the view is not ready", http.StatusServiceUnavailable)
		return
	case format == "json":
		kind = "application/json"
		document := map[string]any{"view": name, "at": at.At().UTC().Format(time.RFC3339), "rows": v.Sheet.Objects()}
		if cost, _, ready := at.cost.ask(r.Context(), longPatience); ready {
			document["cost"] = cost
		}
		for key, value := range v.Extra {
			document[key] = value
		}
		encoder := json.NewEncoder(&out)
		encoder.SetIndent("", " ")
		err = encoder.Encode(document)
	case format == "csv":
		kind, err = "text/csv", v.Sheet.WriteCSV(&out)
	case format == "svg":
		kind, err = "image/svg+xml", v.Picture.WriteSVG(&out, picture.Options{Document: true})
	case format == "view":
		kind, err = "application/octet-stream", v.Picture.WriteWire(&out)
	default:
		http.Error(w, fmt.Sprintf("the format is %q, want %s", format, strings.Join(formats, ", ")), http.StatusBadRequest)
		return
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if format != "view" && format != "svg" && r.URL.Query().Get("download") != "" {
		w.Header().Set("Content-Disposition", "attachment; filename=karpenter-"+name+"."+format)
	}
	if strings.HasPrefix(kind, "text/") {
		kind += "; charset=utf-8"
	}
	w.Header().Set("Content-Type", kind)
	compressed(w, r, out.Bytes())
}

// compressed writes the data, compressed if the reader takes that.
func compressed(w http.ResponseWriter, r *http.Request, data []byte) {
	if len(data) < 1024 || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		w.Write(data)
		return
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.Header().Set("Vary", "Accept-Encoding")
	zip := gzip.NewWriter(w)
	defer zip.Close()
	zip.Write(data)
}

// costPart returns the cost for the script: the page does not wait for it.
func (s *Server) costPart(w http.ResponseWriter, r *http.Request) {
	reading, err := s.current(r.Context(), patience)
	if err != nil || reading == nil {
		http.Error(w, "not read yet", http.StatusServiceUnavailable)
		return
	}
	cost, err, ready := reading.cost.ask(r.Context(), 20*time.Second)
	if err != nil || !ready {
		http.Error(w, "not computed yet", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	text, err := json.Marshal(map[string]any{"facts": costFacts(&cost), "cost": cost})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	compressed(w, r, text)
}

// costFacts returns the cost in words.
func costFacts(c *view.Cost) []fact {
	month := func(usd float64) string {
		return fmt.Sprintf("%d USD a month", int(math.Round(usd*view.HoursPerMonth)))
	}
	hour := func(usd float64) string { return fmt.Sprintf("%.2f", usd) }
	today := fact{"Today, USD/h", hour(c.Price), month(c.Price)}
	if c.Unpriced > 0 {
		today.Note += ", without " + plural(c.Unpriced, "node") + " of unknown price"
	}
	fresh := fact{"Fresh fleet, USD/h", hour(c.Fresh), plural(c.FreshNodes, "node") + " for the pods that have one"}
	over := fact{"Over fresh", fmt.Sprintf("%+.0f%%", c.Over()*100), month(c.Price - c.Fresh)}
	if c.FreshWithout > 0 { // it is no measure then
		fresh.Value, fresh.Note = "none", fmt.Sprintf("%d of these pods would have no place, such as beyond a limit", c.FreshWithout)
		over.Value, over.Note = "unknown", "there is no fresh fleet for all pods"
	}
	bound := fact{"Lower bound, USD/h", hour(c.Bound), "with protected nodes kept"}
	pending := fact{"Pending pods", strconv.Itoa(c.Pending), fmt.Sprintf("%d without a place", c.NoPlace)}
	nodes := fact{"Nodes", strconv.Itoa(c.Nodes), plural(c.Pods, "pod")}
	return []fact{today, fresh, over, bound, nodes, pending}
}

// ask turns the form of what-if into its address.
func (s *Server) ask(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	if err := r.ParseForm(); err != nil {
		http.Error(w, "reading the form: "+err.Error(), http.StatusBadRequest)
		return
	}
	q := url.Values{}
	for _, name := range whatIfFields {
		v := r.PostForm.Get(name)
		if name != "yaml" { // in a manifest, blanks mean something
			v = strings.TrimSpace(v)
		}
		if strings.TrimSpace(v) != "" {
			q.Set(name, v)
		}
	}
	q.Set("run", "1")
	if reading, err := s.current(r.Context(), patience); err == nil && reading != nil {
		if offline.SameManifests(reading.Pools()[q.Get("pool")], q.Get("yaml")) {
			q.Del("yaml")
		}
	}
	if length := len(q.Encode()); length > mostChange {
		s.tooLong(w, r, length, mostChange)
		return
	}
	http.Redirect(w, r, "/what-if?"+q.Encode(), http.StatusSeeOther)
}

// goOn computes further savings.
func (s *Server) goOn(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	reading := s.reading
	s.mu.Unlock()
	if reading != nil {
		reading.savings.again()
	}
	http.Redirect(w, r, "/savings", http.StatusSeeOther)
}

// cancel stops what is computed for a what-if.
func (s *Server) cancel(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 1<<20)
	query, err := url.ParseQuery(r.PostFormValue("query"))
	if err != nil {
		http.Error(w, "reading the form: "+err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	reading := s.reading
	s.mu.Unlock()
	if reading != nil {
		reading.stop(changeKey(query))
	}
	query.Del("run")
	http.Redirect(w, r, "/what-if?"+query.Encode(), http.StatusSeeOther)
}
