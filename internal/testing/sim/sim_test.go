package sim

import (
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// happens holds texts that must occur in the traces of the histories.
var happens = []string{"create claim", "(error)", "no capacity", "never registered", "will never join", "end leaked", "its machine is gone",
	"crashes before it can create claim", "crashes before it can ask the cloud", "crashes before it can note", "crashes before it can register",
	"crashes before it can taint", "crashes before it can write command", "crashes before it can delete claim", "loses the lease", "is deposed",
	"nominate pod", "clear the nomination", "is cordoned", "is launching", "is draining", "is done", "is abandoned", "drops claim", "evict",
	"has no place", "by force", "has drifted", ", expired", ": Empty ", ": Drifted ", ": Expired ", ": Underutilized "}

// tally holds the combined results of many histories.
type tally struct {
	sync.Mutex
	sold int
	// words holds the texts to look for in the traces, seen those that were found; failed is the lowest seed that
	// failed.
	words  []string
	seen   map[string]bool
	failed *uint64
}

func (y *tally) add(seed uint64, r *Result) {
	y.Lock()
	defer y.Unlock()
	y.sold += r.Sold
	for _, line := range r.Trace {
		for _, what := range y.words {
			if !y.seen[what] && strings.Contains(line, what) {
				y.seen[what] = true
			}
		}
	}
	if r.Failure != nil && (y.failed == nil || seed < *y.failed) {
		y.failed = &seed
	}
}

var (
	first     = flag.Uint64("first-history", 0, "number of the first history; 0 with KARPENTER_NIGHTLY for one that the date says")
	histories = flag.Uint64("histories", 0, "how many histories happen; 0 for 300, with KARPENTER_NIGHTLY 10000")
)

// TestHistories runs many histories, as many concurrently as there are processors. It prints the first that fails, as
// short as Shrink can make it, for testdata.
func TestHistories(t *testing.T) {
	first, seeds := chosen()
	all := play(t, first, seeds, happens)
	if all.sold < int(seeds) && seeds >= 300 {
		t.Errorf("%d machines were launched in %d histories: too few events to find anything", all.sold, seeds)
	}
	if seeds >= 300 {
		all.lacks(t)
	}
}

// play runs histories, as many concurrently as there are processors, and reports the first that fails. It searches
// the traces for the words.
func play(t *testing.T, first, seeds uint64, words []string) *tally {
	t.Helper()
	t.Logf("histories %d to %d", first, first+seeds-1)
	all, next := tally{words: words, seen: map[string]bool{}}, atomic.Uint64{}
	next.Store(first)
	end := first + seeds
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a history creates much garbage and retains little
	var running sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		running.Go(func() {
			for n := next.Add(1) - 1; n < end; n = next.Add(1) - 1 {
				seed := numbered(n)
				r := Run(NewHistory(seed), Production())
				if all.add(seed, r); r.Failure != nil {
					t.Logf("history %d, seed %d: %v\nagain: go test ./internal/testing/sim -run 'TestHistories$' -first-history %d -histories 1", n, seed, r.Failure, n)
				}
				if (n+1)%100 == 0 {
					t.Logf("%d histories of %d have started", n+1-first, seeds)
				}
			}
		})
	}
	running.Wait()
	if all.failed != nil {
		report(t, NewHistory(*all.failed))
	}
	return &all
}

// lacks reports the words that are in no trace.
func (y *tally) lacks(t *testing.T) {
	t.Helper()
	for _, what := range y.words {
		if !y.seen[what] {
			t.Errorf("no trace contains %q", what)
		}
	}
}

// chosen returns the first history and the number of histories. Every night has its own 10,000.
func chosen() (begin, count uint64) {
	begin, count = *first, *histories
	nightly := os.Getenv("KARPENTER_NIGHTLY") != ""
	switch {
	case count > 0:
	case nightly:
		count = 10_000
	default:
		count = 300
	}
	if day, _ := night(); nightly && begin == 0 {
		begin = day * 10_000
	}
	return begin, count
}

// night returns a number for the date, and whether this is a nightly run.
func night() (day uint64, nightly bool) {
	year, month, date := time.Now().UTC().Date()
	return uint64(year*10_000 + int(month)*100 + date), os.Getenv("KARPENTER_NIGHTLY") != ""
}

// numbered returns the seed of a history: every second history has pods with relations.
func numbered(n uint64) uint64 {
	switch {
	case n >= Preempting:
		return n
	case n%2 == 1:
		return n/2 + Related
	}
	return n / 2
}

// TestKnownHistories runs histories that once failed. They may pass for reasons other than the fix, because worlds
// have changed since. So each bug has a separate test beside the code that had it.
func TestKnownHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories in testdata (%v)", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			h, err := Parse(string(text))
			if err != nil {
				t.Fatal(err)
			}
			if r := Run(h, Production()); r.Failure != nil {
				t.Errorf("%v\n%s", r.Failure, strings.Join(r.Trace, "\n"))
			}
		})
	}
}

// FuzzHistory fuzzes seeds.
func FuzzHistory(f *testing.F) {
	f.Add(uint64(1 << 40))
	f.Fuzz(func(t *testing.T, seed uint64) {
		if Run(NewHistory(seed), Production()).Failure != nil {
			report(t, NewHistory(seed))
		}
	})
}

func report(t *testing.T, h History) {
	t.Helper()
	short := Shrink(h, Production(), 150)
	r := Run(short, Production())
	t.Errorf("%v\n\nThe history:\n\n%s\nThe trace:\n\n%s", r.Failure, short, strings.Join(r.Trace, "\n"))
}

// TestWideWorlds checks that all additional events of wide worlds occur, and that the properties hold.
func TestWideWorlds(t *testing.T) {
	seen := map[string]bool{"is rolled out as revision": false, "-- recreate": false, "-- throttle": false, "-- quota": false,
		"the clock of the controller is wrong": false, "the clock of the controller is right again": false}
	for seed := Wide; seed < Wide+18; seed++ {
		r := Run(NewHistory(seed), Production())
		if r.Failure != nil {
			report(t, NewHistory(seed))
		}
		for _, line := range r.Trace {
			for what := range seen {
				seen[what] = seen[what] || strings.Contains(line, what)
			}
		}
	}
	for what, happened := range seen {
		if !happened {
			t.Errorf("no trace contains %q", what)
		}
	}
}

// TestSameSeedSameTrace checks that a history depends only on itself.
func TestSameSeedSameTrace(t *testing.T) {
	for _, seed := range []uint64{0, 1, 2, 3, Wide, Wide + 1} {
		first, second := Run(NewHistory(seed), Production()), Run(NewHistory(seed), Production())
		if first.Hash() != second.Hash() {
			t.Fatalf("seed %d: the second run differs (-first +second):\n%s", seed, cmp.Diff(first.Trace, second.Trace))
		}
	}
}

// TestShrink checks that the shrunk history fails in the same property, and that no disturbance can be left out.
func TestShrink(t *testing.T) {
	bug, opts := planted["claims in flight are no nodes"], Production()
	bug.plant(&opts)
	opts.Skip = bug.skip
	for seed := range uint64(20) {
		h := NewHistory(seed)
		if Run(h, opts).Failure == nil {
			continue
		}
		short := Shrink(h, opts, 100)
		f := Run(short, opts).Failure
		if f == nil || f.Property != bug.property {
			t.Fatalf("the shrunk history fails with %v, want %q\n%s", f, bug.property, short)
		}
		for i := range short.Disturbances {
			shorter := History{Seed: short.Seed}
			for j, d := range short.Disturbances {
				if i != j {
					shorter.Disturbances = append(shorter.Disturbances, d)
				}
			}
			if f := Run(shorter, opts).Failure; f != nil && f.Property == bug.property {
				t.Errorf("still fails without %v:\n%s", short.Disturbances[i], short)
			}
		}
		return
	}
	t.Fatal("no history fails")
}

func TestHistoryText(t *testing.T) {
	h := NewHistory(7)
	again, err := Parse("# a comment\n\n" + h.String())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(h, again); diff != "" {
		t.Errorf("parsed (-written +read):\n%s", diff)
	}
	for text, want := range map[string]string{
		"seed 1\nnonsense":       `line 2: "nonsense" is neither`,
		"seed 1\n1s explode 0 0": `"explode" is no disturbance`,
		"soon crash 0 0":         "line 1: time of crash",
	} {
		if _, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q) = %v, want an error with %q", text, err, want)
		}
	}
}
