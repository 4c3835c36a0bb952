package placement

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
)

// Choosing a domain for one pod after the other.
//
// Representation: where a task is pinned by one key, a pod that is assigned to a domain changes only that domain. So a
// heap keeps the order of preference, and only the chosen domain moves in it. Domains that the rules do not admit are
// put aside until the least count of a spread constraint rises, which is the only event by which a domain becomes
// admissible while others fill. The least count of a constraint has a witness, a domain with that count. As long as
// counts only grow and the witness keeps its own, the least count is unchanged. Cost: each pod costs the logarithm of
// the number of domains; with rules by more than one key, or while a pod may be the first of its kind, it costs their
// number.

// chooser selects domains for the pods of a task.
type chooser struct {
	run  *run
	task *task
	// ranked is false when every pod examines all domains.
	ranked bool
	// heap are the domains that may be chosen, the best first. aside are those that the rules did not admit at floors.
	heap   []int
	aside  []int
	floors []int
	// last is the domain chosen last, which has changed since; -1 for none.
	last int
}

// fewDomains is the number of domains up to which all are examined for each pod.
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
			// The choice was not made by the heap: the domain is in it, out of order.
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
		case d.closed() || c.task.shut[d.id]:
		case c.run.admits(c.task, d).OK():
			c.last = at
			return at
		default:
			c.aside = append(c.aside, at)
		}
	}
	return -1
}

// restart marks the heap for a rebuild, which takes place when the chosen pod has been counted.
func (c *chooser) restart() {
	c.heap, c.aside, c.last = c.heap[:0], c.aside[:0], -1
	c.floors = nil
}

// readmit returns the domains put aside to the heap when a least count has risen.
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

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (c *chooser) Len() int { return len(c.heap) }

// Less orders domains: first those whose nodes have capacity, then by the fewest pods, then by price.
func (c *chooser) Less(i, j int) bool {
	a, b := c.task.domains[c.heap[i]], c.task.domains[c.heap[j]]
	return cmp.Or(cmp.Compare(full(a), full(b)), cmp.Compare(c.task.rules.crowd(a), c.task.rules.crowd(b)),
		cmp.Compare(a.price, b.price), cmp.Compare(c.heap[i], c.heap[j])) < 0
}

func (c *chooser) Swap(i, j int) { c.heap[i], c.heap[j] = c.heap[j], c.heap[i] }

// Push adds the index of a domain.
func (c *chooser) Push(at any) {
	i, _ := at.(int)
	c.heap = append(c.heap, i)
}

// Pop removes and returns the last element.
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
	defer t.rules.holdFloors(r, t)()
	for i, d := range t.domains {
		if d.closed() || t.shut[d.id] || !r.admits(t, d).OK() {
			continue
		}
		count, homeless, lack := t.rules.crowd(d), 0, 0
		if first {
			// The other pods must follow: prefer a domain with capacity for all, else one where nodes can be launched
			// for the rest.
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

// full returns 1 for a domain that needs a new node, else 0.
func full(d *domain) int {
	if d.room > 0 {
		return 0
	}
	return 1
}

// floor caches the least count of a spread constraint's domains.
type floor struct {
	// of is the state that the cached value is for: while it is unchanged, counts have only grown.
	of    floorKey
	known bool
	least int
	// witness is a domain with that count: counts and sure are its own. It is -1 when there is none.
	witness, counts, sure int
	// closed reports that the pods cannot open another domain.
	closed bool
	// held: no count changes, so the value is valid whatever the rules are; see holdFloors.
	held bool
}

// holdFloors computes the least count of each spread constraint once, for the examination of all domains, in which no
// count changes. Otherwise rules that permit a domain by other counts would need it again for each domain. The returned
// function ends this.
func (r *rules) holdFloors(of *run, t *task) (release func()) {
	if of.scan || len(t.domains) <= fewDomains {
		return func() {}
	}
	for i := range r.spreads {
		of.least(t, &r.spreads[i])
		r.spreads[i].floor.held = true
	}
	return func() {
		for i := range r.spreads {
			r.spreads[i].floor.held = false
		}
	}
}

type floorKey struct {
	epoch    int
	boarding bool
	domains  *domain
	shut     int
}

// least returns the least count of all domains, or 0 when there are fewer than minDomains. Domains are those with a
// node and, until every pod is placed, those where this pod may get one.
func (r *run) least(t *task, s *spreadRule) int {
	if s.floor.held {
		return s.floor.least
	}
	key := floorKey{epoch: s.epoch, boarding: r.boarding, shut: len(t.shut)}
	if len(t.domains) > 0 {
		key.domains = t.domains[0]
	}
	f := &s.floor
	// which domains are admissible changes with other counts
	if r.scan || len(t.rules.affinities)+len(t.rules.apart) > 0 {
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

// findLeast examines the domains, beginning with from, and stops at one with the least possible count. The witness is
// -1 when the count is not that of a domain.
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

// unopened returns a domain without nodes and pods where the pod may get a node, or -1 if there is none.
func (r *run) unopened(t *task, s *spreadRule) int {
	if r.boarding {
		return -1
	}
	for _, d := range t.domains {
		atom := t.rules.atom(d, s.key)
		if (d.buys || d.joins) && s.counts[atom] == 0 && !s.domains.Has(atom) && !t.shut[d.id] && atom != r.snap.Space.Absent(s.key) && r.neighboursAdmit(t, d) {
			return atom
		}
	}
	return -1
}

// neighboursAdmit reports whether the pod's affinity and the anti-affinity of other pods permit the domain. A domain in
// which the pod could never open a node does not count for the skew.
func (r *run) neighboursAdmit(t *task, d *domain) bool {
	return r.affinityAdmits(t, d).OK() && !slices.ContainsFunc(t.rules.apart, func(c *counter) bool { return r.keptApart(t, d, c) })
}
