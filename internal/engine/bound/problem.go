package bound

import (
	"cmp"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// problem is the part of the snapshot that the bound uses.
type problem struct {
	snap *model.Snapshot
	// wanted selects the pods.
	wanted func(*model.Pod) bool
	specs  []*spec
	items  []*item
	// resources that some item requests; need holds the requests, items x resources.
	resources []quantity.Resource
	need      []float64
	// roomy holds, for each set of items, how many of their pods one node holds.
	roomy []int
	// kinds are available in unlimited number, limited supplies in limited number.
	kinds   []*kind
	limited []*limitedSupply
	// classes is the number of classes of limited supplies.
	classes int
	// held is the number of limited supplies of held nodes that have a row in the program.
	held int
}

// spec holds the requirements of groups other than resources; many groups share one.
type spec struct {
	rows        []label.Row
	tolerations []model.Toleration
}

// item is a set of groups that the bound does not distinguish.
type item struct {
	parts    []part
	count    int64
	requests quantity.Vector
	spec     int
	// most is the number of pods on one node by the item's own rules; set is the index in roomy, -1 for none.
	most int
	set  int
}

type part struct {
	group *model.Group
	count int64
}

// kind is a node type that is available or exists: its free resources and the items that may use it.
type kind struct {
	price int64
	// units is how much of a limited supply one node takes.
	units int64
	free  quantity.Vector
	specs bitset.Set
	// cost is the price in USD, including the price per node.
	cost float64
	// room is free, by active resource. items may use the node, each with at most the corresponding number in most.
	room  []float64
	items []int32
	most  []int32
	// weights holds the best multipliers found so far, in money per unit of each resource. tight is the last bound on
	// the worth that they gave. center holds the multipliers that prove the best values, first those of the first
	// values, before those for another price per node.
	weights, center, first, before []float64
	tight                          float64
	// like is the available kind that is most similar to one of a limited supply that has a price, nil for others.
	// alternative is the cheapest available kind that holds what a committed one does, nil for none: the pods on either are
	// worth no more than it costs.
	like, alternative *kind
}

// limitedSupply is a limited number of units for nodes, each of which is one of the kinds.
type limitedSupply struct {
	count int64
	// owned nodes cost nothing to use. held nodes may be kept at their price. committed nodes are available at their list
	// price, too.
	owned, held, committed bool
	// found is the last pattern found for held nodes.
	found pattern
	kinds []*kind
	// class is the number of the class of limited supplies that accept the same specs; for held nodes it is that of their
	// row, -1 for none.
	class int
}

func newProblem(snap *model.Snapshot, opts Options) *problem {
	p := &problem{snap: snap, wanted: opts.Pods}
	if p.wanted == nil {
		p.wanted = func(*model.Pod) bool { return true }
	}
	p.gather(seatsOf(opts.Held))
	p.addOfferings()
	p.keep()
	p.drop()
	p.hold(opts.Held)
	p.encode()
	p.compare()
	p.classify()
	return p
}

// gather groups the pods into items.
func (p *problem) gather(seats *seats) {
	sets := p.setsOf()
	specs, items := map[string]int{}, map[string]*item{}
	for _, g := range p.snap.Groups {
		if len(g.Rows) == 0 || !slices.ContainsFunc(g.Pods, p.wanted) {
			continue
		}
		key := specKey(g)
		s, known := specs[key]
		if !known {
			s = len(p.specs)
			specs[key] = s
			p.specs = append(p.specs, &spec{rows: g.Rows, tolerations: g.Tolerations})
		}
		it := &item{requests: g.Requests, spec: s, most: mostOf(g), set: sets.of(g)}
		n := seats.count(g, it, sets.room(it.set), p.wanted)
		if it.count, it.parts = n, []part{{g, n}}; n == 0 {
			continue
		}
		own := it.most < unbounded && (it.set < 0 || it.most < sets.roomy[it.set])
		id := string(it.key(own))
		if same := items[id]; same == nil {
			items[id] = it
			p.items = append(p.items, it)
		} else {
			same.parts = append(same.parts, it.parts...)
			same.count += n
			if own {
				same.most += it.most
			}
		}
	}
	p.roomy = sets.roomy
}

// key returns a key that is equal for items that need not be distinguished. own says that each group has its own rule
// about how many of its pods one node holds: such groups are merged if they have the same number of pods, because
// their worth is then equal.
func (it *item) key(own bool) []byte {
	key := binary.AppendVarint(nil, int64(it.spec))
	key = binary.AppendVarint(key, int64(it.set))
	for i := len(it.requests) - 1; i >= 0 && it.requests[i] == 0; i-- {
		it.requests = it.requests[:i]
	}
	for _, n := range it.requests {
		key = binary.AppendVarint(key, n)
	}
	key = append(key, 0xff)
	key = binary.AppendVarint(key, int64(it.most))
	if own {
		key = binary.AppendVarint(key, it.count)
	}
	return key
}

const unbounded = 1 << 30

// specKey encodes the requirements of the group other than resources.
func specKey(g *model.Group) string {
	var key []byte
	for _, row := range g.Rows {
		for _, w := range row {
			key = binary.LittleEndian.AppendUint64(key, w)
		}
	}
	for _, t := range g.Tolerations {
		key = append(key, t.Key+"\x00"+t.Value+"\x00"+t.Effect.String()...)
		if t.Exists {
			key = append(key, 1)
		}
		key = append(key, 0)
	}
	return string(key)
}

// drop removes the items that no available kind can hold, and the kinds that another kind dominates.
func (p *problem) drop() {
	p.kinds = undominated(p.kinds)
	var kept []*item
	for _, it := range p.items {
		if slices.ContainsFunc(p.kinds, func(k *kind) bool { return k.specs.Has(it.spec) && it.requests.Fits(k.free) }) {
			kept = append(kept, it)
		}
	}
	p.items = kept
}

// undominated returns the kinds that are not dominated: a kind dominates another if it is no more expensive, no smaller and
// no more restrictive.
func undominated(kinds []*kind) []*kind {
	slices.SortStableFunc(kinds, func(a, b *kind) int { return cmp.Compare(a.price, b.price) })
	var kept []*kind
	for _, k := range kinds {
		if !slices.ContainsFunc(kept, func(q *kind) bool { return q.covers(k) }) {
			kept = append(kept, k)
		}
	}
	return kept
}

func (k *kind) covers(q *kind) bool {
	for i, w := range q.specs {
		if w&^k.specs[i] != 0 {
			return false
		}
	}
	for r := range max(len(k.free), len(q.free)) {
		if k.free.At(quantity.Resource(r)) < q.free.At(quantity.Resource(r)) {
			return false
		}
	}
	return true
}

// encode fills the arrays that the arithmetic uses.
func (p *problem) encode() {
	for r := range p.snap.Resources {
		if slices.ContainsFunc(p.items, func(it *item) bool { return it.requests.At(quantity.Resource(r)) > 0 }) {
			p.resources = append(p.resources, quantity.Resource(r))
		}
	}
	for _, it := range p.items {
		for _, r := range p.resources {
			p.need = append(p.need, float64(max(0, it.requests.At(r))))
		}
	}
	var items, most []int32
	admit := func(k *kind) bool {
		for _, r := range p.resources {
			k.room = append(k.room, float64(k.free.At(r)))
		}
		items, most = items[:0], most[:0]
		for i, it := range p.items {
			if n := it.requests.Times(k.free); n > 0 && k.specs.Has(it.spec) {
				items = append(items, int32(i))
				most = append(most, int32(min(n, it.count, int64(it.most))))
			}
		}
		k.items, k.most = slices.Clone(items), slices.Clone(most)
		k.weights, k.center = make([]float64, len(p.resources)), make([]float64, len(p.resources))
		return len(k.items) > 0
	}
	p.kinds = slices.DeleteFunc(p.kinds, func(k *kind) bool { return !admit(k) })
	for _, s := range p.limited {
		s.kinds = slices.DeleteFunc(s.kinds, func(k *kind) bool { return !admit(k) })
	}
	p.limited = slices.DeleteFunc(p.limited, func(s *limitedSupply) bool { return len(s.kinds) == 0 })
}

// maxClasses limits the rows that the limited supplies add to the program; all further classes share the last one.
const maxClasses = 24

// classify numbers the limited supplies that have no price, by the specs that they accept.
func (p *problem) classify() {
	known := map[string]int{}
	for _, s := range p.limited {
		if s.held || s.committed {
			continue
		}
		var key strings.Builder
		for _, k := range s.kinds {
			var word [8]byte
			for _, w := range k.specs {
				binary.LittleEndian.PutUint64(word[:], w)
				key.Write(word[:])
			}
		}
		class, has := known[key.String()]
		if !has {
			class = min(len(known), maxClasses-1)
			known[key.String()] = class
		}
		s.class = class
		p.classes = max(p.classes, class+1)
	}
}
