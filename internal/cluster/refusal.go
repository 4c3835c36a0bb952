package cluster

import (
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// refusal is why nothing is bought from a pool for a while; the zero value means there is none.
type refusal struct {
	why   string
	until time.Time
}

// Refuse tells that the API server refuses a claim of the pool, and would refuse it again: for Options.Refusal from the
// last snapshot nothing is bought from the pool, so that its pods go to another. A change of the pool ends that.
func (s *Store) Refuse(name, uid, why string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	p := s.pools[name]
	if p == nil || string(p.object.UID) != uid || s.at.Before(p.refusal.until) {
		return
	}
	p.refusal = refusal{why: why, until: s.at.Add(s.options.Refusal)}
	s.tellPool(name)
}

// block blocks a pool that is not blocked otherwise.
func (r refusal) block(spec *model.PoolSpec, now time.Time) {
	if spec.Blocked == nil && now.Before(r.until) {
		spec.Blocked = &model.Rejection{Field: "spec.template", Reason: "the API server refused a claim of the pool: " + r.why}
	}
}
