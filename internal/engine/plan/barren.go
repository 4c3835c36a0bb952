package plan

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Barren returns which of a pool's own requirements excludes every instance type. It is OK when types remain, when the
// requirements contradict each other (PoolContradiction reports that), and when the types are unknown. If several
// requirements exclude every type on their own, the first in the pool is reported. If none does, the result is the
// requirement that excludes the last type after those before it. Current availability is ignored. Zones are labels of
// offerings, not of types: a requirement that allows no zone of any offering excludes every type as well.
func Barren(snap *model.Snapshot, pool *model.Pool) Verdict {
	if !pool.Valid || pool.Types == nil || pool.Types.Len() == 0 {
		return Verdict{}
	}
	if !pool.Eligible.Empty() {
		return zoneless(snap, pool)
	}
	total := pool.Types.Len()
	left := bitset.Full(total)
	var last Verdict
	asked := map[label.Key]bool{}
	for _, r := range pool.Requirements {
		k, known := snap.Space.Lookup(r.Key)
		if !known || asked[k] {
			continue
		}
		asked[k] = true
		if alone := bitset.Full(total); !pool.Types.Narrow(alone, pool.Start, k) {
			return Verdict{Code: PoolBarren, Key: k, Types: total, Have: int64(total)}
		}
		if before := left.Count(); before > 0 && !pool.Types.Narrow(left, pool.Start, k) {
			last = Verdict{Code: PoolBarren, Key: k, Types: before, Have: int64(total)}
		}
	}
	if last.OK() { // a label that the pool does not name, and that every type has
		return Verdict{Code: PoolBarren, Key: unnamed(snap, pool), Types: total, Have: int64(total)}
	}
	return last
}

// zoneless returns the verdict about a pool whose requirement allows no zone of any offering. It is OK where a zone is
// allowed or none is known.
func zoneless(snap *model.Snapshot, pool *model.Pool) Verdict {
	key, known := snap.Space.Lookup(model.LabelZone)
	zonal := func(r label.Requirement) bool { return label.Canonical(r.Key) == model.LabelZone }
	if !known || pool.Catalog == nil || !slices.ContainsFunc(pool.Requirements, zonal) {
		return Verdict{}
	}
	none := true
	for i := range pool.Catalog.Types {
		for k := range pool.Catalog.Types[i].Offerings {
			zone := pool.Catalog.Types[i].Offerings[k].Zone
			if snap.Space.HasAtom(pool.Start, key, snap.Space.Atom(key, zone)) {
				return Verdict{}
			}
			none = false
		}
	}
	if none {
		return Verdict{}
	}
	total := pool.Types.Len()
	return Verdict{Code: PoolBarren, Key: key, Types: total, Have: int64(total)}
}

// unnamed returns the first key that excludes every type although no requirement names it.
func unnamed(snap *model.Snapshot, pool *model.Pool) label.Key {
	left := bitset.Full(pool.Types.Len())
	for k := range label.Key(snap.Space.Len()) {
		if !pool.Types.Narrow(left, pool.Start, k) {
			return k
		}
	}
	return 0
}
