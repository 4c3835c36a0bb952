package sim

import (
	"math/rand/v2"
	"testing"
)

// TestDrawn counts the ingredients of worlds and histories: every kind of failure must be drawn often enough to
// occur.
func TestDrawn(t *testing.T) {
	const worlds = 400
	counts := map[string]int{}
	for seed := Wide; seed < Wide+worlds; seed++ {
		s := newSetting(seed, rand.New(rand.NewPCG(seed, 0x5eed)))
		count := func(what string, is bool) {
			if is {
				counts[what]++
			}
		}
		count("several pools of one weight", len(s.pools) > 1 && oneWeight(s))
		count("a LimitRange for daemons", s.limits != nil && s.limits.daemons && len(s.daemons) > 0)
		count("a LimitRange for applications", s.limits != nil && len(s.limits.apps) > 0)
		count("relations between pods", related(seed))
		drawn := map[string]bool{}
		for _, d := range NewHistory(seed).Disturbances {
			drawn[d.What] = true
		}
		for what := range drawn {
			counts[what]++
		}
	}
	least := map[string]int{
		"several pools of one weight": 100, "a LimitRange for daemons": 40, "a LimitRange for applications": 100, "relations between pods": 150,
		"clock":    20,                  // the clock of the controller jumps
		"recreate": 100, "rollout": 100, // pods are recreated under other names
		"throttle": 100, "quota": 100, // the API server refuses writes
		"limits": 100, "starve": 50, "ambush": 200,
	}
	for what, n := range least {
		if counts[what] < n {
			t.Errorf("%q is drawn in %d of %d worlds, want at least %d", what, counts[what], worlds, n)
		}
	}
	preempting := 0
	for seed := Preempting; seed < Preempting+worlds; seed++ {
		if newSetting(seed, rand.New(rand.NewPCG(seed, 0x5eed))).preemption != nil {
			preempting++
		}
	}
	if preempting != worlds {
		t.Errorf("kube-scheduler preempts in %d of %d worlds from Preempting on", preempting, worlds)
	}
}

func oneWeight(s *setting) bool {
	for _, p := range s.pools {
		if p.Weight != s.pools[0].Weight {
			return false
		}
	}
	return true
}
