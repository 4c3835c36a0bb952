package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/karpenter-go/karpenter/plugin/offline"
)

// TestEmpty: an empty cluster has documents without rows, in every view and format.
func TestEmpty(t *testing.T) {
	_, c := serve(t, ofFile(t, ""))
	for name := range views {
		for _, format := range formats {
			text, answer := c.get("/" + name + "?format=" + format)
			if answer.StatusCode != http.StatusOK {
				t.Errorf("%s as %s is answered with %s: %s", name, format, answer.Status, text)
			}
			if format == "json" && !strings.Contains(text, `"rows": []`) {
				t.Errorf("%s has no list of rows: %s", name, text)
			}
		}
	}
	if page, _ := c.get("/fleet"); !strings.Contains(page, "The files have no nodes, pods or pools.") {
		t.Error("the page does not say that there is nothing")
	}
}

// TestManyWhatIfs: what-ifs that are asked for at once wait for each other, and end none. Too many are refused with a
// sentence, and few answers are kept.
func TestManyWhatIfs(t *testing.T) {
	s, c := serve(t, ofFile(t, cluster()))
	r, err := s.current(t.Context(), longPatience)
	if err != nil {
		t.Fatal(err)
	}
	for range whatIfsAtOnce { // none has its turn
		r.turns <- struct{}{}
	}
	var list []*whatIf
	ask := func(i int) (*whatIf, error) {
		q := url.Values{"prices": {fmt.Sprint(i + 1)}}
		return r.ifChanged(changeKey(q), &offline.Change{Prices: float64(i + 1)})
	}
	for i := range mostWhatIfs {
		w, err := ask(i)
		if err != nil {
			t.Fatalf("what-if %d: %v", i, err)
		}
		list = append(list, w)
	}
	if same, err := ask(0); err != nil || same != list[0] {
		t.Errorf("a what-if that waits is asked for again: %v, the same is %v", err, same == list[0])
	}
	if _, err := ask(mostWhatIfs); !errors.Is(err, errBusy) {
		t.Errorf("one what-if more than can wait: %v", err)
	}
	for _, format := range []string{"", "&format=json"} {
		if text, answer := c.get("/what-if?run=1&prices=900" + format); answer.StatusCode != http.StatusTooManyRequests ||
			!strings.Contains(text, errBusy.Error()) {
			t.Errorf("%q: one what-if more than can wait is answered with %s: %s", format, answer.Status, text)
		}
	}
	for range whatIfsAtOnce {
		<-r.turns
	}
	for i, w := range list {
		if answer, err, ready := w.ask(t.Context(), longPatience); err != nil || !ready || answer.With == nil {
			t.Fatalf("what-if %d ends with %v, ready %v", i, err, ready)
		}
	}
	if _, answer := c.get("/what-if?run=1&prices=900&format=json"); answer.StatusCode != http.StatusOK {
		t.Errorf("when they have ended, the next is answered with %s", answer.Status)
	}
	if len(r.whatIfs) != keptWhatIfs {
		t.Errorf("%d answers are kept, want %d", len(r.whatIfs), keptWhatIfs)
	}
}

// TestNoSuchPage: an unknown address has the navigation, as every page.
func TestNoSuchPage(t *testing.T) {
	_, c := serve(t, ofFile(t, cluster()))
	for _, path := range []string{"/nosuch", "/fleet/more", "/what-if/?run=1"} {
		page, answer := c.get(path)
		if answer.StatusCode != http.StatusNotFound || !strings.Contains(page, `<a href="/fleet">Fleet</a>`) ||
			!strings.Contains(page, "There is no such page") || !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/html") {
			t.Errorf("%s is answered with %s: %s", path, answer.Status, page)
		}
	}
	if text, answer := c.get("/nosuch?format=json"); answer.StatusCode != http.StatusNotFound || strings.Contains(text, "<") {
		t.Errorf("a document is answered with %s: %s", answer.Status, text)
	}
}

// TestLongQueries: a query that is too long is refused, and no answer repeats it.
func TestLongQueries(t *testing.T) {
	_, c := serve(t, ofFile(t, cluster()))
	for query, want := range map[string]int{
		"/fleet?q=" + strings.Repeat("x", 900_000):                   http.StatusRequestURITooLong,
		"/nosuch?follow=" + strings.Repeat("x", 900_000):             http.StatusRequestURITooLong,
		"/plan?color=" + strings.Repeat("x", mostQuery):              http.StatusRequestURITooLong,
		"/what-if?run=1&yaml=" + strings.Repeat("x", mostChange):     http.StatusRequestURITooLong,
		"/what-if?run=1&yaml=" + strings.Repeat("x", mostChange-100): http.StatusOK,
		"/fleet?q=" + strings.Repeat("x", mostQuery-100):             http.StatusOK,
	} {
		page, answer := c.get(query)
		if answer.StatusCode != want || want != http.StatusOK && !strings.Contains(page, "The address is too long: its query has") {
			t.Errorf("%.30s, %d bytes: %s", query, len(query), answer.Status)
		}
		if len(page) > 1<<20 {
			t.Errorf("%.30s, %d bytes: a page of %d bytes", query, len(query), len(page))
		}
	}
	if page, answer := c.get("/nosuch"); answer.StatusCode != http.StatusNotFound ||
		!strings.Contains(page, `<a href="/fleet">Go to the fleet</a>`) ||
		!strings.Contains(page, "There is no such page: want one of fleet, pools,") {
		t.Errorf("a page that does not exist is answered with %s:\n%s", answer.Status, page)
	}
	for _, path := range []string{"/nosuch", "/fleet?q=" + strings.Repeat("x", mostQuery)} {
		if page, _ := c.get(path); strings.Contains(page, "being computed") || !strings.Contains(page, `data-ready="none"`) {
			t.Errorf("%.20s has figures that are never computed:\n%s", path, page)
		}
	}
	answer := c.do(http.MethodPost, "/what-if", url.Values{"yaml": {strings.Repeat("x", mostChange)}}, nil)
	if answer.StatusCode != http.StatusRequestURITooLong {
		t.Errorf("a form that leads to a query that is too long is answered with %s", answer.Status)
	}
}
