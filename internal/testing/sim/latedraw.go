package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Late is the first seed of wide worlds in which something is late; the range ends before Combined. A sixth of the
// worlds from LateNights on (nightly runs from December 2026) are like that too.
const (
	Late       = uint64(1) << 36
	LateNights = uint64(202_612_010_000)
)

// lastLate is how long what is late continues after the last disturbance.
const lastLate = 20 * time.Minute

// belatedly reports whether something is late in a world.
func belatedly(seed uint64) bool {
	return seed >= Late && seed < Combined || seed >= LateNights && seed%6 == 1
}

// delay draws what is late in a world. It uses its own random numbers.
func (s *setting) delay(seed uint64) {
	if !belatedly(seed) {
		return
	}
	rng := rand.New(rand.NewPCG(seed, 0x1a7e))
	s.late = &late{priority: int32(rng.IntN(2) * 1000), short: map[string]int64{}}
	pool := func() string { return s.pools[rng.IntN(len(s.pools))].Name }
	after := func() time.Duration { return time.Duration(rng.IntN(3)*rng.IntN(60)) * time.Second }
	for draw := seed % 7; ; draw = rng.Uint64N(7) {
		switch draw {
		case 0:
			s.late.marks = append(s.late.marks, mark{label: "example.com/found", value: "yes", pool: pool(), after: after()})
			d := s.lateDaemonSet(rng, "found", exactly(map[string]string{"example.com/found": "yes"}))
			s.late.daemons = append(s.late.daemons, lateDaemon{daemon: d})
		case 1:
			m := mark{taint: model.Taint{Key: "example.com/late", Effect: model.NoSchedule}, pool: pool(), after: after()}
			m.lasts = time.Duration(rng.IntN(2)*(5+rng.IntN(120))) * time.Second
			s.late.marks = append(s.late.marks, m)
		case 2:
			s.late.daemons = append(s.late.daemons, lateDaemon{time.Duration(rng.IntN(600)) * time.Second, s.lateDaemonSet(rng, "created", nil)})
		case 3:
			s.late.flips = append(s.late.flips, flip{pool: pool(), every: time.Duration(2+rng.IntN(10)) * time.Second})
		case 4:
			s.late.short[s.types[rng.IntN(len(s.types))].Name] = 30 + rng.Int64N(65)
		case 5:
			name := fmt.Sprintf("buffer-%d", len(s.late.buffers))
			s.late.buffers = append(s.late.buffers, buffer{name, 1 + rng.IntN(3), amounts(500+rng.Int64N(1500), gibi)})
		case 6:
			s.shortLived(rng)
		}
		if rng.IntN(2) == 0 {
			return
		}
	}
}

// lateDaemonSet returns a DaemonSet for nodes with the labels.
func (s *setting) lateDaemonSet(rng *rand.Rand, name string, on []label.Requirement) model.DaemonSpec {
	name = fmt.Sprintf("%s-%d", name, len(s.late.daemons))
	d := model.DaemonSpec{UID: name, Namespace: "kube-system", Name: name, Requests: amounts(100+rng.Int64N(700), gibi/8),
		Tolerations: []model.Toleration{{Exists: true}}}
	if on != nil {
		d.Alternatives = [][]label.Requirement{on}
	}
	return d
}

// shortLived makes an app a CronJob, or its pods bare.
func (s *setting) shortLived(rng *rand.Rand) {
	a := s.apps[rng.IntN(len(s.apps))]
	switch {
	case a.disks || a.pod.relation != (relation{}):
	case rng.IntN(2) == 0:
		a.pod.bare = true
	default:
		a.every = time.Duration(1+rng.IntN(3)) * time.Minute
	}
}
