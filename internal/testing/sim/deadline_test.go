package sim

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// slowRollout returns a quiet world after ten minutes, in which a rollout begins: five nodes, one at a time, each
// with a pod that its PodDisruptionBudget protects for the whole grace period.
func slowRollout(t *testing.T, grace time.Duration) *world {
	t.Helper()
	w := quietWorld()
	w.related = true
	w.setting.pools[0].Budgets = []model.Budget{{Count: 1}}
	changed := &template{windows: make([]window, 1), grace: grace}
	w.setting.templates = map[string]*template{w.setting.pools[0].Name: changed}
	w.setting.apps[0].pod.relation = relation{key: model.LabelHostname, apart: "app"}
	w.api.create(&pdb{meta: meta{name: "pdb-of-app"}, app: "app", byMost: true})
	for w.failure == nil && w.next(epoch.Add(10*time.Minute)) {
	}
	if n := len(w.api.nodes()); n != 5 || w.failure != nil {
		t.Fatalf("%d nodes, %v", n, w.failure)
	}
	changed.generation++
	return w
}

// TestRolloutsTakeTheirTime checks that a rollout that budgets and grace periods slow down may take longer than the
// patience, which restarts with each node.
func TestRolloutsTakeTheirTime(t *testing.T) {
	w := slowRollout(t, 30*time.Minute)
	calm := w.now
	w.settle(calm.Add(patience))
	if w.failure != nil {
		t.Fatal(w.failure)
	}
	switch took := w.now.Sub(calm); {
	case took < patience:
		t.Errorf("took is %v, want at least %v", took, patience)
	case took > 3*patience:
		t.Errorf("took is %v, want at most %v", took, 3*patience)
	case w.outdated() > 0:
		t.Errorf("w.outdated() is %v, want at most 0", w.outdated())
	}
}

// TestNothingElseMovesTheDeadline checks that endless activity during a rollout fails when the patience after the
// last progress of the rollout has passed.
func TestNothingElseMovesTheDeadline(t *testing.T) {
	for name, c := range map[string]struct {
		// every runs once per minute; fewer is the number of claims by which the rollout progresses meanwhile.
		every func(*world)
		fewer int
	}{
		"writes": {func(w *world) {
			b := w.api.pdbs()[0]
			w.api.update(b.key(), b.uid, 0, func(object) {})
		}, 5},
		"claims that come and go": {func(w *world) {
			pool := w.setting.pools[0].Name
			for _, c := range w.api.claims() {
				if strings.HasPrefix(c.name, "stray") {
					w.api.markDeleted(c.key(), c.uid)
				}
			}
			// No pod gets onto its node: a pod that did would have to leave it again within a minute.
			w.api.create(&claim{meta: meta{name: fmt.Sprint("stray-", w.api.version)}, pool: pool, labels: map[string]string{},
				taints: []model.Taint{{Key: "stray", Effect: model.NoSchedule}}, generation: w.setting.templates[pool].generation - 1})
		}, 5},
		"rollout after rollout": {func(w *world) { w.setting.templates[w.setting.pools[0].Name].generation++ }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := slowRollout(t, time.Minute)
			w.opts.Skip = []string{Settles, NothingInVain}
			unpaused(&w.opts) // a pause would end the rollouts
			calm, left, last := w.now, w.outdated(), w.now
			var again func()
			again = func() {
				w.after(time.Minute, again)
				c.every(w)
			}
			w.after(0, again)
			var watch func()
			watch = func() {
				w.after(time.Second, watch)
				if n := w.outdated(); n < left {
					left, last = n, w.now
				}
				if w.now.Sub(calm) > 3*patience {
					w.check.fail("ends", "the deadline was moved again and again")
				}
			}
			w.after(0, watch)
			w.settle(calm.Add(patience))
			if w.failure == nil || w.failure.Property != ComesToRest {
				t.Fatalf("%v, want %q to fail", w.failure, ComesToRest)
			}
			if early := w.now.Sub(last.Add(patience)); early > 0 || early < -time.Second {
				t.Errorf("failed %v after the calm began, the last progress was %v after it", w.now.Sub(calm), last.Sub(calm))
			}
			if fewer := 5 - left; fewer != c.fewer {
				t.Errorf("the rollout progressed by %d claims, want %d", fewer, c.fewer)
			}
		})
	}
}
