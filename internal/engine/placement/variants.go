package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Several packings. Greedy filling depends on the order of the pods, and no order is best for all workloads. If the
// work is affordable, a market is packed in several orders, each from the same state, and the cheapest result is used.
// Work is counted in examined prospects, not in seconds, so that every machine computes the same plan.

// packOrder sorts prospects for a packing; the zero value keeps the order of the tasks.
type packOrder struct {
	compare func(a, b *prospect) int
	// evenly: sort again before each bin, and open few bins of a pattern at a time.
	evenly bool
	// learn from the previous packing which pods are expensive.
	learn bool
	// inTurn: one bin at a time, in the order in which the pods were assigned to domains; inturn.go.
	inTurn bool
}

// orders that are tried: as the tasks come, by how many nodes a group forces, by the value of a pod, by memory; and
// then by value again, with a higher value for pods that proved expensive.
var orders = []packOrder{
	{}, {compare: byForced, evenly: true}, {compare: byWorth}, {compare: byMemory},
	{compare: byWorth, learn: true}, {compare: byWorth, learn: true}, {compare: byWorth, learn: true},
}

// byForced puts prospects first that force the most nodes: pods of which a node may have only a limited number.
func byForced(a, b *prospect) int {
	return cmp.Or(cmp.Compare(b.group.Priority, a.group.Priority), cmp.Compare(b.forced(), a.forced()), cmp.Compare(b.unit, a.unit))
}

// forced returns how many nodes the rules by hostname force for the prospect's pods, 0 when they force none.
func (p *prospect) forced() int {
	if p.perHost == 0 {
		if p.perHost, _ = p.rules.limitOnHost(&tally{}); p.perHost <= 0 {
			p.perHost = math.MaxInt32
		}
	}
	if p.perHost >= len(p.left) {
		return 0
	}
	return (len(p.left) + p.perHost - 1) / p.perHost
}

func byWorth(a, b *prospect) int {
	return cmp.Or(cmp.Compare(b.group.Priority, a.group.Priority), cmp.Compare(b.unit, a.unit))
}

func byMemory(a, b *prospect) int {
	return cmp.Or(cmp.Compare(b.group.Priority, a.group.Priority),
		cmp.Compare(b.group.Requests.At(quantity.Memory), a.group.Requests.At(quantity.Memory)),
		cmp.Compare(b.group.Requests.At(quantity.CPU), a.group.Requests.At(quantity.CPU)))
}

// effort is how many prospects all packings of one market together may examine beyond the first packing. A market with
// few pods may use several times as much: it is packed in milliseconds, and a bad order costs a larger part of its
// price.
const (
	effort      = 90_000
	fewPods     = 1_500
	effortOfFew = 3 * effort
)

func effortFor(prospects []*prospect) int {
	pods := 0
	for _, p := range prospects {
		pods += len(p.left)
	}
	if pods <= fewPods {
		return effortOfFew
	}
	return effort
}

// packBest packs the market in several orders and keeps the cheapest result.
func (r *run) packBest(m *market, prospects []*prospect) {
	m.buys = nil
	before := r.save(m, prospects)
	limit := r.spare(effortFor(prospects) * max(1, r.opts.Effort))
	forced := slices.ContainsFunc(prospects, func(p *prospect) bool { return p.forced() > 1 })
	spent := r.pack(m, prospects, orders[0], math.MaxInt)
	best, bestScore := before.result(r, m, prospects), before.score(r, prospects)
	for _, order := range orders[1:] {
		if spent > limit || r.over() {
			break
		}
		if order.evenly && !forced {
			continue
		}
		if order.learn {
			before.learn(r, prospects)
		}
		before.restore(r, m, prospects)
		spent += r.pack(m, prospects, order, limit-spent)
		if score := before.score(r, prospects); score.less(bestScore) {
			best, bestScore = before.result(r, m, prospects), score
		}
	}
	if m.scarce() && slices.ContainsFunc(prospects, cutShort) {
		before.restore(r, m, prospects)
		r.pack(m, prospects, packOrder{inTurn: true}, math.MaxInt)
		best = before.result(r, m, prospects)
	}
	best.restore(r, m, prospects)
	r.merge(m, before.from)
}

// learn raises the value of pods that ended in bins with a high price for their content: the next packing places them
// earlier, where they fit well, instead of leaving them for the end.
func (s *state) learn(r *run, prospects []*prospect) {
	byTask := map[*task][]*prospect{}
	for _, p := range prospects {
		byTask[p.task] = append(byTask[p.task], p)
	}
	cost, value := map[*task]float64{}, map[*task]float64{}
	for _, b := range r.bins[s.from:] {
		var sum float64
		for _, share := range b.shares {
			sum += float64(float64(len(share.pods)) * baseOf(byTask[share.task]))
		}
		price := float64(b.lowest + b.market.nodePrice)
		for _, share := range b.shares {
			part := float64(float64(len(share.pods)) * baseOf(byTask[share.task]))
			cost[share.task] += float64(price * part / sum)
			value[share.task] += part
		}
	}
	for _, p := range prospects {
		if value[p.task] > 0 {
			p.dear = float64(p.dear * math.Sqrt(cost[p.task]/value[p.task]))
		}
	}
}

// baseOf returns the value of a pod of a task by its resources alone.
func baseOf(prospects []*prospect) float64 {
	if len(prospects) == 0 {
		return 0
	}
	return prospects[0].unit / prospects[0].dear
}

// state is the state that packing a market changes.
type state struct {
	left         [][]*model.Pod
	bins         []*bin
	remaining    []int64
	nodes        int64
	reservations map[string]int
	totals       []int
	share        *spotShare
	from         int
}

func (r *run) save(m *market, prospects []*prospect) *state {
	s := &state{from: len(r.bins)}
	return s.result(r, m, prospects)
}

func (s *state) result(r *run, m *market, prospects []*prospect) *state {
	now := &state{bins: slices.Clone(r.bins), remaining: slices.Clone(m.remaining), nodes: m.nodes,
		reservations: maps.Clone(m.reservations), totals: slices.Clone(r.counters.totals), from: s.from, share: m.share.clone()}
	for _, p := range prospects {
		now.left = append(now.left, p.left)
	}
	return now
}

func (s *state) restore(r *run, m *market, prospects []*prospect) {
	r.bins = append(r.bins[:0], s.bins...)
	m.remaining, m.nodes = append(m.remaining[:0], s.remaining...), s.nodes
	if !maps.Equal(m.reservations, s.reservations) {
		maps.Copy(m.reservations, s.reservations)
		for _, other := range r.pools {
			other.offers = map[string]*offer{}
		}
	}
	copy(r.counters.totals, s.totals)
	m.share = s.share.clone()
	for i, p := range prospects {
		p.left = s.left[i]
	}
}

// score rates a packing: first by how many pods it left, then by its cost.
type score struct {
	left int
	cost int64
}

func (a score) less(b score) bool {
	return cmp.Or(cmp.Compare(a.left, b.left), cmp.Compare(a.cost, b.cost)) < 0
}

func (s *state) score(r *run, prospects []*prospect) score {
	var sc score
	for _, p := range prospects {
		sc.left += len(p.left)
	}
	for _, b := range r.bins[s.from:] {
		sc.cost += b.lowest + b.market.nodePrice
	}
	return sc
}

// lowestPrice returns the price of the cheapest node that a bin of the row and the types may become.
func (m *market) lowestPrice(kinds bitset.Set, row label.Row) int64 {
	_, classes := m.offered(row)
	for _, p := range m.priceList(classes) {
		if kinds.Has(p.kind) {
			return p.price
		}
	}
	return 0
}
