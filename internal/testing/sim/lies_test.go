package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/testing/sim/removals"
)

// doubted holds texts that must occur in the traces of worlds whose cloud gives wrong replies.
var doubted = []string{"the cloud misses", "the cloud halves", "the cloud repeats", "the cloud foreign", "the cloud old", "the cloud blind",
	"the cloud fails", "the cloud searches", "falls silent", "reports again", "has a condition that calls for repair", "is well again",
	"involuntary removals are paused", "involuntary removals resume", "kept machines that belong to no claim", "end leaked",
	"deleted a claim whose machine is gone", "deleted a claim whose node is unhealthy", "the operator allows the removals"}

// TestDoubtfulHistories runs histories in worlds whose cloud gives wrong replies, and whose removals pass through the
// production garbage collector, node repair and limiter.
func TestDoubtfulHistories(t *testing.T) {
	wide, ordinary := uint64(24), uint64(4)
	if _, nightly := night(); nightly {
		wide, ordinary = 200, 100
	}
	words, lied := map[string]bool{}, uint64(0)
	for _, from := range []struct{ seed, histories uint64 }{{Wide, wide}, {Witnessed, ordinary}} {
		for seed, played := from.seed, uint64(0); played < from.histories; seed++ {
			if !doubtful(seed) {
				continue
			}
			played++
			r := Run(NewHistory(seed), Production())
			if r.Failure != nil {
				report(t, NewHistory(seed))
			}
			for _, what := range doubted {
				words[what] = words[what] || slices.ContainsFunc(r.Trace, func(line string) bool { return strings.Contains(line, what) })
			}
		}
		lied += from.histories
	}
	for _, what := range doubted {
		if !words[what] {
			t.Errorf("no trace in %d histories contains %q", lied, what)
		}
	}
}

// wrong is the view of a world by controllers with a bug.
type wrong struct {
	removals.World
	deaf, unlimited, idle, stuck, hasty bool
}

// Renewed and Nodes hide what nodes report, or let their conditions begin too early.
func (w wrong) Renewed(node string) time.Time {
	if w.deaf {
		return time.Time{}
	}
	return w.World.Renewed(node)
}

func (w wrong) Nodes(live bool) []removals.Node {
	nodes := w.World.Nodes(live)
	for i := range nodes {
		if w.deaf {
			nodes[i].Ready = "Unknown"
		}
		if w.hasty && !nodes[i].Ill.IsZero() {
			nodes[i].Ill = nodes[i].Ill.Add(-removals.IllTolerated)
		}
	}
	return nodes
}

// Pools allows all removals.
func (w wrong) Pools() []removals.Pool {
	pools := w.World.Pools()
	for i := range pools {
		if w.unlimited {
			pools[i].Annotations[karpv1.AnnotationRemovalsAllowedUntil] = w.Clock().Add(-w.Ahead()).Add(time.Hour).Format(time.RFC3339)
		}
	}
	return pools
}

// DeleteClaim does nothing.
func (w wrong) DeleteClaim(c removals.Claim) error {
	if w.idle {
		return removals.ErrConflict
	}
	return w.World.DeleteClaim(c)
}

// AnnotatePool writes pauses that do not end.
func (w wrong) AnnotatePool(name string, annotations map[string]*string) error {
	if text := annotations[karpv1.AnnotationPauses]; w.stuck && text != nil {
		list := pause.Parse(*text)
		for i := range list {
			list[i].Until = list[i].At.AddDate(1, 0, 0)
		}
		annotations[karpv1.AnnotationPauses] = new(list.Text())
	}
	return w.World.AnnotatePool(name, annotations)
}

// TestPlantedRemovals checks that the properties of involuntary removals detect bugs.
func TestPlantedRemovals(t *testing.T) {
	for property, mistake := range map[string]wrong{
		SecondLook:      {deaf: true},
		OnlyTheIll:      {hasty: true},
		FewAtATime:      {unlimited: true},
		ReplacedSoon:    {idle: true},
		ResumesByItself: {stuck: true},
	} {
		t.Run(property, func(t *testing.T) {
			opts := Production()
			opts.Removals = func(w removals.World) removals.World {
				mistaken := mistake
				mistaken.World = w
				return mistaken
			}
			for seed, played := Wide, 0; played < 60; seed++ {
				if !doubtful(seed) {
					continue
				}
				played++
				if f := Run(NewHistory(seed), opts).Failure; f != nil && f.Property == property {
					return
				}
			}
			t.Errorf("no history fails in %q", property)
		})
	}
}

// TestPlantedProvision checks that a controller that stops launching while the cloud gives wrong replies is detected.
func TestPlantedProvision(t *testing.T) {
	opts := Production()
	opts.Skip = []string{Audited, Deterministic, Idempotent}
	opts.Schedule = func(snap *model.Snapshot, last *plan.Provision) *plan.Provision {
		decided := schedule(snap, last)
		if snap.Now.Sub(epoch) > time.Minute {
			decided.Claims = nil
		}
		return decided
	}
	for seed, played := Wide, 0; played < 100; seed++ {
		if !doubtful(seed) {
			continue
		}
		played++
		if f := Run(NewHistory(seed), opts).Failure; f != nil && f.Property == ProvisionsOn {
			return
		}
	}
	t.Errorf("no history fails in %q", ProvisionsOn)
}
