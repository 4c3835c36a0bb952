package placement

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement/relax"
)

// The rules between pods of a group, compiled for a run: which counters they read, and which counters the group's own
// pods change. Rules by hostname are evaluated per node and bin, all others when pods are assigned to domains.

// rules of a group at one level of relaxation.
type rules struct {
	spreads    []spreadRule
	affinities []affinityRule
	// apart are the counters that must be zero in the pod's domain: of its own anti-affinity terms and of other pods'
	// terms.
	apart []*counter
	// touched counters change with each pod of the group.
	touched []*counter
	// host is the key of the hostname.
	host label.Key
	// pins are the keys that the group's nodes must be pinned to, ascending. own are those of the group's constraints.
	pins, own []label.Key

	hostSpreads    []hostSpread
	hostAffinities []hostAffinity
	hostApart      []int
	hostApartSelf  bool
	hostTouched    []int
	// redundant are the keys of spread constraints that cannot bind.
	redundant []label.Key
}

type spreadRule struct {
	counter             *counter
	floor               floor
	maxSkew, minDomains int
	self                bool
}

type affinityRule struct {
	counter *counter
	self    bool
	// separate: the term is evaluated on its own, because it is a preferred one or represents a volume.
	separate bool
}

// first reports whether the rule selects no pod anywhere, but would select the group's own pods.
func (a *affinityRule) first() bool { return a.self && a.counter.total == 0 }

type hostSpread struct {
	slot, maxSkew int
	self          bool
}

type hostAffinity struct {
	slot     int
	self     bool
	separate bool
}

// first reports whether the rule selects no pod on any host, but would select the group's own pods.
func (a hostAffinity) first(totals []int) bool { return a.self && totals[a.slot] == 0 }

// none reports whether nothing between pods concerns the group by domain.
func (r *rules) none() bool { return len(r.pins) == 0 }

// compile returns the rules of a group at a level.
func (c *counters) compile(g *model.Group, l *relax.Level) *rules {
	r := &rules{}
	r.host, _ = c.snap.Space.Lookup(model.LabelHostname)
	for _, i := range l.Spreads {
		c.compileSpread(r, g, i)
	}
	for _, i := range l.Terms {
		c.compileTerm(r, g, i)
	}
	for _, mark := range g.BlockedBy {
		c.compileApart(r, mark, c.snap.Marks[mark].Key, false)
	}
	return r
}

func (c *counters) compileSpread(r *rules, g *model.Group, i int) {
	s, mark := &g.Spread[i], g.SpreadMarks[i]
	self := slices.Contains(g.Matches, mark)
	if s.Key == model.LabelHostname {
		r.hostSpreads = append(r.hostSpreads, hostSpread{slot: c.slot(mark), maxSkew: s.MaxSkew, self: self})
		return
	}
	key, known := c.snap.Space.Lookup(s.Key)
	if !known {
		return
	}
	f, id := c.filterOf(g, s)
	r.spreads = append(r.spreads, spreadRule{counter: c.counter(mark, key, f, id), maxSkew: s.MaxSkew, minDomains: s.MinDomains, self: self})
	r.pin(key)
	r.own = append(r.own, key)
}

// filterOf returns the filter of the nodes that the constraint counts, and its key.
func (c *counters) filterOf(g *model.Group, s *model.Spread) (*filter, string) {
	f := &filter{taints: s.HonorTaints, tolerations: g.Tolerations, keys: c.hardKeys(g)}
	var id []byte
	for _, key := range f.keys {
		id = binary.AppendUvarint(id, uint64(key)+1)
	}
	if !s.IgnoreAffinity && len(g.Alternatives) > 0 {
		f.affinity = g.Affinity
		id = append(id, 0)
		for _, row := range g.Affinity {
			for _, w := range row {
				id = binary.LittleEndian.AppendUint64(id, w)
			}
		}
	}
	if s.HonorTaints {
		id = append(id, 't')
		for _, t := range g.Tolerations {
			id = append(id, t.Key+"\x00"+t.Value+"\x00"+t.Effect.String()+"\x00"...)
			if t.Exists {
				id = append(id, 'e')
			}
		}
	}
	if len(id) == 0 {
		return nil, ""
	}
	return f, string(id)
}

// hardKeys returns the topology keys that a node must have to be counted by the group's constraints: those of all the
// hard constraints, when there is more than one. The hostname is included only if some node lacks it.
func (c *counters) hardKeys(g *model.Group) []label.Key {
	var keys []label.Key
	for i := range g.Spread {
		key, known := c.snap.Space.Lookup(g.Spread[i].Key)
		if known && !g.Spread[i].Soft && (g.Spread[i].Key != model.LabelHostname || c.someNameless) && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	if len(keys) < 2 {
		return nil
	}
	return keys
}

func (c *counters) compileTerm(r *rules, g *model.Group, i int) {
	t, mark := &g.Terms[i], g.TermMarks[i]
	self := slices.Contains(g.Matches, mark)
	if t.Anti {
		if key, known := c.snap.Space.Lookup(t.Key); known {
			r.own = append(r.own, key)
		}
		c.compileApart(r, mark, t.Key, self)
		return
	}
	if t.Key == model.LabelHostname {
		r.hostAffinities = append(r.hostAffinities, hostAffinity{slot: c.slot(mark), self: self, separate: !t.Required()})
		return
	}
	if key, known := c.snap.Space.Lookup(t.Key); known {
		r.affinities = append(r.affinities, affinityRule{counter: c.counter(mark, key, nil, ""), self: self,
			separate: !t.Required() || t.Together})
		r.pin(key)
		r.own = append(r.own, key)
	}
}

func (c *counters) compileApart(r *rules, mark int, key string, self bool) {
	if key == model.LabelHostname {
		r.hostApart = append(r.hostApart, c.slot(mark))
		r.hostApartSelf = r.hostApartSelf || self
		return
	}
	if k, known := c.snap.Space.Lookup(key); known {
		r.apart = append(r.apart, c.counter(mark, k, nil, ""))
		r.pin(k)
	}
}

// require marks the counters that the rules read. It is called for rules without preferences.
func (r *rules) require() {
	for i := range r.spreads {
		r.spreads[i].counter.required = true
	}
	for i := range r.affinities {
		r.affinities[i].counter.required = true
	}
	for _, counter := range r.apart {
		counter.required = true
	}
}

// touch finds the counters that the group's pods change: those of the marks that select the group and of the terms it
// carries. It is called when the rules of all groups are compiled, because other rules decide what is counted. If open,
// counters that only preferences read leave the domain of the pods open.
func (c *counters) touch(r *rules, g *model.Group, open bool) {
	marks := g.Matches
	for _, carrier := range g.CarrierMarks {
		if carrier >= 0 && !slices.Contains(marks, carrier) {
			marks = append(slices.Clip(marks), carrier)
		}
	}
	r.touched, r.hostTouched = nil, nil
	for _, mark := range marks {
		if slot := c.slotOf[mark]; slot >= 0 {
			r.hostTouched = append(r.hostTouched, slot)
		}
		for _, counter := range c.byMark[mark] {
			if counter.filter.pods(c.snap.Space, g.Rows, g.Tolerations) != never {
				r.touched = append(r.touched, counter)
				if !open || counter.required {
					r.pin(counter.key)
				}
			}
		}
	}
	slices.Sort(r.hostTouched) // tallies are filled in ascending order
}

func (r *rules) pin(key label.Key) {
	if at, found := slices.BinarySearch(r.pins, key); !found {
		r.pins = slices.Insert(r.pins, at, key)
	}
}

// Rules that cannot bind. Anti-affinity that selects no pod, on a node or to be placed, excludes no domain and no host. A
// spread constraint that selects no more pods than its maxSkew admits all of them anywhere. Preferred affinity to no pod
// cannot be satisfied. Such rules are left out: the pods are placed as pods without the rule are. Spread constraints that
// merely may bind are handled in spread.go.

// dropRedundant leaves out the rules that cannot bind, for the groups and all levels compiled so far.
func (q *queue) dropRedundant(groups []*pendingGroup) {
	if len(q.counters.all) == 0 && len(q.counters.totals) == 0 {
		return
	}
	q.onHosts = slices.Clone(q.counters.totals)
	for _, pg := range groups {
		for _, c := range pg.rules.touched {
			c.groups++
			c.pending += len(pg.pods)
		}
		for _, slot := range pg.rules.hostTouched {
			q.onHosts[slot] += len(pg.pods)
		}
	}
	for _, d := range q.counters.daemons {
		for _, slot := range d.slots {
			q.onHosts[slot] = math.MaxInt32 // as many as there will be nodes
		}
	}
	for _, pg := range groups {
		for _, rs := range pg.compiled {
			q.dropRedundantOf(rs)
		}
	}
	for _, pg := range groups {
		for _, rs := range pg.compiled {
			rs.pinUsed()
		}
	}
}

// dropRedundantOf leaves out the rules that cannot bind.
func (q *queue) dropRedundantOf(rs *rules) {
	rs.hostApart = slices.DeleteFunc(rs.hostApart, func(slot int) bool { return q.onHosts[slot] == 0 })
	rs.hostAffinities = slices.DeleteFunc(rs.hostAffinities, func(a hostAffinity) bool { return a.separate && q.onHosts[a.slot] == 0 })
	if !q.counters.someNameless { // spread by host excludes nodes without the label
		rs.hostSpreads = slices.DeleteFunc(rs.hostSpreads, func(s hostSpread) bool { return q.onHosts[s.slot] <= s.maxSkew })
	}
	rs.spreads = slices.DeleteFunc(rs.spreads, func(s spreadRule) bool {
		if s.counter.total+s.counter.pending > s.maxSkew || !q.everyNodeHas(s.counter.key) {
			return false
		}
		if s.self {
			rs.redundant = append(rs.redundant, s.counter.key)
		}
		return true
	})
	rs.apart = slices.DeleteFunc(rs.apart, func(c *counter) bool { return c.total+c.pending == 0 })
	for i := range rs.spreads {
		rs.spreads[i].counter.used = true
	}
	for i := range rs.affinities {
		rs.affinities[i].counter.used = true
	}
	for _, c := range rs.apart {
		c.used = true
	}
}

// pinUsed pins the keys of the remaining rules and of the counters that they read.
func (r *rules) pinUsed() {
	pinned := r.pins
	r.pins = nil
	r.touched = slices.DeleteFunc(r.touched, func(c *counter) bool { return !c.used })
	for i := range r.spreads {
		r.pin(r.spreads[i].counter.key)
	}
	for i := range r.affinities {
		r.pin(r.affinities[i].counter.key)
	}
	for _, c := range r.apart {
		r.pin(c.key)
	}
	for _, c := range r.touched {
		if slices.Contains(pinned, c.key) {
			r.pin(c.key)
		}
	}
	r.own = slices.DeleteFunc(r.own, func(key label.Key) bool { return !slices.Contains(r.pins, key) })
}

// everyNodeHas reports whether all nodes have the label, and all that pools may launch: spread constraints exclude nodes
// without it.
func (q *queue) everyNodeHas(key label.Key) bool {
	has, known := q.everywhere[key]
	if known {
		return has
	}
	space := q.snap.Space
	has = !q.counters.someNode(sumKey{sumLacking, counterKey{key: key}}, func(n *model.Node) bool { return space.AllowsAbsent(n.Row, key) })
	for _, ps := range q.fleet.pools {
		has = has && (!ps.usable() || !ps.launchableIn(space, key, space.Absent(key)))
	}
	if q.everywhere == nil {
		q.everywhere = map[label.Key]bool{}
	}
	q.everywhere[key] = has
	return has
}

// pinRedundant decides the domains of bins with pods of spread constraints that were left out. When there are more such
// pods, the constraint may bind, and a node in flight counts in its domain only if that is decided.
func (f *fleet) pinRedundant() {
	for _, b := range f.bins {
		for _, s := range b.placed {
			for _, key := range s.pending.rules.redundant {
				f.pinKey(b, key)
			}
		}
	}
}

// pinKey narrows the bin to the value of the label that its cheapest node has, if that leaves a claim of enough variety.
func (f *fleet) pinKey(b *bin, key label.Key) {
	ps := f.poolOf(b)
	if domainOf(f.snap.Space, b.row, key) >= 0 {
		return
	}
	for cheapest := range ps.cheapestFirst(b.kinds, b.row) {
		atom := domainOf(f.snap.Space, ps.pinned(b.row, cheapest.class), key)
		if atom < 0 {
			return
		}
		row := slices.Clone(b.row)
		f.snap.Space.SetOnly(row, key, atom)
		kinds := f.kindsFor(ps, b, row, b.used)
		if kinds.AndWith(b.kinds); !ps.lacking(b, kinds, row) {
			b.row, b.kinds = row, kinds
			f.recharge(b)
		}
		return
	}
}
