package page

import (
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/plugin/offline"
	"github.com/karpenter-go/karpenter/plugin/web"
)

// sizes are the fleets of TestTimes. Tests use the small one; docs/page.md has the figures of 40,300,5000.
var fleetSizes = flag.String("sizes", "12", "numbers of nodes of the fleets of TestTimes, separated by commas")

// timed are the views of TestTimes.
var timed = []string{"/fleet", "/fleet?color=why", "/pending", "/map", "/pools", "/savings", "/plan"}

// longestView is how long TestTimes waits for a view before it says what is there.
const longestView = time.Minute

// TestTimes opens each view of fleets as a browser without a script does, on a reading of its own, and prints after how long
// there is a page with rows, and a complete one. A page that is not complete says what is computed.
func TestTimes(t *testing.T) {
	for text := range strings.SplitSeq(*fleetSizes, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range timed {
			c := serveTo(t, Fleet{Nodes: n, Pods: 20})
			began, usable, last := time.Now(), time.Duration(0), ""
			for {
				page := c.page(path)
				if usable == 0 && strings.Contains(page, "<tr data-row=") {
					usable = time.Since(began)
				}
				if last = waitingText(page); last == "" || time.Since(began) > longestView {
					break
				}
				c.pause()
			}
			took := time.Since(began).Round(10 * time.Millisecond)
			state := "complete"
			if last != "" {
				state = "not complete: " + last
			}
			t.Logf("%5d nodes %-18s rows after %6v, %v after %v", n, path, usable.Round(10*time.Millisecond), state, took)
			if usable == 0 {
				t.Errorf("%d nodes: %s has no rows after %v: %s", n, path, took, last)
			}
		}
	}
}

var waitingLine = regexp.MustCompile(`(?s)<div class="waiting".*?</span> (.*?) …`)

// waitingText returns what a page says of what is being computed, or was stopped; "" if it is complete.
func waitingText(page string) string {
	if m := waitingLine.FindStringSubmatch(page); m != nil {
		return m[1]
	}
	if _, rest, stopped := strings.Cut(page, `class="notice warn stopped">`); stopped {
		text, _, _ := strings.Cut(rest, " <")
		return text
	}
	return ""
}

// reader is a browser without a script.
type reader struct {
	t    *testing.T
	http *http.Client
	base string
}

// serveTo serves a page of a new reading of the fleet, and opens a session.
func serveTo(t *testing.T, f Fleet) *reader {
	t.Helper()
	o := read(t, f)
	server := web.New(web.Options{Source: "example", Read: func(context.Context) (*offline.Overview, error) { return o, nil }})
	listener, address, err := server.Listen(0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	go server.Serve(ctx, listener)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	base, token, _ := strings.Cut(address, "/#")
	r := &reader{t, &http.Client{Jar: jar}, base}
	answer, err := r.http.PostForm(base+"/session", url.Values{"token": {token}})
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	return r
}

// page returns a page.
func (r *reader) page(path string) string {
	r.t.Helper()
	answer, err := r.http.Get(r.base + path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		r.t.Fatal(fmt.Errorf("%s: %s, %w", path, answer.Status, err))
	}
	return string(text)
}

// pause waits as long as a page does before it asks again.
func (r *reader) pause() {
	timer := time.NewTimer(time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.t.Context().Done():
	}
}
