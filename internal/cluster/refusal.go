package cluster

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// refusal pauses launches from a pool; the zero value means no pause.
type refusal struct {
	why   string
	until time.Time
}

// Refuse records that the API server refuses a claim of the pool, and would refuse it again. For Options.Refusal from
// the last snapshot no node is launched from the pool, so that its pods use another pool. A change of the pool ends
// the pause.
func (s *Store) Refuse(name, uid, why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p := s.pools[name]
	if p == nil || string(p.object.UID) != uid || s.at.Before(p.refusal.until) {
		return
	}
	p.refusal = refusal{why: why, until: s.at.Add(s.options.Refusal)}
	s.syncPool(name)
}

// block blocks a pool that is not blocked otherwise.
func (r refusal) block(spec *model.PoolSpec, now time.Time) {
	if spec.Blocked == nil && now.Before(r.until) {
		spec.Blocked = &model.Rejection{Field: "spec.template", Reason: "the API server refused a claim of the pool: " + r.why}
	}
}
