package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Wide is the first seed of worlds with more failures around the controller: pools of equal weight (here), rollouts
// of apps (rollout.go), an API server that refuses writes (refusal.go), clock jumps (skew.go). Their odd seeds have
// relations like those from Related on. Worlds with smaller seeds are unaffected.
const Wide = uint64(1) << 33

// related reports whether the pods of a world may have constraints on each other.
func related(seed uint64) bool {
	if seed >= Wide {
		return seed%2 == 1
	}
	return seed >= Related
}

// widely holds the disturbances that only wide worlds have.
var widely = []string{"rollout", "rollout", "recreate", "throttle", "quota", "clock"}

// widen adds the disturbances of wide worlds to a history. The clock jumps in only one of eight, because some
// properties cannot be checked then.
func widen(h *History, until time.Duration) {
	rng := rand.New(rand.NewPCG(h.Seed, 0x31de))
	what := widely
	if h.Seed/2%8 != 0 {
		what = slices.DeleteFunc(slices.Clone(widely), func(d string) bool { return d == "clock" })
	}
	for range 2 + rng.IntN(6) {
		at := time.Duration(rng.Int64N(int64(until) + 1)).Truncate(time.Millisecond)
		h.Disturbances = append(h.Disturbances, Disturbance{at, what[rng.IntN(len(what))], rng.IntN(1000), rng.IntN(1000)})
	}
}

// even gives all pools the same weight in half of the wide worlds: the price decides between them.
func (s *setting) even(seed uint64) {
	if seed < Wide || seed/16%2 == 1 {
		return
	}
	for _, p := range s.pools {
		p.Weight = 10
	}
}

// disturbWidely executes a disturbance of a wide world.
func (w *world) disturbWidely(d Disturbance) {
	a := w.setting.apps[d.Which%len(w.setting.apps)]
	switch d.What {
	case "rollout":
		w.rollOut(a)
	case "recreate":
		w.recreate(a)
	case "throttle":
		w.throttled = w.now.Add(time.Duration(2+d.Much%40) * time.Second)
	case "quota":
		w.quota = w.now.Add(time.Duration(5+d.Much%90) * time.Second)
	case "clock":
		w.jump(time.Duration(d.Much%1200-600) * time.Second)
	}
}
