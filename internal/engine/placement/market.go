package placement

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// market is a pool as a place to buy bins: what is left of its limits, and what was found out about its types.
type market struct {
	pool *model.Pool
	// nodePrice is what a node of the pool costs beyond its price, nano-USD per hour.
	nodePrice int64
	// special types are bought only for who asks for them.
	special bitset.Set
	// remaining of each limited resource, model.NoLimit elsewhere; nodes likewise.
	remaining []int64
	nodes     int64
	// served is the lowest rank that something was bought for; rank.go.
	served int32
	// reservations is how many more nodes each reservation bears; all markets share it.
	reservations map[string]int
	// minimums are the requirements with minValues.
	minimums []minimum
	// offers by the words of a row: groups with the same requirements see the same types.
	offers map[string]*offer
	// priceLists by set of classes, and sayings by row and types, likewise.
	priceLists map[string][]purchase
	// value of a unit of each resource, as last found.
	value   []float64
	sayings map[string]*saying
}

// offer is what a row may buy in a market.
type offer struct {
	row label.Row
	// types that are compatible, whatever their size and whether they are for sale.
	types bitset.Set
	// classes of offerings that the row admits; onSale are the types that one of them has available.
	classes []int
	onSale  bitset.Set
	// front are the purchases that no other purchase beats in price and size, cheapest first.
	front []purchase
}

// purchase is a type at its cheapest offering.
type purchase struct {
	kind  int
	class int
	price int64
}

// minimum is a requirement of the pool with minValues: the types of a claim must have so many values of the label.
type minimum struct {
	key  string
	need int
	// values by type, as small numbers.
	values [][]int
	count  int
}

// NodePriceOf is what a node of the pool costs beyond its price: what the pool says, else what the options say.
func (o Options) NodePriceOf(pool *model.PoolSpec) int64 {
	if pool.NodePrice != 0 {
		o.NodePrice = pool.NodePrice
	}
	return o.nodePrice()
}

// openPools makes a market of every pool.
func (r *run) openPools() {
	reservations := map[string]int{}
	for _, p := range r.snap.Pools {
		m := newMarket(p, reservations)
		m.nodePrice = r.opts.NodePriceOf(p.PoolSpec)
		r.pools = append(r.pools, m)
		r.avoidable = r.avoidable || prefersNot(p.Taints)
	}
	if len(reservations) > 0 {
		r.chargeInFlight(reservations)
	}
}

// chargeInFlight takes what claims that are not launched yet will use of the reservations: the provider does not know of
// them.
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

func newMarket(p *model.Pool, reservations map[string]int) *market {
	m := &market{pool: p, nodes: model.NoLimit, served: math.MaxInt32, reservations: reservations,
		offers: map[string]*offer{}, priceLists: map[string][]purchase{}, sayings: map[string]*saying{}}
	if p.NodeLimit != model.NoLimit {
		m.nodes = max(0, p.NodeLimit-int64(p.Nodes))
	}
	m.remaining = slices.Clone(p.Limit)
	for r, limit := range m.remaining {
		if limit != model.NoLimit {
			m.remaining[r] = max(0, limit-p.Used.At(quantity.Resource(r)))
		}
	}
	if p.Types == nil {
		return m
	}
	m.special = bitset.New(p.Types.Len())
	for t := range p.Types.Catalogue.Types {
		kind := &p.Types.Catalogue.Types[t]
		if kind.Special {
			m.special.Add(t)
		}
		for _, o := range kind.Offerings {
			m.reserve(o)
		}
	}
	m.minimums = minimumsOf(p)
	return m
}

// reserve notes how many nodes a reservation bears: the least that any offering of it says.
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

// open reports whether the pool sells anything at all.
func (m *market) open() bool {
	return m.pool.Blocked == nil && m.pool.Valid && m.pool.Types != nil && m.nodes != 0
}

// sells adds the atoms of the key that nodes of the pool may have. Of a label that the pool leaves open, values that
// somebody names are domains, and if there are none, the one that a node would get; never "any other value": as soon as
// one node had it there would be yet another.
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

// limited reports whether the pool limits what its nodes have.
func (m *market) limited() bool {
	return slices.ContainsFunc(m.remaining, func(n int64) bool { return n != model.NoLimit })
}

// within reports whether a node with that capacity stays within the limits, and which is in the way.
func (m *market) within(total quantity.Vector) (quantity.Resource, bool) {
	for r, left := range m.remaining {
		if left != model.NoLimit && total.At(quantity.Resource(r)) > left {
			return quantity.Resource(r), false
		}
	}
	return 0, true
}

// charge takes a node's capacity from what is left.
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

// offersTo lists what a task may buy in a market, one offer for each of the rows that the pool can satisfy.
func (r *run) offersTo(m *market, t *task, rows []label.Row) []*offer {
	if !m.open() {
		return nil
	}
	if _, no := r.untolerated(t, m.pool.Taints); no {
		return nil
	}
	var offers []*offer
	asks := asksSpecial(r.snap, t.group)
	for _, row := range rows {
		both := make(label.Row, r.snap.Space.Words())
		if r.snap.Space.And(both, m.pool.Start, row) {
			offers = append(offers, m.offer(r.snap.Space, both, asks))
		}
	}
	if !asks && !t.rules.none() && slices.ContainsFunc(offers, m.onlySpecial) && r.plainWouldDo(m, t) {
		offers = slices.DeleteFunc(offers, m.onlySpecial)
	}
	return offers
}

// onlySpecial reports whether the offer is of special types alone.
func (m *market) onlySpecial(o *offer) bool {
	return !o.types.Empty() && !slices.ContainsFunc(o.front, func(p purchase) bool { return !m.special.Has(p.kind) })
}

// plainWouldDo reports whether the task itself does without special types: no spread is a reason to buy them.
func (r *run) plainWouldDo(m *market, t *task) bool {
	for _, row := range t.rows {
		both := make(label.Row, r.snap.Space.Words())
		if !r.snap.Space.And(both, m.pool.Start, row) {
			continue
		}
		plain := m.offer(r.snap.Space, both, false).types.Clone()
		plain.AndNotWith(m.special)
		if !plain.Empty() {
			return true
		}
	}
	return false
}

// offer returns what a row that lies within the pool's start row may buy. asks says that the group requests a resource
// that only special types have.
func (m *market) offer(space *label.Space, row label.Row, asks bool) *offer {
	key := rowKey(row, asks)
	if known := m.offers[key]; known != nil {
		return known
	}
	o := &offer{row: row, types: m.pool.Eligible.Clone()}
	for k := label.Key(0); int(k) < space.Len(); k++ {
		if !space.EqualKey(row, m.pool.Start, k) && !m.pool.Types.Narrow(o.types, row, k) {
			break
		}
	}
	m.spareSpecial(o.types, asks)
	o.onSale, o.classes = m.offered(row)
	o.onSale.AndWith(o.types)
	o.front = m.front(o)
	m.offers[key] = o
	return o
}

// offered is what the row admits of what is on sale: offerings of reservations that are used up are not.
func (m *market) offered(row label.Row) (bitset.Set, []int) { return m.offeredTo(&bin{}, row) }

// offeredTo is the same for a bin: the reservation of which it has taken a node is not used up for it.
func (m *market) offeredTo(b *bin, row label.Row) (bitset.Set, []int) {
	set, classes := m.pool.Types.Offered(row)
	used := func(i int) bool {
		id := m.pool.Types.Classes[i].ReservationID
		return id != "" && id != b.holds && m.reservations[id] <= 0
	}
	if !slices.ContainsFunc(classes, used) {
		return set, classes
	}
	classes = slices.DeleteFunc(classes, used)
	clear(set)
	for _, i := range classes {
		set.OrWith(m.pool.Types.Classes[i].Types)
	}
	return set, classes
}

// spareSpecial drops the special types unless they were asked for: by a resource, or because nothing else satisfies
// the labels that pod and pool name.
func (m *market) spareSpecial(types bitset.Set, asks bool) {
	if asks {
		return
	}
	plain := types.Clone()
	plain.AndNotWith(m.special)
	if !plain.Empty() {
		types.CopyFrom(plain)
	}
}

// asksSpecial reports whether the group requests an extended resource.
func asksSpecial(snap *model.Snapshot, g *model.Group) bool {
	for r := int(quantity.Pods) + 1; r < len(g.Requests); r++ {
		if g.Requests[r] > 0 && !model.IsVolumeResource(snap.Resources[r]) {
			return true
		}
	}
	return false
}

func rowKey(row label.Row, asks bool) string {
	key := make([]byte, 0, 8*len(row)+1)
	for _, w := range row {
		key = binary.LittleEndian.AppendUint64(key, w)
	}
	if asks {
		key = append(key, 1)
	}
	return string(key)
}

// front lists the purchases worth trying: sorted by price, each is larger in some resource than all cheaper ones. What is
// reserved comes first and makes nothing else pointless, because it may be used up any moment.
func (m *market) front(o *offer) []purchase {
	reserved := func(i int) bool { return m.pool.Types.Classes[i].ReservationID != "" }
	var front []purchase
	for _, drop := range []func(int) bool{func(i int) bool { return !reserved(i) }, reserved} {
		classes := o.classes
		if slices.ContainsFunc(classes, drop) {
			classes = slices.DeleteFunc(slices.Clone(classes), drop)
		}
		from := len(front)
		for _, p := range m.priceList(classes) {
			if o.onSale.Has(p.kind) && !slices.ContainsFunc(front[from:], func(q purchase) bool { return m.beats(q, p) }) {
				front = append(front, p)
			}
		}
	}
	return front
}

// usedUp reports whether the purchase needs a reservation that bears no further node.
func (m *market) usedUp(p purchase) bool {
	id := m.pool.Types.Classes[p.class].ReservationID
	return id != "" && m.reservations[id] <= 0
}

func sortPurchases(list []purchase) {
	slices.SortFunc(list, func(a, b purchase) int {
		return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.kind, b.kind))
	})
}

// beats reports whether a purchase that is no dearer makes the other pointless: it holds as much, and takes no more of
// what the pool limits.
func (m *market) beats(q, p purchase) bool {
	if !covers(m.pool.Net[q.kind], m.pool.Net[p.kind]) {
		return false
	}
	for r, left := range m.remaining {
		total := m.pool.Types.Total
		if left != model.NoLimit && total[q.kind].At(quantity.Resource(r)) > total[p.kind].At(quantity.Resource(r)) {
			return false
		}
	}
	return true
}

// covers reports whether a has at least as much of everything as b.
func covers(a, b quantity.Vector) bool {
	for r := range max(len(a), len(b)) {
		if a.At(quantity.Resource(r)) < b.At(quantity.Resource(r)) {
			return false
		}
	}
	return true
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

// diverse reports whether the types have the values that minValues demands, and which demand is not met.
func (m *market) diverse(types bitset.Set) plan.Verdict {
	for i := range m.minimums {
		n := &m.minimums[i]
		if have := n.have(types); have < n.need {
			return plan.Verdict{Code: plan.MinValuesUnmet, Need: int64(n.need), Have: int64(have)}
		}
	}
	return plan.Verdict{}
}

// have is how many values of the label the types have together.
func (n *minimum) have(types bitset.Set) int {
	seen := bitset.New(n.count)
	for t := range types.All() {
		for _, v := range n.values[t] {
			seen.Add(v)
		}
	}
	return seen.Count()
}
