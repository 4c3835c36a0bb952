package placement

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Choosing a domain for one pod after the other.
//
// Representation: where a task is pinned by one key, a pod that goes to a domain changes that domain and no other, so
// that a heap keeps the order of preference: only the domain that was chosen takes another place in it. Who the rules do
// not admit is set aside, until the emptiest domain of a spread constraint fills up, which is the only way in which a
// domain becomes admissible while others fill. The least count of a constraint has a witness, a domain with that count;
// as long as counts only grow and the witness keeps its own, the least is what it was. Cost: a pod costs the logarithm of
// the number of domains; with rules by more than one key, or while a pod may be the first of its kind, their number.

// chooser hands out domains for the pods of a task.
type chooser struct {
	run  *run
	task *task
	// ranked is false when every pod looks at all domains.
	ranked bool
	// heap are the domains that may be chosen, the best first; aside those that the rules did not admit at floors.
	heap   []int
	aside  []int
	floors []int
	// last is the domain handed out last, which has changed since; -1 for none.
	last int
}

// fewDomains are looked at one by one.
const fewDomains = 2

func (r *run) chooser(t *task) *chooser {
	c := &chooser{run: r, task: t, last: -1, floors: make([]int, len(t.rules.spreads)),
		ranked: len(t.rules.pins) == 1 && len(t.domains) > fewDomains && !r.scan}
	if !c.ranked {
		return c
	}
	for i := range t.domains {
		c.heap = append(c.heap, i)
	}
	heap.Init(c)
	return c
}

// next returns the best domain that the rules admit, or -1.
func (c *chooser) next() int {
	if !c.ranked || slices.ContainsFunc(c.task.rules.affinities, func(a affinityRule) bool { return a.first() }) {
		at := c.run.choose(c.task)
		if c.ranked {
			// The choice was not the heap's: the domain is in it, out of order.
			c.restart()
		}
		return at
	}
	if c.last >= 0 {
		heap.Push(c, c.last)
		c.last = -1
	}
	c.readmit()
	for len(c.heap) > 0 {
		c.run.worked(1)
		at, _ := heap.Pop(c).(int)
		d := c.task.domains[at]
		switch {
		case d.room <= 0 && !d.buys || c.task.shut[d.id]:
		case c.run.admits(c.task, d).OK():
			c.last = at
			return at
		default:
			c.aside = append(c.aside, at)
		}
	}
	return -1
}

// restart puts every domain into its place again, when the pod that was chosen for has been counted.
func (c *chooser) restart() {
	c.heap, c.aside, c.last = c.heap[:0], c.aside[:0], -1
	c.floors = nil
}

// readmit puts those aside back into the heap when a floor has risen.
func (c *chooser) readmit() {
	if c.floors == nil {
		c.floors = make([]int, len(c.task.rules.spreads))
		for i := range c.task.domains {
			c.heap = append(c.heap, i)
		}
		heap.Init(c)
	}
	risen := false
	for i := range c.task.rules.spreads {
		least := c.run.least(c.task, &c.task.rules.spreads[i])
		risen = risen || least != c.floors[i]
		c.floors[i] = least
	}
	if !risen {
		return
	}
	for _, at := range c.aside {
		heap.Push(c, at)
	}
	c.aside = c.aside[:0]
}

// Len, Less, Swap, Push and Pop make the chooser a heap.
func (c *chooser) Len() int { return len(c.heap) }

// Less: where nodes have room, then where there are fewest, then where it is cheapest.
func (c *chooser) Less(i, j int) bool {
	a, b := c.task.domains[c.heap[i]], c.task.domains[c.heap[j]]
	return cmp.Or(cmp.Compare(full(a), full(b)), cmp.Compare(c.task.rules.crowd(a), c.task.rules.crowd(b)),
		cmp.Compare(a.price, b.price), cmp.Compare(c.heap[i], c.heap[j])) < 0
}

func (c *chooser) Swap(i, j int) { c.heap[i], c.heap[j] = c.heap[j], c.heap[i] }

// Push takes the index of a domain.
func (c *chooser) Push(at any) {
	i, _ := at.(int)
	c.heap = append(c.heap, i)
}

// Pop returns the last.
func (c *chooser) Pop() any {
	end := len(c.heap) - 1
	at := c.heap[end]
	c.heap = c.heap[:end]
	return at
}

// choose returns the best domain that the rules admit, or -1.
func (r *run) choose(t *task) int {
	best, bestCount, bestHomeless, bestLack := -1, 0, 0, 0
	r.worked(len(t.domains))
	first := slices.ContainsFunc(t.rules.affinities, func(a affinityRule) bool { return a.first() })
	for i, d := range t.domains {
		if d.room <= 0 && !d.buys || t.shut[d.id] || !r.admits(t, d).OK() {
			continue
		}
		count, homeless, lack := t.rules.crowd(d), 0, 0
		if first {
			// The others have to follow: best where all have room, or else where nodes can be bought for the rest.
			if lack = max(0, len(t.left)-max(0, d.room)); !d.buys {
				homeless = lack
			}
		}
		if best >= 0 {
			b := t.domains[best]
			if cmp.Or(cmp.Compare(homeless, bestHomeless), cmp.Compare(lack, bestLack), cmp.Compare(full(d), full(b)), cmp.Compare(count, bestCount), cmp.Compare(d.price, b.price)) >= 0 {
				continue
			}
		}
		best, bestCount, bestHomeless, bestLack = i, count, homeless, lack
	}
	return best
}

// full is 1 for a domain where only a new node helps.
func full(d *domain) int {
	if d.room > 0 {
		return 0
	}
	return 1
}

// floor is the least count of a spread constraint's domains, as it was found last.
type floor struct {
	// of is what it holds for: as long as this is the same, counts have only grown.
	of    floorKey
	known bool
	least int
	// witness is a domain with that count: counts and sure are its own. -1 when there is none.
	witness, counts, sure int
	// closed: there is no domain that the pods may open.
	closed bool
}

type floorKey struct {
	epoch    int
	boarding bool
	domains  *domain
	shut     int
}

// least is the count of the emptiest domain, 0 when there are fewer than minDomains. Domains are those that a node has
// and, until everybody has a place, those where this pod may get one.
func (r *run) least(t *task, s *spreadRule) int {
	key := floorKey{epoch: s.epoch, boarding: r.boarding, shut: len(t.shut)}
	if len(t.domains) > 0 {
		key.domains = t.domains[0]
	}
	f := &s.floor
	if r.scan || len(t.rules.affinities)+len(t.rules.apart) > 0 { // whom a domain is open to changes with other counts
		*f = floor{}
	}
	if f.known && f.of == key && f.witness >= 0 && s.counts[f.witness] == f.counts && s.sure[f.witness] == f.sure {
		return f.least
	}
	from, atLeast := 0, 0
	if f.known && f.of == key && f.witness >= 0 {
		from, atLeast = f.witness, f.least
	}
	if !f.known || f.of != key {
		f.closed = false
	}
	f.known, f.of = true, key
	f.least, f.witness = r.findLeast(t, s, from, atLeast)
	if f.witness >= 0 {
		f.counts, f.sure = s.counts[f.witness], s.sure[f.witness]
	}
	return f.least
}

// findLeast looks at the domains, beginning with one of them. It looks no further than to one that has as few as any can
// have. The witness is -1 when the count is not that of a domain.
func (r *run) findLeast(t *task, s *spreadRule, from, atLeast int) (least, witness int) {
	least, witness = math.MaxInt, -1
	domains, wanted := 0, max(1, s.minDomains)
	for i := range s.counts {
		atom := (from + i) % len(s.counts)
		if s.counts[atom] == 0 && !s.domains.Has(atom) {
			continue
		}
		if s.certain.Has(atom) || s.sure[atom] > 0 {
			domains++
		}
		if s.sure[atom] < least {
			least, witness = s.sure[atom], atom
		}
		if least == 0 || s.floor.closed && least <= atLeast && domains >= wanted {
			return least, witness
		}
	}
	if domains < wanted {
		return 0, -1
	}
	if empty := r.unopened(t, s); empty >= 0 {
		return 0, empty
	}
	s.floor.closed = true
	return least, witness
}

// unopened is a domain that has no node and nobody in it, and where the pod may get one; -1 if there is none.
func (r *run) unopened(t *task, s *spreadRule) int {
	if r.boarding {
		return -1
	}
	for _, d := range t.domains {
		atom := t.rules.atom(d, s.key)
		if d.buys && s.counts[atom] == 0 && !s.domains.Has(atom) && !t.shut[d.id] && atom != r.snap.Space.Absent(s.key) && r.neighboursAdmit(t, d) {
			return atom
		}
	}
	return -1
}

// neighboursAdmit reports whether the pod's own affinity, and whoever keeps it away, let it into the domain. A domain
// where it could never open a node is none that anybody has to wait for.
func (r *run) neighboursAdmit(t *task, d *domain) bool {
	return r.affinityAdmits(t, d).OK() && !slices.ContainsFunc(t.rules.apart, func(c *counter) bool { return r.keptApart(t, d, c) })
}
