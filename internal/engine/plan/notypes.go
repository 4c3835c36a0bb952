package plan

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// NoTypes returns which of a pool's own requirements excludes every instance type. It is OK when types remain, when the
// requirements contradict each other (PoolContradiction reports that), and when the types are unknown. If several
// requirements exclude every type on their own, the first in the pool is reported. If none does, the result is the
// requirement that excludes the last type after those before it. Current availability is ignored. Zones and
// capacity types are labels of offerings, not of types: a requirement that allows none of any offering excludes every
// type as well.
func NoTypes(snap *model.Snapshot, pool *model.Pool) Verdict {
	if !pool.Valid || pool.Types == nil || pool.Types.Len() == 0 {
		return Verdict{}
	}
	if !pool.Eligible.Empty() {
		return offerless(snap, pool)
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
			return Verdict{Code: NoCompatibleInstanceTypes, Key: k, Types: total, Have: int64(total)}
		}
		if before := left.Count(); before > 0 && !pool.Types.Narrow(left, pool.Start, k) {
			last = Verdict{Code: NoCompatibleInstanceTypes, Key: k, Types: before, Have: int64(total)}
		}
	}
	if last.OK() { // a label that the pool does not name, and that every type has
		return Verdict{Code: NoCompatibleInstanceTypes, Key: unnamed(snap, pool), Types: total, Have: int64(total)}
	}
	return last
}

// offerless returns the verdict about a pool whose requirement allows no zone, or no capacity type, of any offering. It
// is OK where one is allowed or none is known.
func offerless(snap *model.Snapshot, pool *model.Pool) Verdict {
	zone := func(o *model.Offering) string { return o.Zone }
	capacityType := func(o *model.Offering) string { return o.CapacityType }
	if v := withoutOffering(snap, pool, model.LabelZone, zone); !v.OK() {
		return v
	}
	return withoutOffering(snap, pool, model.LabelCapacityType, capacityType)
}

func withoutOffering(snap *model.Snapshot, pool *model.Pool, name string, value func(*model.Offering) string) Verdict {
	key, known := snap.Space.Lookup(name)
	named := func(r label.Requirement) bool { return label.Canonical(r.Key) == name }
	if !known || pool.Catalog == nil || !slices.ContainsFunc(pool.Requirements, named) {
		return Verdict{}
	}
	none := true
	for i := range pool.Catalog.Types {
		for k := range pool.Catalog.Types[i].Offerings {
			if snap.Space.HasAtom(pool.Start, key, snap.Space.Atom(key, value(&pool.Catalog.Types[i].Offerings[k]))) {
				return Verdict{}
			}
			none = false
		}
	}
	if none {
		return Verdict{}
	}
	total := pool.Types.Len()
	return Verdict{Code: NoCompatibleInstanceTypes, Key: key, Types: total, Have: int64(total)}
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
