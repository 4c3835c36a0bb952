package sim

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// noteBackoff sets or removes a pool's backoff for a reason. Pools are part of the setting: the write is visible at
// once.
func (p *process) noteBackoff(name, uid, reason string, now *model.Backoff) bool {
	i := slices.IndexFunc(p.w.setting.pools, func(pool *model.PoolSpec) bool { return pool.Name == name && pool.UID == uid })
	if i < 0 {
		return true
	}
	pool := *p.w.setting.pools[i]
	kept := slices.DeleteFunc(slices.Clone(pool.Backoffs), func(b model.Backoff) bool { return b.Reason == reason })
	if now != nil {
		kept = append(kept, *now)
	}
	pool.Backoffs = kept
	p.w.setting.pools[i] = &pool
	return true
}
