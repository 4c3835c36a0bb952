package spotshare

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Exceeded returns the greatest part of the pool's spot capacity, in percent rounded up, that one type in one
// zone has, among those that exceed their share by a whole node; 0 when there is none. A share that was met at launch
// can be exceeded when other nodes are removed. decided are claims that are not in the snapshot.
func Exceeded(snap *model.Snapshot, pool string, decided []plan.NewClaim) int64 {
	p := snap.Pool(pool)
	if p == nil {
		return 0
	}
	s := Of(snap, p, decided)
	if s == nil || s.whole <= 0 {
		return 0
	}
	var worst int64
	for at, load := range s.load {
		if (load-cpuOf(p, at.kind))*100 >= s.percent*s.whole {
			worst = max(worst, (load*100+s.whole-1)/s.whole)
		}
	}
	return worst
}

// Largest is a type in a zone with its part of a pool's spot capacity.
type Largest struct {
	Type, Zone string
	Percent    int64 // rounded up
}

// LargestOf returns the type in a zone that will have the most of the pool's spot capacity when each of the
// claims becomes its cheapest option; of equals the first by name. It is false where the pool has no share limit or no
// spot capacity.
func LargestOf(snap *model.Snapshot, pool string, claims []plan.NewClaim) (Largest, bool) {
	p := snap.Pool(pool)
	if p == nil {
		return Largest{}, false
	}
	claims = slices.Clone(claims)
	for i := range claims {
		claims[i].Options = claims[i].Options[:min(1, len(claims[i].Options))]
	}
	s := Of(snap, p, claims)
	if s == nil || s.whole <= 0 {
		return Largest{}, false
	}
	var worst Largest
	for at, load := range s.load {
		one := Largest{p.Types.Catalog.Types[at.kind].Name, at.zone, min(100, (load*100+s.whole-1)/s.whole)}
		if one.Percent > worst.Percent || one.Percent == worst.Percent && cmp.Or(cmp.Compare(one.Type, worst.Type),
			cmp.Compare(one.Zone, worst.Zone)) < 0 {
			worst = one
		}
	}
	return worst, true
}
