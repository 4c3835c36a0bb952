package webhook

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
)

// TestQuietLog verifies that a flood of requests that are refused, or whose annotations are ignored, writes one line per
// cause and second, with the number of the others.
func TestQuietLog(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var lines []string
	r := newReviewer(deaf{}, func() time.Time { return now }, funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	post := func(objects string) {
		r.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, Path, strings.NewReader(reviewOf(objects))))
	}
	long := poolWith(`[` + strings.Repeat("{},", 10_000) + `1]`)
	noted := strings.Replace(poolText("v1beta1", `{"template":{}}`, map[string]string{
		"karpenter-go.github.io/v1": `"{\"edits\":[` + strings.Repeat("[", 200) + `"`}), `"x"`, `"`+strings.Repeat("x", 500)+`"`, 1)
	for range 100 {
		post(`{"kind":"x"}`)
		post(`{"kind":"y"}`)
		post(long)
		post(noted)
	}
	now = now.Add(time.Second)
	post(`{"kind":"z"}`)
	for i, want := range []string{`"cause"="content"`, `"cause"="too long"`, `"cause"="annotation"`, `"others"=199`} {
		if i >= len(lines) || !strings.Contains(lines[i], want) {
			t.Fatalf("%d lines, want one for each of 3 causes, and another after a second. Line %d lacks %s:\n%s",
				len(lines), i, want, strings.Join(lines, "\n"))
		}
		if n := len(lines[i]); n > 600 {
			t.Errorf("line %d has %d bytes, want at most 600", i, n)
		}
	}
	if len(lines) != 4 || !strings.Contains(lines[2], "karpenter-go.github.io/v1: its text is nested 20") {
		t.Errorf("%d lines, want 4, the third about the annotation:\n%s", len(lines), strings.Join(lines, "\n"))
	}
}
