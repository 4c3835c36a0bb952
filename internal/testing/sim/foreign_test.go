package sim

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// foreignTaint is a taint that neither a pool nor a pod mentions.
var foreignTaint = model.Taint{Key: "example.com/surprise", Effect: model.NoSchedule}

// TestForeignTaints covers machines that join with a taint that no object mentions, always or at random. The nodes
// are kept for an hour or removed at once. Four machines are launched for the pod, and one after each pause, so that
// there are at most ten per hour. Once a node without the taint joins, the pod runs.
func TestForeignTaints(t *testing.T) {
	for seed := range uint64(16) {
		rng := rand.New(rand.NewPCG(seed, 0xf0e1))
		w := loopOfLaunches(seed, false)
		w.calm = true
		w.setting.preemption.real[w.setting.daemons[0].UID] = amounts(100, gibi/8)
		share, always := 1+rng.IntN(3), rng.IntN(2) == 0
		pool := *w.setting.pools[0]
		pool.ConsolidateAfter = time.Duration(rng.IntN(2)) * time.Hour
		w.setting.pools[0] = &pool
		w.setting.foreign = func() (model.Taint, bool) { return foreignTaint, always || rng.IntN(4) < share }
		var before, most int
		for hour := range 4 {
			for w.failure == nil && w.next(epoch.Add(time.Duration(hour+1)*time.Hour)) {
			}
			launched := len(w.cloud.ledger)
			most, before = max(most, launched-before), launched
		}
		switch {
		case w.failure != nil:
			t.Errorf("seed %d: w.failure is %v, want nil, ), want at most 10, and 5 or more if all are tainted\n%s",
				seed, w.failure, strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
		case most > 10:
			t.Errorf("seed %d: most is %v, want at most 10, ), want at most 10, and 5 or more if all are tainted\n%s",
				seed, most, strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
		case always && before < 5:
			t.Errorf("seed %d: always && before < 5, machines per hour, %d, ), want at most 10, and 5 or more if all are tainted\n%s",
				seed, before, strings.Join(w.trace[:min(len(w.trace), 60)], "\n"))
		}
	}
}
