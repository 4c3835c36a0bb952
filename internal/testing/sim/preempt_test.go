package sim

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestPreemptingHistories runs histories in worlds in which kube-scheduler preempts and daemons request more than
// their template.
func TestPreemptingHistories(t *testing.T) {
	first, histories := Preempting, uint64(24)
	if day, nightly := night(); nightly {
		first, histories = Preempting+day%1_000_000*1000, 1000
	}
	play(t, first, histories, []string{" preempts "}).lacks(t)
}

// loopOfLaunches returns a world with one pool of equal types and one app of one pod, which cannot share a node with
// the daemon: the daemon's template requests nothing, but its pods request nearly a whole node and preempt the pod.
func loopOfLaunches(seed uint64, unseen bool) *world {
	w := newWorld(Preempting+seed, Production())
	s := w.setting
	s.lag = 500 * time.Millisecond
	small, large := s.types[0], s.types[0]
	small.Name, large.Name = "small", "large"
	price := func(t *model.InstanceType, usd int64) {
		t.Requirements = slices.Clone(t.Requirements)
		for i := range t.Requirements {
			if t.Requirements[i].Key == model.LabelType {
				t.Requirements[i].Values = []string{t.Name}
			}
		}
		t.Offerings = slices.Clone(t.Offerings)
		for i := range t.Offerings {
			t.Offerings[i].Price, t.Offerings[i].Available = usd, true
		}
	}
	small.Capacity, small.Allocatable = amounts(2000, 8*gibi), amounts(1900, 7*gibi)
	large.Capacity, large.Allocatable = amounts(8000, 32*gibi), amounts(7900, 31*gibi)
	small.Capacity[2].Value, small.Allocatable[2].Value, large.Capacity[2].Value, large.Allocatable[2].Value = 20, 20, 20, 20
	price(&small, 1)
	price(&large, 4)
	s.types = []model.InstanceType{small, large}
	s.pools = s.pools[:1]
	pool := *s.pools[0]
	pool.Limits, pool.Taints, pool.Static, pool.Requirements, pool.ConsolidateAfter = nil, nil, false, exactly(map[string]string{model.LabelPool: pool.Name}), 0
	pool.Catalog = &model.Catalog{Types: s.types, WellKnown: wellKnown}
	s.pools[0] = &pool
	s.templates[pool.Name].expireAfter = 0
	s.daemons = s.daemons[:1]
	s.preemption.real[s.daemons[0].UID], s.preemption.unseen = amounts(1500, gibi), unseen
	for _, other := range s.apps {
		other.replicas = 0
	}
	a := s.apps[0]
	a.replicas, a.protected, a.disks = 1, 0, false
	a.pod = pod{app: a.name, requests: amounts(1000, gibi)}
	return w
}

// TestLoopOfLaunches covers a daemon that is larger than its template and preempts the pod that a node was launched
// for. If its pods are seen, the second node is large enough. If the controller never learns the requests, what the first
// nodes lack ends the loop: a larger type is launched.
func TestLoopOfLaunches(t *testing.T) {
	for _, c := range []struct {
		unseen      bool
		least, most int
	}{{false, 2, 3}, {true, 2, 5}} {
		w := loopOfLaunches(1, c.unseen)
		w.calm = true
		for w.failure == nil && w.next(epoch.Add(2*time.Hour)) {
		}
		if w.failure != nil {
			t.Errorf("unseen %t: %v", c.unseen, w.failure)
		}
		if sold := len(w.cloud.ledger); sold < c.least || sold > c.most {
			t.Errorf("unseen %t: %d machines in two hours, want %d to %d\n%s", c.unseen, sold, c.least, c.most, strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
		}
		if !slices.ContainsFunc(w.api.pods(), func(p *pod) bool { return !p.daemon && p.node != "" }) {
			t.Errorf("unseen %t: the pod does not run", c.unseen)
		}
	}
}
