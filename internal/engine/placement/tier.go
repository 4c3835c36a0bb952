package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Pools of equal weight. The configuration prefers none of them, so the price decides. A route determines which lots go
// to which market, and in which order: all to one market first and the rest to the others, for each market in turn, or
// each lot to its cheapest market. Each route is tried with a simple packing, and the cheapest route is then packed
// thoroughly. Routes of equal cost are decided by the pools' names, the last first. If there is too much to try, each
// lot goes to its cheapest market: then there are enough pods to fill the nodes of each.

// leg is a part of a route.
type leg struct {
	market *market
	lots   []*lot
}

// mostFirst is how many markets of a tier are tried as the first one, by the cost of all pods there.
const mostFirst = 4

// tiers groups the markets by weight.
func (r *run) tiers() [][]*market {
	var list [][]*market
	for from, m := range r.pools {
		if from == 0 || m.pool.Weight != r.pools[from-1].pool.Weight {
			list = append(list, nil)
		}
		list[len(list)-1] = append(list[len(list)-1], m)
	}
	return list
}

// route determines how the lots with remaining pods are distributed over markets of one weight.
func (r *run) route(tier []*market, lots []*lot) []leg {
	plain := straight(tier, lots)
	tier = slices.DeleteFunc(slices.Clone(tier), func(m *market) bool { return !m.open() })
	lots = slices.DeleteFunc(slices.Clone(lots), func(l *lot) bool { return len(l.left) == 0 })
	if len(tier) < 2 || len(lots) == 0 {
		return plain
	}
	rates := r.rates(tier, lots)
	routes := [][]leg{straight(tier, lots)}
	for _, first := range rates.cheapest() {
		if first != tier[0] {
			rest := slices.DeleteFunc(slices.Clone(tier), func(m *market) bool { return m == first })
			routes = append(routes, straight(append([]*market{first}, rest...), lots))
		}
	}
	apart := rates.apart()
	if len(apart) > len(tier)+1 { // more than one market is the cheapest of some lot
		routes = append(routes, apart)
	}
	if len(routes) == 1 {
		return plain
	}
	return r.cheapestRoute(tier, lots, routes, apart)
}

func straight(markets []*market, lots []*lot) []leg {
	legs := make([]leg, len(markets))
	for i, m := range markets {
		legs[i] = leg{m, lots}
	}
	return legs
}

// cheapestRoute tries the routes, each from the same state, and returns the one that leaves the fewest pods at the
// least cost. It returns apart if that would be too much work.
func (r *run) cheapestRoute(tier []*market, lots []*lot, routes [][]leg, apart []leg) []leg {
	before := r.saveTier(tier, lots)
	limit := r.spare(effort * max(1, r.opts.Effort))
	best, bestScore := apart, score{left: math.MaxInt}
	for _, legs := range routes {
		for _, g := range legs {
			if prospects := r.prospects(g.market, g.lots); len(prospects) > 0 && limit >= 0 {
				g.market.buys = nil
				limit -= r.pack(g.market, prospects, orders[0], limit)
			}
		}
		s := before.score(r, lots)
		before.restore(r)
		if limit < 0 || r.over() {
			return apart
		}
		if s.less(bestScore) {
			best, bestScore = legs, s
		}
	}
	return best
}

// rates are the least cost of a pod of each lot in each market, nano-USD per hour, on full nodes; noSale where no node
// holds it.
type rates struct {
	tier []*market
	lots []*lot
	rate [][]int64
}

const noSale = math.MaxInt64

func (r *run) rates(tier []*market, lots []*lot) *rates {
	s := &rates{tier: tier, lots: lots}
	for _, l := range lots {
		of := make([]int64, len(tier))
		for i, m := range tier {
			of[i] = r.rate(m, l)
		}
		s.rate = append(s.rate, of)
	}
	return s
}

func (r *run) rate(m *market, l *lot) int64 {
	least := int64(noSale)
	most, _ := l.rules.limitOnHost(&tally{})
	for _, o := range r.offersTo(m, l.task, l.rows) {
		for _, b := range o.front {
			if !m.holds(l.group, b.kind) {
				continue
			}
			copies := int64(math.MaxInt32)
			for i, n := range l.group.Requests {
				if n > 0 {
					copies = min(copies, m.pool.Net[b.kind][i]/n)
				}
			}
			if most > 0 {
				copies = min(copies, int64(most))
			}
			least = min(least, (b.price+m.nodePrice)/max(1, copies))
		}
	}
	return least
}

// cheapest returns the markets with the least cost for all lots, at most mostFirst. A lot that does not fit in a market
// counts there with its highest cost elsewhere.
func (s *rates) cheapest() []*market {
	sums := map[*market]int64{}
	for i, l := range s.lots {
		dearest := int64(0)
		for _, rate := range s.rate[i] {
			if rate != noSale {
				dearest = max(dearest, rate)
			}
		}
		for k, m := range s.tier {
			sums[m] = addTimes(sums[m], min(dearest, s.rate[i][k]), int64(len(l.left)))
		}
	}
	list := slices.Clone(s.tier)
	slices.SortStableFunc(list, func(a, b *market) int { return cmp.Compare(sums[a], sums[b]) })
	return list[:min(mostFirst, len(list))]
}

// addTimes returns sum plus n times the rate, none of them negative, at most noSale: money is exact, and an overflow
// counts as not available.
func addTimes(sum, rate, n int64) int64 {
	if n > 0 && rate > (noSale-sum)/n {
		return noSale
	}
	return sum + rate*n
}

// apart sends every lot to its cheapest market, and then the pods that were not placed to all markets.
func (s *rates) apart() []leg {
	var legs []leg
	for k, m := range s.tier {
		var own []*lot
		for i, l := range s.lots {
			if s.rate[i][k] != noSale && slices.Index(s.rate[i], slices.Min(s.rate[i])) == k {
				own = append(own, l)
			}
		}
		if len(own) > 0 {
			legs = append(legs, leg{m, own})
		}
	}
	return append(legs, straight(s.tier, s.lots)...)
}

// tierState is the state that packing the markets of a tier changes.
type tierState struct {
	lots    []*lot
	left    [][]*model.Pod
	markets []*state
	tier    []*market
}

func (r *run) saveTier(tier []*market, lots []*lot) *tierState {
	s := &tierState{lots: lots, tier: tier}
	for _, l := range lots {
		s.left = append(s.left, l.left)
	}
	for _, m := range tier {
		s.markets = append(s.markets, r.save(m, nil))
	}
	return s
}

func (s *tierState) restore(r *run) {
	for i, m := range s.tier {
		s.markets[i].restore(r, m, nil)
	}
	for i, l := range s.lots {
		l.left = s.left[i]
	}
}

func (s *tierState) score(r *run, lots []*lot) score {
	sc := s.markets[0].score(r, nil)
	for _, l := range lots {
		sc.left += len(l.left)
	}
	return sc
}
