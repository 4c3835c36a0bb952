package placement

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Combinations of the values of several topology keys.
//
// A domain exists if a node is in it, or if an instance type with an offering of some pool can be in it. The product of
// the values of all keys is far larger: four labels of a catalog have 70 million combinations, and the catalog has a
// thousand. So the values are combined key by key, and each step keeps the types and offerings that have the values so
// far. A combination without any is dropped at once.
//
// A label that a pool leaves open has no type to restrict it, so two limits remain. A pod whose own constraints have
// more than mostCombinations is refused. Keys that only other pods' constraints name may add combinations up to
// mostBeside; beyond that, each combination of the pod's own keys keeps an equal part of them. The pod then chooses
// among fewer domains, all of which exist. So a constraint over all namespaces does not exclude the pods of others.

const (
	mostCombinations = 16 << 10
	mostBeside       = 1 << 10
	// fewCombinations are domains without cost in the work budget. Each domain beyond that costs domainWork, which
	// stands for its memory.
	fewCombinations = 64
	domainWork      = 32
	// mostRows is how many rows the domains of a run keep, if they are not long.
	mostRows = 256 << 10
	// mostInquired is the maximum number of domains that the reasons of a refusal examine.
	mostInquired = 64
	// overrun is how far one portion may exceed twice the budget.
	overrun = 4 << 20
)

// spent reports whether the run must not do more work: its part of the budget is spent or, with portions, far more than
// the whole budget is.
func (b *budget) spent() bool { return b.over() || b.limit > 0 && b.work > 2*b.limit+overrun }

// combinations returns the tuples of atoms on the pinned keys that the group's rows admit, and that a node or a type of
// some pool has. They are sorted by the last key first.
func (as *assigner) combinations(pg *pendingGroup) [][]int {
	pins := pg.rules.pins
	asked := make([]bitset.Set, len(pins))
	for i, key := range pins {
		asked[i] = as.atomsOf(pg, key)
	}
	pg.crowded, pg.cut = false, false
	if len(pins) == 1 {
		list := make([][]int, 0, asked[0].Count())
		for atom := range asked[0].All() {
			list = append(list, []int{atom})
		}
		as.budget.spend(max(0, len(list)-fewCombinations))
		return list
	}
	found := as.tuplesOfNodes(pins, asked)
	onNodes := len(found)
	for _, ps := range as.fleet.pools {
		if ps.spec.Types == nil || !ps.spec.Valid || ps.spec.Blocked != nil {
			continue
		}
		list, ok := as.combine(pg, ps, asked)
		for _, c := range list {
			found[idOf(c.atoms)] = c.atoms
		}
		if !ok || len(found)-onNodes > mostCombinations+mostBeside {
			pg.crowded = !as.budget.spent()
			return nil
		}
	}
	as.budget.spend(domainWork * max(0, len(found)-onNodes-fewCombinations))
	return slices.SortedFunc(maps.Values(found), func(a, b []int) int {
		for i := len(a) - 1; i > 0; i-- {
			if a[i] != b[i] {
				return cmp.Compare(a[i], b[i])
			}
		}
		return cmp.Compare(a[0], b[0])
	})
}

// tuplesOfNodes returns the tuples of atoms on the keys that nodes have, by their identity; see idOf.
func (as *assigner) tuplesOfNodes(keys []label.Key, asked []bitset.Set) map[string][]int {
	found := map[string][]int{}
	tuples := as.nodes.tuples(keys)
	as.budget.spend(max(0, len(tuples)-fewCombinations))
next:
	for id, atoms := range tuples {
		for i, atom := range atoms {
			if !asked[i].Has(atom) {
				continue next
			}
		}
		found[id] = atoms
	}
	return found
}

// tuples returns the tuples of atoms on the keys of all nodes that accept pods, by their identity. Groups with the same
// keys share them.
func (e *existingNodes) tuples(keys []label.Key) map[string][]int {
	of := keysOf(keys)
	if known := e.tuplesBy[of]; known != nil {
		return known
	}
	tuples, atoms := map[string][]int{}, make([]int, len(keys))
next:
	for _, n := range e.snap.Nodes {
		for i, key := range keys {
			if atoms[i] = e.snap.Space.Only(n.Row, key); atoms[i] < 0 {
				continue next
			}
		}
		if id := idOf(atoms); tuples[id] == nil && e.accepts(n) {
			tuples[id] = slices.Clone(atoms)
		}
	}
	if e.tuplesBy == nil {
		e.tuplesBy = map[string]map[string][]int{}
	}
	e.tuplesBy[of] = tuples
	return tuples
}

// combination is atoms on the first keys, and the types and classes of offerings of a pool that have them.
type combination struct {
	atoms   []int
	types   bitset.Set
	classes []int
}

// combine returns the combinations of the asked atoms that nodes of the pool can have. It returns false if the pod's
// own keys have too many, or if the budget is spent.
func (as *assigner) combine(pg *pendingGroup, ps *poolState, asked []bitset.Set) ([]combination, bool) {
	pins := pg.rules.pins
	_, classes := ps.spec.Types.Offered(ps.spec.Start)
	list := []combination{{make([]int, len(pins)), ps.spec.Eligible, classes}}
	for _, at := range pg.rules.ownFirst() {
		most := math.MaxInt
		own := slices.Contains(pg.rules.own, pins[at])
		if !own {
			most = max(1, mostBeside/len(as.fleet.pools)/max(1, len(list)))
		}
		var longer []combination
		for _, c := range list {
			next, all := as.extend(ps, c, at, extension{pins[at], asked[at], most})
			pg.cut = pg.cut || !all
			longer = append(longer, next...)
			if own && len(longer) > mostCombinations || as.budget.spent() {
				return nil, false
			}
		}
		list = longer
	}
	return list, true
}

// extension is a key, its admitted atoms, and how many of them a combination may get.
type extension struct {
	key   label.Key
	asked bitset.Set
	most  int
}

// extend returns the combinations with one more atom that some type with an available offering has. It returns false
// if there are more than permitted.
func (as *assigner) extend(ps *poolState, c combination, at int, by extension) ([]combination, bool) {
	index := ps.spec.Types
	from, to := as.snap.Space.Span(by.key)
	atoms := by.asked.Clone()
	atoms.AndWith(bitset.Set(ps.spec.Start[from:to]))
	if atoms.Count() > fewCombinations {
		index.KeepAtoms(atoms, c.types, by.key)
	}
	var list []combination
	for atom := range atoms.All() {
		as.budget.spend(1)
		types := index.Having(c.types, by.key, atom)
		classes := index.Keep(c.classes, by.key, atom)
		if !slices.ContainsFunc(classes, func(i int) bool { return index.Classes[i].Types.Intersects(types) }) {
			continue
		}
		if len(list) == by.most {
			return list, false
		}
		longer := combination{slices.Clone(c.atoms), types, classes}
		longer.atoms[at] = atom
		list = append(list, longer)
	}
	return list, true
}

// ownFirst returns the indexes of the pinned keys: those of the pod's own constraints, then the others.
func (r *rules) ownFirst() []int {
	var own, others []int
	for i, key := range r.pins {
		if slices.Contains(r.own, key) {
			own = append(own, i)
		} else {
			others = append(others, i)
		}
	}
	return append(own, others...)
}

// rowsIn returns the group's rows in the domain.
func (pg *pendingGroup) rowsIn(space *label.Space, d *domain) []label.Row {
	if d.rows != nil {
		return d.rows
	}
	return pg.pinned(space, d.atoms)
}

// keepRows stores the rows of a domain, while the domains of the run have few.
func (as *assigner) keepRows(d *domain, rows []label.Row) {
	size := len(rows) * (1 + as.snap.Space.Words()/longRow)
	if as.keptRows+size <= mostRows {
		d.rows = rows
		as.keptRows += size
	}
}
