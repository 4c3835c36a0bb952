package pause_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

var (
	noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	key  = pause.Key{Reason: "Drifted", Scope: "p"}
)

// TestFail: each failure after a pause begins a pause twice as long, up to half an hour. Tolerated failures begin none.
func TestFail(t *testing.T) {
	for _, tolerated := range []int{0, 3} {
		p, now := pause.Pause{Key: key}, noon
		var lengths []time.Duration
		for range tolerated + 7 {
			now = now.Add(time.Second)
			p = p.Fail(now, now.Add(time.Second), tolerated, "gone")
			now = now.Add(time.Second)
			if p.Active(now) {
				lengths = append(lengths, p.Until.Sub(now))
				now = p.Until
			}
		}
		var want []time.Duration
		for _, minutes := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			want = append(want, minutes*time.Minute)
		}
		if diff := cmp.Diff(want, lengths); diff != "" {
			t.Errorf("pauses after %d tolerated failures (-want +got):\n%s", tolerated, diff)
		}
	}
}

// TestFailWithin: however many failures are attempted, no more than are tolerated, and one, are within a window. Pauses last
// as long as the window, and longer; a window without a failure clears the count.
func TestFailWithin(t *testing.T) {
	const window, tolerated = 10 * time.Minute, 2
	p := pause.Pause{Key: key}
	var failed []time.Duration
	for now := noon; now.Before(noon.Add(3 * time.Hour)); now = now.Add(10*time.Second + 300*time.Millisecond) {
		if before := p.Failures; !p.Active(now) {
			if p = p.FailWithin(window, now, tolerated, ""); p.Failures == before {
				t.Fatalf("a failure at %v does not count", now)
			}
			failed = append(failed, now.Sub(noon))
		}
	}
	for i := tolerated + 1; i < len(failed); i++ {
		if failed[i]-failed[i-tolerated-1] < window {
			t.Errorf("%d failures within %v: %v", tolerated+2, failed[i]-failed[i-tolerated-1], failed)
		}
	}
	if len(failed) != 9 {
		t.Errorf("%d failures in three hours, want 9: %v", len(failed), failed)
	}
	if p = p.FailWithin(window, p.Until.Add(window), tolerated, ""); p.Failures != 1 || !p.Until.IsZero() {
		t.Errorf("a window after the pause: %+v", p)
	}
	if p = p.FailWithin(window, p.At.Add(window-1), tolerated, ""); p.Failures != 2 {
		t.Errorf("within a window: %+v", p)
	}
}

// TestRound: attempts that began before the last failure, or during its pause, are part of its round.
func TestRound(t *testing.T) {
	first := pause.Pause{Key: key}.Fail(noon, noon.Add(time.Minute), 0, "first")
	for began, counts := range map[time.Time]bool{
		noon.Add(-time.Minute):     false,
		noon.Add(time.Minute - 1):  false,
		first.Until.Add(-1):        false,
		first.Until:                true,
		first.Until.Add(time.Hour): true,
	} {
		if got := first.Fail(began, first.Until.Add(time.Hour), 0, "next").Failures == 2; got != counts {
			t.Errorf("a failure of an attempt of %v counts: %t, want %t", began, got, counts)
		}
	}
}

// TestMemory: failures are forgotten an hour after the end of the pause.
func TestMemory(t *testing.T) {
	p := pause.Pause{Key: key}.Fail(noon, noon, 0, "").Fail(noon.Add(2*time.Minute), noon.Add(2*time.Minute), 0, "")
	late := p.Until.Add(time.Hour)
	if !p.Remembered(late) || p.Remembered(late.Add(time.Second)) {
		t.Error("the failures are not remembered for an hour after the pause")
	}
	if next := p.Fail(late.Add(time.Second), late.Add(time.Second), 0, ""); next.Failures != 1 {
		t.Errorf("%d failures after two that are forgotten, want 1", next.Failures)
	}
}

// TestString: the text names what is paused, until when, and why.
func TestString(t *testing.T) {
	p := pause.Pause{Key: key, Name: "replacements of drifted nodes"}.Fail(noon, noon, 0, "claim a is gone")
	want := "replacements of drifted nodes are paused until 2026-05-01T12:01:00Z, after 1 failure: claim a is gone"
	if p.String() != want {
		t.Errorf("got  %q\nwant %q", p, want)
	}
	if p.Failures = 2; !strings.Contains(p.String(), ", after 2 failures in a row: ") {
		t.Errorf("got %q", p)
	}
}

// TestList: a list has one pause for each key, drops what is forgotten, and does not grow beyond its limit.
func TestList(t *testing.T) {
	fail := func(scope string, at time.Time) pause.Pause {
		return pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: scope}}.Fail(at, at, 0, "")
	}
	var l pause.List
	for i := range pause.Most {
		l = l.With(fail(fmt.Sprintf("uid-%03d", i), noon))
	}
	again, beyond := fail("uid-000", noon.Add(time.Minute)), fail("uid-999", noon.Add(time.Minute))
	l = l.With(again).With(beyond)
	if l.Of(again.Key).At != again.At || l.Of(beyond.Key).Failures != 0 || len(l) != pause.Most {
		t.Errorf("%d pauses, of uid-000 %v, of uid-999 %v", len(l), l.Of(again.Key), l.Of(beyond.Key))
	}
	l = l.Without(again.Key)
	if l.Of(again.Key).Failures != 0 || len(l) != pause.Most-1 {
		t.Errorf("%d pauses after one has ended", len(l))
	}
	removal := pause.Pause{Key: pause.Key{Reason: pause.Removal, Scope: "p"}}.Fail(noon, noon, 0, "")
	if of := pause.Parse(l.With(again).With(removal).Text()).Of(removal.Key); of.Failures != 1 {
		t.Error("a full list takes no pause of removals")
	}
	if n := len(l.With(fail("later", noon.Add(2*time.Hour)))); n != 1 {
		t.Errorf("%d pauses two hours later, want the new one", n)
	}
	if n := len(l.Active(noon.Add(time.Hour))); n != 0 {
		t.Errorf("%d pauses are active after an hour", n)
	}
}

// TestText: the annotation has everything. It stays below the limit of the API, whatever the reasons are.
func TestText(t *testing.T) {
	p := pause.Pause{Key: key, Name: "replacements", Failures: 3, At: noon, Until: noon.Add(time.Minute), Why: "gone"}
	want := `[{"reason":"Drifted","scope":"p","name":"replacements","failures":3,` +
		`"at":"2026-05-01T12:00:00Z","until":"2026-05-01T12:01:00Z","why":"gone"}]`
	if got := (pause.List{p}).Text(); got != want {
		t.Errorf("text %s\nwant %s", got, want)
	}
	if diff := cmp.Diff(pause.List{p}, pause.Parse(want)); diff != "" {
		t.Errorf("parsed (-want +got):\n%s", diff)
	}
	var full pause.List
	for i := range pause.Most {
		full = append(full, pause.Pause{Key: pause.Key{Reason: pause.Launch, Scope: fmt.Sprintf("%036d", i)}, Name: strings.Repeat("n", 300),
			Failures: 4, At: noon, Until: noon, Why: strings.Repeat("\"", 1000)})
	}
	text := full.Text()
	if len(text) > 256<<10 || len(pause.Parse(text)) != pause.Most {
		t.Errorf("%d bytes, %d pauses", len(text), len(pause.Parse(text)))
	}
	if pause.List(nil).Text() != "" {
		t.Error("no pauses have a text")
	}
}

// TestParseInvalid: entries that cannot be used are ignored.
func TestParseInvalid(t *testing.T) {
	for _, text := range []string{"", "x", "{}", `[{"reason":"Drifted"}]`, `[{"reason":"a","scope":"b","failures":0,"at":"2026-05-01T12:00:00Z"}]`,
		`[{"reason":"a","scope":"b","failures":1}]`, `[{"reason":"a","scope":"b","failures":"1"}]`} {
		if got := pause.Parse(text); len(got) > 0 {
			t.Errorf("%s: %v, want none", text, got)
		}
	}
	edited := pause.Parse(`[{"reason":"a","scope":"b","failures":99999999,"at":"2026-05-01T12:00:00+02:00"}]`)
	if len(edited) != 1 || edited[0].Failures != 1000 || !edited[0].At.Equal(noon.Add(-2*time.Hour)) {
		t.Errorf("parsed %+v", edited)
	}
}
