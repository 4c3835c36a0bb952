package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// market is the provisioning state of a pool: the rest of its limits, and cached facts about its types.
type market struct {
	pool *model.Pool
	// nodePrice is the cost of a node of the pool beyond its price, nano-USD per hour.
	nodePrice int64
	// special types are launched only for pods that request them.
	special bitset.Set
	// remaining of each limited resource, model.NoLimit for others; nodes likewise.
	remaining []int64
	nodes     int64
	// served is the lowest rank that a node was opened for; see rank.go.
	served int32
	// reservations is how many more nodes each reservation permits. All markets share it.
	reservations map[string]int
	// minimums are the requirements with minValues.
	minimums []minimum
	// offers by the words of a row: groups with the same requirements see the same types.
	offers map[string]*offer
	// priceLists by set of classes, and sayings by row and types.
	priceLists map[string][]purchase
	// value of a unit of each resource, as last computed.
	value []float64
	// buys are the purchases available to the prospects of the packing, for the duals; nil before first use.
	buys []purchase
	// crew are the daemons that are certain to run on every node.
	crew    []crewman
	sayings map[string]*saying
	// share limits the part of one type in one zone in the pool's spot capacity; nil without a limit.
	share *spotShare
}

// minimum is a requirement of the pool with minValues: the types of a claim must have that many values of the label.
type minimum struct {
	key  string
	need int
	// values by type, as small numbers.
	values [][]int
	count  int
}

// NodePriceOf returns the cost of a node of the pool beyond its price: the pool's value, else that of the options.
func (o Options) NodePriceOf(pool *model.PoolSpec) int64 {
	if pool.NodePrice != 0 {
		o.NodePrice = pool.NodePrice
	}
	return o.nodePrice()
}

// openPools creates the market of every pool.
func (r *run) openPools() {
	reservations := map[string]int{}
	for _, p := range r.snap.Pools {
		m := newMarket(p, r.opts.Memory.goodsOf(p), reservations)
		m.nodePrice = r.opts.NodePriceOf(p.PoolSpec)
		m.share = spotShareOf(r.snap, p, r.opts.Bought)
		r.pools = append(r.pools, m)
		r.avoidable = r.avoidable || prefersNot(p.Taints)
	}
	if len(reservations) > 0 {
		r.chargeInFlight(reservations)
	}
}

// chargeInFlight subtracts from the reservations what claims that are not launched yet will use. The provider does not
// know of these claims.
func (r *run) chargeInFlight(reservations map[string]int) {
	for _, n := range r.snap.Nodes {
		pool := r.snap.Pool(n.Pool)
		if n.Stage != model.Launching || n.Deleting || pool == nil || pool.Types == nil {
			continue
		}
		_, classes := pool.Types.Offered(n.Row)
		open := slices.ContainsFunc(classes, func(i int) bool { return pool.Types.Classes[i].ReservationID == "" })
		if len(classes) > 0 && !open {
			reservations[pool.Types.Classes[classes[0]].ReservationID]--
		}
	}
}

func newMarket(p *model.Pool, g *goods, reservations map[string]int) *market {
	m := &market{pool: p, nodes: model.NoLimit, served: math.MaxInt32, reservations: reservations, special: g.special, minimums: g.minimums,
		offers: g.offers, priceLists: g.priceLists, sayings: map[string]*saying{}}
	if p.NodeLimit != model.NoLimit {
		m.nodes = max(0, p.NodeLimit-int64(p.Nodes))
	}
	m.remaining = slices.Clone(p.Limit)
	for r, limit := range m.remaining {
		if limit != model.NoLimit {
			m.remaining[r] = max(0, limit-p.Used.At(quantity.Resource(r)))
		}
	}
	if !g.reserved {
		return m
	}
	for t := range p.Types.Catalogue.Types {
		for _, o := range p.Types.Catalogue.Types[t].Offerings {
			m.reserve(o)
		}
	}
	return m
}

// reserve records how many nodes a reservation permits: the least that any of its offerings states.
func (m *market) reserve(o model.Offering) {
	if o.ReservationID == "" {
		return
	}
	count := o.ReservationCount
	if !o.Available {
		count = 0
	}
	if known, has := m.reservations[o.ReservationID]; !has || count < known {
		m.reservations[o.ReservationID] = count
	}
}

// open reports whether nodes of the pool can be launched at all.
func (m *market) open() bool {
	return m.pool.Blocked == nil && m.pool.Valid && m.pool.Types != nil && m.nodes != 0
}

// sells adds the atoms of the key that nodes of the pool may have. For a label that the pool leaves open, the domains
// are the values that some object names or, if there are none, the one that a node would get. "Any other value" is not
// a domain: as soon as one node had it there would be yet another.
func (m *market) sells(space *label.Space, key label.Key, set bitset.Set) {
	single := false
	for atom := range space.Atoms(key) {
		if space.IsValue(key, atom) && m.sellsAtom(space, key, atom) {
			set.Add(atom)
			single = true
		}
	}
	if m.sellsAtom(space, key, space.Absent(key)) {
		set.Add(space.Absent(key))
	}
	if single {
		return
	}
	if value, ok := space.Pick(m.pool.Start, key); ok && m.sellsAtom(space, key, space.Atom(key, value)) {
		set.Add(space.Atom(key, value))
	}
}

func (m *market) sellsAtom(space *label.Space, key label.Key, atom int) bool {
	if !space.HasAtom(m.pool.Start, key, atom) {
		return false
	}
	row := slices.Clone(m.pool.Start)
	space.SetOnly(row, key, atom)
	types := m.pool.Eligible.Clone()
	onSale, _ := m.pool.Types.Offered(row)
	return m.pool.Types.Narrow(types, row, key) && types.Intersects(onSale)
}

// limited reports whether the pool has limits on resources.
func (m *market) limited() bool {
	return slices.ContainsFunc(m.remaining, func(n int64) bool { return n != model.NoLimit })
}

// within reports whether a node with that capacity is within the limits, and returns the first exceeded resource.
func (m *market) within(total quantity.Vector) (quantity.Resource, bool) {
	for r, left := range m.remaining {
		if left != model.NoLimit && total.At(quantity.Resource(r)) > left {
			return quantity.Resource(r), false
		}
	}
	return 0, true
}

// charge subtracts a node's capacity from the limits.
func (m *market) charge(total quantity.Vector) {
	for r, left := range m.remaining {
		if left != model.NoLimit {
			m.remaining[r] = max(0, left-total.At(quantity.Resource(r)))
		}
	}
	if m.nodes != model.NoLimit {
		m.nodes--
	}
}

// minimumsOf numbers the values that the types have of each label with minValues.
func minimumsOf(p *model.Pool) []minimum {
	var list []minimum
	for _, req := range p.Requirements {
		if req.MinValues <= 0 {
			continue
		}
		n := minimum{key: req.Key, need: req.MinValues, values: make([][]int, p.Types.Len())}
		numbers := map[string]int{}
		for t := range p.Types.Catalogue.Types {
			for _, v := range valuesOf(&p.Types.Catalogue.Types[t], req.Key) {
				if _, known := numbers[v]; !known {
					numbers[v] = len(numbers)
				}
				n.values[t] = append(n.values[t], numbers[v])
			}
		}
		n.count = len(numbers)
		list = append(list, n)
	}
	return list
}

func valuesOf(t *model.InstanceType, key string) []string {
	var values []string
	for _, r := range t.Requirements {
		if r.Key == key && r.Operator == label.In {
			values = append(values, r.Values...)
		}
	}
	switch key {
	case model.LabelType:
		return []string{t.Name}
	case model.LabelZone:
		for _, o := range t.Offerings {
			values = append(values, o.Zone)
		}
	case model.LabelCapacityType:
		for _, o := range t.Offerings {
			values = append(values, o.CapacityType)
		}
	}
	return values
}

// diverse checks that the types satisfy minValues, and returns the first unmet requirement.
func (m *market) diverse(types bitset.Set) plan.Verdict {
	for i := range m.minimums {
		n := &m.minimums[i]
		if have := n.have(types); have < n.need {
			return plan.Verdict{Code: plan.MinValuesUnmet, Need: int64(n.need), Have: int64(have)}
		}
	}
	return plan.Verdict{}
}

// have returns how many values of the label the types have together.
func (n *minimum) have(types bitset.Set) int {
	seen := bitset.New(n.count)
	for t := range types.All() {
		for _, v := range n.values[t] {
			seen.Add(v)
		}
	}
	return seen.Count()
}
