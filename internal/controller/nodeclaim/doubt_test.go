package nodeclaim

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// A trouble is news for the first claim that has it and when the last one lost it, whatever others come and go.
func TestUnjudged(t *testing.T) {
	var u unjudged
	published := map[trouble]int{}
	publish := func(x trouble, n int) { published[x] = n }
	gone, silent, none := trouble{"general", causePool}, trouble{"general", causeProvider}, trouble{}
	for i, step := range []struct {
		claim      string
		now        trouble
		before     trouble
		left, have int
	}{
		{"a", gone, none, 0, 1},
		{"a", gone, gone, 1, 1},
		{"b", gone, none, 0, 2},
		{"a", silent, gone, 1, 1},
		{"b", none, gone, 0, 0},
		{"never seen", none, none, 0, 0},
	} {
		before, left, have := u.set(step.claim, step.now, publish)
		if before != step.before || left != step.left || have != step.have {
			t.Errorf("step %d: before %v, %d left, %d have it now; want %v, %d, %d", i, before, left, have, step.before, step.left, step.have)
		}
	}
	if diff := cmp.Diff(map[trouble]int{gone: 0, silent: 1}, published, cmp.AllowUnexported(trouble{})); diff != "" {
		t.Error(diff)
	}
}

func TestShelves(t *testing.T) {
	timers, now := controller.Production(), born.Time
	var s shelves
	reads := 0
	var fails error
	ask := func(pool *karpv1.NodePool, at time.Time, want int) {
		t.Helper()
		_, err := s.types(pool, at, timers, func() ([]cloud.InstanceType, error) { reads++; return nil, fails })
		if reads != want || !errors.Is(err, fails) {
			t.Errorf("%d readings, error %v; want %d, %v", reads, err, want, fails)
		}
	}
	pool, other := &karpv1.NodePool{}, &karpv1.NodePool{}
	pool.UID, other.UID = "1", "2"
	ask(pool, now, 1)
	ask(pool, now.Add(timers.Catalogue-1), 1)
	ask(other, now, 2)
	ask(pool, now.Add(timers.Catalogue), 3)
	pool.Generation = 7
	ask(pool, now.Add(timers.Catalogue), 4)
	fails, pool.Generation = errors.New("the cloud is silent"), 8
	ask(pool, now, 5)
	ask(pool, now.Add(timers.CatalogueRetry-1), 5)
	ask(pool, now.Add(timers.CatalogueRetry), 6)
}
