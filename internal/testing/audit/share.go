package audit

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// sharing holds the spot capacity of a pool: the possible capacity by type and zone, and the certain total.
type sharing struct {
	cpu   map[string]int64
	nodes map[string]int
	whole int64
}

// wholeShare is the share that limits nothing, in percent.
const wholeShare = 100

// spotShares checks that, whatever the cloud selects, each type in a zone that a claim may use has at most one spot
// node or at most its share of the pool's spot capacity.
func (j *judge) spotShares(claims []plan.NewClaim) {
	for _, pool := range j.snap.Pools {
		if pool.MaxSpotShare <= 0 || pool.MaxSpotShare >= wholeShare {
			continue
		}
		s := j.sharingOf(pool)
		var launched []map[string]bool
		var names []string
		for i := range claims {
			if claims[i].Pool == pool.Name {
				launched = append(launched, s.add(j.outcomesOf(&claims[i], pool.PoolSpec.Catalog)))
				names = append(names, claims[i].Name)
			}
		}
		for i, places := range launched {
			for place := range places {
				if s.nodes[place] > 1 && s.cpu[place]*100 > pool.MaxSpotShare*s.whole {
					j.blame("share", names[i], "may become %s, which then may have %d of %d millicores of spot, of %d%%", place, s.cpu[place], s.whole, pool.MaxSpotShare)
					break
				}
			}
		}
	}
}

func (j *judge) sharingOf(pool *model.Pool) *sharing {
	s := &sharing{cpu: map[string]int64{}, nodes: map[string]int{}}
	for _, n := range j.snap.Nodes {
		switch {
		case n.Pool != pool.Name || n.Deleting:
		case n.Stage == model.Launching:
			_, outcomes := j.inFlightOutcomes(n)
			s.add(outcomes)
		case n.Labels[model.LabelCapacityType] == "spot":
			place, cpu := n.Labels[model.LabelType]+" in "+n.Labels[model.LabelZone], amountsOf(n.Capacity)["cpu"]
			s.cpu[place] += cpu
			s.nodes[place]++
			s.whole += cpu
		}
	}
	return s
}

// add counts a node that becomes one of the outcomes, and returns the types and zones in which it may be spot.
func (s *sharing) add(outcomes []outcome) map[string]bool {
	places := map[string]bool{}
	least, certain := int64(0), len(outcomes) > 0
	for _, o := range outcomes {
		if o.offering.CapacityType != "spot" {
			certain = false
			continue
		}
		cpu := amountsOf(o.kind.Capacity)["cpu"]
		if least == 0 || cpu < least {
			least = cpu
		}
		if place := o.kind.Name + " in " + o.offering.Zone; !places[place] {
			places[place] = true
			s.cpu[place] += cpu
			s.nodes[place]++
		}
	}
	if certain {
		s.whole += least
	}
	return places
}
