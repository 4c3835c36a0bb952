package world_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/internal/controller/provision"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/testing/world"
)

var (
	first     = flag.Uint64("first-history", 0, "number of the first history")
	histories = flag.Uint64("histories", 20, "how many histories happen")
)

// TestHistories plays random histories, as many concurrently as there are processors.
func TestHistories(t *testing.T) {
	var next atomic.Uint64
	var playing sync.WaitGroup
	next.Store(*first)
	for range runtime.GOMAXPROCS(0) {
		playing.Go(func() {
			for seed := next.Add(1) - 1; seed < *first+*histories; seed = next.Add(1) - 1 {
				h := world.NewHistory(seed)
				if trace, err := h.Run(nil); err != nil {
					report(t, h, trace, err)
				}
			}
		})
	}
	playing.Wait()
}

func report(t *testing.T, h world.History, trace []string, err error) {
	t.Helper()
	t.Errorf("%v\n\nThe history:\n\n%s\nIts end:\n\n%s", err, h, strings.Join(trace[max(0, len(trace)-60):], "\n"))
}

// TestKnownHistories plays histories in files, such as those that once failed.
func TestKnownHistories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no histories in testdata (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		h, err := world.Parse(string(text))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if trace, err := h.Run(nil); err != nil {
			t.Errorf("%s: %v\n%s", file, err, strings.Join(trace, "\n"))
		}
	}
}

// TestSameHistorySameTrace checks that a history depends only on itself.
func TestSameHistorySameTrace(t *testing.T) {
	h := world.History{Seed: 3, Features: world.Features()}
	one, _ := h.Run(nil)
	two, _ := h.Run(nil)
	if diff := cmp.Diff(one, two); diff != "" {
		t.Errorf("the second run differs (-first +second):\n%s", diff)
	}
	if !slices.ContainsFunc(one, func(line string) bool { return strings.Contains(line, "crashes before") }) {
		t.Error("no process ended")
	}
}

// TestParse reads the text of a history, and refuses others.
func TestParse(t *testing.T) {
	want := world.NewHistory(7)
	if got, err := world.Parse(want.String()); err != nil || cmp.Diff(want, got) != "" {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, text := range []string{"seed: x", "features: late soon", "pods: 3"} {
		if _, err := world.Parse(text); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
}

// TestPlantedBugs plants bugs in the loops, and checks that a property detects each.
func TestPlantedBugs(t *testing.T) {
	for name, bug := range map[string]struct {
		want  string
		plant func(*world.Parts)
	}{
		"every third pass creates the first claim again": {"buys without end", func(p *world.Parts) {
			p.Provision.Writer = &stubborn{Writer: p.Provision.Writer}
		}},
		"nothing is proposed": {"overlooked", func(p *world.Parts) {
			p.Disrupt.Propose = func(*model.Snapshot, bool) disruption.Proposal { return disruption.Proposal{} }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(20) {
				if _, err := world.NewHistory(seed).Run(bug.plant); err != nil {
					if !strings.HasPrefix(err.Error(), bug.want) {
						t.Errorf("seed %d: detected by %v, want %q", seed, err, bug.want)
					}
					return
				}
			}
			t.Error("not detected")
		})
	}
}

// stubborn creates the first claim again in every third pass, under another name.
type stubborn struct {
	provision.Writer

	first *plan.NewClaim
	made  int
}

func (s *stubborn) Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) execute.Provisioned {
	done := s.Writer.Provision(ctx, newest, p)
	if s.first == nil && len(done.Plan.Claims) > 0 {
		s.first = &done.Plan.Claims[0]
	}
	if s.made++; s.first != nil && s.made%3 == 0 {
		again := *s.first
		again.Name = fmt.Sprintf("%s-%d", again.Name, s.made)
		s.Do(ctx, []plan.Action{plan.CreateClaim{NewClaim: again, Reason: "provisioned"}})
	}
	return done
}
