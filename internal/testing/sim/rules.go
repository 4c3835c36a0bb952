package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// labelApp is the label by which PodDisruptionBudgets select their pods.
const labelApp = "app"

// someRules sets the disruption settings of a pool.
func someRules(rng *rand.Rand, i int, p *model.PoolSpec) {
	p.Policy = []string{"WhenEmptyOrUnderutilized", "WhenEmpty", "Balanced"}[max(0, rng.IntN(8)-5)]
	p.Payback = []time.Duration{0, -1, -1, time.Minute, time.Minute, 5 * time.Minute}[rng.IntN(6)]
	p.MovePrice = []int64{0, -1, model.Nano / 10_000}[rng.IntN(3)]
	if rng.IntN(5) == 0 {
		p.MinSaving = model.Nano / 50
	}
	if i > 0 && rng.IntN(4) == 0 {
		p.Static, p.Replicas, p.Blocked = true, int64(rng.IntN(4)), model.StaticBlock()
	}
}

// someTemplate returns the lifetimes of a pool's claims and the windows of its budgets.
func someTemplate(rng *rand.Rand, p *model.PoolSpec) *template {
	t := &template{windows: make([]window, len(p.Budgets))}
	if rng.IntN(4) == 0 {
		t.expireAfter = time.Duration(4+rng.IntN(16)) * time.Minute
	}
	if rng.IntN(3) == 0 {
		t.grace = time.Duration(20+rng.IntN(200)) * time.Second
	}
	if rng.IntN(3) == 0 {
		every := time.Duration(2+rng.IntN(4)) * time.Minute
		p.Budgets = append(p.Budgets, model.Budget{Count: int64(rng.IntN(2))})
		t.windows = append(t.windows, window{every, every * time.Duration(1+rng.IntN(3)) / 4})
	}
	return t
}

// roll opens and closes the windows of budgets that are due. All processes use the same clock for this.
func (s *setting) roll(now time.Time) {
	for i, p := range s.pools {
		due := false
		for j, w := range s.templates[p.Name].windows {
			due = due || w.every > 0 && !p.Budgets[j].Changes.After(now)
		}
		if !due {
			continue
		}
		next := *p
		next.Budgets = slices.Clone(p.Budgets)
		for j, w := range s.templates[p.Name].windows {
			if w.every > 0 {
				next.Budgets[j].Inactive, next.Budgets[j].Changes = w.at(now)
			}
		}
		s.replace(i, &next, now)
	}
}

// at reports whether the window is closed, and when that changes.
func (w window) at(now time.Time) (closed bool, changes time.Time) {
	since := now.Sub(epoch) % w.every
	if since < w.open {
		return false, now.Add(w.open - since)
	}
	return true, now.Add(w.every - since)
}

// replace changes a pool, and records its previous spec.
func (s *setting) replace(i int, fresh *model.PoolSpec, now time.Time) {
	s.past = append(s.past, formerPool{s.pools[i], now})
	s.pools[i] = fresh
}

// somePDB returns a PodDisruptionBudget for a third of the apps.
func somePDB(rng *rand.Rand, a *app) *pdb {
	b := &pdb{meta: meta{name: "pdb-of-" + a.name}, app: a.name, always: rng.IntN(2) == 0}
	switch rng.IntN(9) {
	case 0:
		b.least = 1 + rng.IntN(4)
	case 1:
		b.byMost, b.most = true, 1+rng.IntN(3)
	case 2:
		b.byMost = true // no pod may be unavailable
	default:
		return nil
	}
	return b
}

func (b *pdb) String() string {
	if b.byMost {
		return fmt.Sprintf("%s: at most %d unavailable", b.name, b.most)
	}
	return fmt.Sprintf("%s: at least %d available", b.name, b.least)
}

// pdbSpec returns what cluster/convert returns for it.
func pdbSpec(b *pdb) model.PDBSpec {
	return model.PDBSpec{UID: b.uid, Namespace: "default", Name: b.name, Allowed: int64(b.status.allowed), AlwaysEvictUnready: b.always,
		Healthy: b.status.desired > 0 && b.status.healthy >= b.status.desired, Blocking: b.byMost && b.most == 0, Full: b.status.expected > 0 && b.status.desired >= b.status.expected,
		Selector: model.Selector{Namespaces: []string{"default"},
			Requirements: []label.Requirement{{Key: labelApp, Operator: label.In, Values: []string{b.app}}}}}
}

// lets reports whether the eviction API allows the eviction of the pod, given the status of the PodDisruptionBudget.
func (b *pdb) lets(p *pod) bool {
	if !p.ready && (b.always || b.status.desired > 0 && b.status.healthy >= b.status.desired) {
		return true
	}
	return b.status.allowed > 0
}

// recount simulates the disruption controller of Kubernetes: it updates the status of PodDisruptionBudgets with a
// small delay.
func (w *world) recount() {
	w.after(w.between(300*time.Millisecond, 1500*time.Millisecond), w.recount)
	if w.recounted == w.api.version {
		return
	}
	pods := w.api.pods()
	for _, b := range w.api.pdbs() {
		if fresh := w.statusOf(b, pods); fresh != b.status {
			w.api.update(b.key(), b.uid, 0, func(o object) { o.(*pdb).status = fresh })
		}
	}
	w.recounted = w.api.version
}

func (w *world) statusOf(b *pdb, pods []*pod) pdbStatus {
	var s pdbStatus
	for _, p := range pods {
		if p.app == b.app && !p.daemon {
			s.expected++
			if p.ready && p.deleting.IsZero() {
				s.healthy++
			}
		}
	}
	s.desired = b.least
	if b.byMost {
		s.expected = w.setting.app(b.app).replicas
		s.desired = max(0, s.expected-b.most)
	}
	s.allowed = max(0, s.healthy-s.desired)
	return s
}

// evict simulates the eviction API. It returns false if a PodDisruptionBudget prevents the eviction.
func (w *world) evict(name, uid string) bool {
	p := w.api.pod(name)
	if p == nil || p.uid != uid || !p.deleting.IsZero() {
		return true
	}
	for _, b := range w.api.pdbs() {
		if b.app != p.app {
			continue
		}
		if !b.lets(p) {
			return false
		}
		if p.ready && b.status.allowed > 0 {
			w.api.update(b.key(), b.uid, 0, func(o object) { o.(*pdb).status.allowed-- })
		}
	}
	w.check.evicted(p)
	w.check.moves(p)
	w.check.movedEarly(p)
	w.deletePod(p)
	return true
}

// app returns the app with the name.
func (s *setting) app(name string) *app {
	for _, a := range s.apps {
		if a.name == name {
			return a
		}
	}
	return nil
}
