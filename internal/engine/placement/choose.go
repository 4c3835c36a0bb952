package placement

import (
	"cmp"
	"container/heap"
	"slices"
)

// Choosing a domain for one pod after the other.
//
// Representation: where a group is pinned by one key, a pod that is assigned to a domain changes only that domain. So a
// heap keeps the order of preference, and only the chosen domain moves in it. Domains that the rules do not admit are
// put aside until the least count of a spread constraint rises, which is the only event by which a domain becomes
// admissible while others fill. The least count of a constraint has a witness, a domain with that count. As long as
// counts only grow and the witness keeps its own, the least count is unchanged. Cost: each pod costs the logarithm of
// the number of domains; with rules by more than one key, or while a pod may be the first of its kind, it costs their
// number.

// chooser selects domains for the pods of a group.
type chooser struct {
	admission *admission
	budget    *budget
	pending   *pendingGroup
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

func (as *assigner) chooser(pg *pendingGroup) *chooser {
	c := &chooser{admission: as.admission, budget: as.budget, pending: pg, last: -1, floors: make([]int, len(pg.rules.spreads)),
		ranked: len(pg.rules.pins) == 1 && len(pg.choices.domains) > fewDomains && !as.admission.scan}
	if !c.ranked {
		return c
	}
	for i := range pg.choices.domains {
		c.heap = append(c.heap, i)
	}
	heap.Init(c)
	return c
}

// next returns the best domain that the rules admit, or -1.
func (c *chooser) next() int {
	if !c.ranked || slices.ContainsFunc(c.pending.rules.affinities, func(a affinityRule) bool { return a.first() }) {
		at := c.choose()
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
		c.budget.spend(1)
		at, _ := heap.Pop(c).(int)
		d := c.pending.choices.domains[at]
		switch {
		case d.closed() || c.pending.choices.exhausted[d.id]:
		case c.admission.admits(c.pending.rules, &c.pending.choices, d).OK():
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
		c.floors = make([]int, len(c.pending.rules.spreads))
		for i := range c.pending.choices.domains {
			c.heap = append(c.heap, i)
		}
		heap.Init(c)
	}
	risen := false
	for i := range c.pending.rules.spreads {
		least := c.admission.least(c.pending.rules, &c.pending.choices, &c.pending.rules.spreads[i])
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
	a, b := c.pending.choices.domains[c.heap[i]], c.pending.choices.domains[c.heap[j]]
	return cmp.Or(cmp.Compare(needsNode(a), needsNode(b)), cmp.Compare(c.pending.rules.podsIn(a), c.pending.rules.podsIn(b)),
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

// needsNode returns 1 for a domain that needs a new node, else 0.
func needsNode(d *domain) int {
	if d.room > 0 {
		return 0
	}
	return 1
}

// choose returns the best domain that the rules admit, or -1.
func (c *chooser) choose() int {
	pg := c.pending
	best, bestCount, bestHomeless, bestLack := -1, 0, 0, 0
	c.budget.spend(len(pg.choices.domains))
	first := slices.ContainsFunc(pg.rules.affinities, func(a affinityRule) bool { return a.first() })
	defer c.admission.holdFloors(pg.rules, &pg.choices)()
	for i, d := range pg.choices.domains {
		if d.closed() || pg.choices.exhausted[d.id] || !c.admission.admits(pg.rules, &pg.choices, d).OK() {
			continue
		}
		count, homeless, lack := pg.rules.podsIn(d), 0, 0
		if first {
			// The other pods must follow: prefer a domain with capacity for all, else one where nodes can be launched
			// for the rest.
			if lack = max(0, len(pg.left)-max(0, d.room)); !d.launchable {
				homeless = lack
			}
		}
		if best >= 0 {
			b := pg.choices.domains[best]
			if cmp.Or(cmp.Compare(homeless, bestHomeless), cmp.Compare(lack, bestLack),
				cmp.Compare(needsNode(d), needsNode(b)), cmp.Compare(count, bestCount), cmp.Compare(d.price, b.price)) >= 0 {
				continue
			}
		}
		best, bestCount, bestHomeless, bestLack = i, count, homeless, lack
	}
	return best
}
