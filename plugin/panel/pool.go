package panel

import (
	"fmt"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/plugin/web/view"
)

// Launches returns what the pool may launch now by its own requirements: the types with an available offering, and the
// cheapest of these. Limits, quotas and what blocks the pool are not considered.
func Launches(pool *model.Pool) view.Launches {
	l := view.Launches{Zones: []string{}, CapacityTypes: []string{}}
	if pool.Types == nil || !pool.Valid {
		return l
	}
	offered, classes := pool.Types.Offered(pool.Start)
	types, least := pool.Types.Compatible(pool.Start), int64(0)
	types.AndWith(pool.Eligible)
	types.AndWith(offered)
	for t := range types.All() {
		l.Types++
		for _, i := range classes {
			c := &pool.Types.Classes[i]
			if !c.Types.Has(t) || c.Price[t] == model.NoPrice {
				continue
			}
			l.Zones, l.CapacityTypes = append(l.Zones, c.Zone), append(l.CapacityTypes, c.CapacityType)
			if price := c.Price[t]; least == 0 || price < least {
				least = price
				l.Cheapest = fmt.Sprintf("%s in %s as %s", pool.Types.Catalog.Types[t].Name, c.Zone, c.CapacityType)
			}
		}
	}
	l.Price = float64(least) / model.Nano
	for _, list := range []*[]string{&l.Zones, &l.CapacityTypes} {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	return l
}
