package transport

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestDifference(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		name            string
		asked, answered time.Duration
		want            time.Duration
	}{
		{"the same second", 100 * time.Millisecond, 200 * time.Millisecond, 0},
		{"the second ends meanwhile", 900 * time.Millisecond, 1100 * time.Millisecond, 0},
		{"asked in the second before", -100 * time.Millisecond, 100 * time.Millisecond, 0},
		{"ahead", 5*time.Minute + time.Second, 5*time.Minute + 2*time.Second, 5 * time.Minute},
		{"behind", -5*time.Minute - time.Second, -5 * time.Minute, -5 * time.Minute},
	} {
		if got := difference(at.Add(test.asked), at.Add(test.answered), at); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestTransport(t *testing.T) {
	var date string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Date", date) }))
	defer server.Close()
	var reported []time.Duration
	skew := &Skew{Changed: func(ahead time.Duration) { reported = append(reported, ahead) }}
	client := &http.Client{Transport: skew.Transport(http.DefaultTransport)}
	ask := func(said string) time.Duration {
		date = said
		response, err := client.Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return skew.Ahead()
	}
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	if got := ask(at(0)); got != 0 || len(reported) > 0 {
		t.Errorf("with clocks that agree: skew %s, Changed called with %v", got, reported)
	}
	if got := ask(at(-10 * time.Minute)).Round(time.Minute); got != 10*time.Minute {
		t.Errorf("with a clock that is ten minutes ahead: skew %s", got)
	}
	ask(at(-10 * time.Minute))
	if len(reported) != 1 {
		t.Errorf("Changed called with %v, want one call", reported)
	}
	if got := ask("yesterday").Round(time.Minute); got != 10*time.Minute {
		t.Errorf("after a response without a time: skew %s", got)
	}
	ask(at(0))
	if got := skew.Ahead(); got != 0 || len(reported) != 2 {
		t.Errorf("after the clock was set: skew %s, Changed called with %v", got, reported)
	}
	var none *Skew
	if none.Ahead() != 0 {
		t.Error("a nil Skew reports a difference")
	}
}
