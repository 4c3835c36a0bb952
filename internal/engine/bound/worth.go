package bound

import (
	"cmp"
	"math"
	"slices"
)

// The worth of a node is the value of its best pattern. It is bounded from above by Lagrangian relaxation of the
// resources, from below by a greedy pattern, and between the two by a search over whole pods.
//
// Counts of resources are integers below 2^53, so their sums and differences in float64 are exact. Only values are
// rounded, and the certificate has a margin for that.

// pattern holds counts of items on one node.
type pattern struct {
	items  []int32
	counts []int32
	worth  float64
}

// appraiser computes the worth of nodes for one problem. It keeps scratch space, so that it allocates only its
// results.
type appraiser struct {
	*problem
	// value by item.
	value []float64
	// work is the number of operations done.
	work int64

	slope, step []float64
	setBest     []float64
	setAt       []int32
	touched     []int32
	order       []ranked
	left        []float64
	counts      []int32
	setLeft     []int
	ahead       []float64
	deep        deepening
}

// ranked is an item of a kind in the order in which a greedy algorithm fills the kind.
type ranked struct {
	item, most int32
	rank       float64
	// reduced is the value beyond the worth of the item's resources.
	reduced float64
}

func newAppraiser(p *problem) *appraiser {
	r := len(p.resources)
	return &appraiser{problem: p, value: make([]float64, len(p.items)), slope: make([]float64, r), step: make([]float64, r),
		setBest: make([]float64, len(p.roomy)), setAt: make([]int32, len(p.roomy)), setLeft: make([]int, len(p.roomy)), left: make([]float64, r)}
}

// reduced returns an item's value beyond the worth of its resources by the weights.
func (a *appraiser) reduced(i int32, weights []float64) float64 {
	return a.reducedOf(a.value[i], i, weights)
}

func (a *appraiser) reducedOf(v float64, i int32, weights []float64) float64 {
	for r, w := range weights {
		v -= float64(w * a.need[int(i)*len(weights)+r])
	}
	return v
}

// relaxed returns the Lagrangian bound on the worth of a kind at the weights. If slope is given, it is set to the
// derivative of the bound by each weight.
func (a *appraiser) relaxed(k *kind, weights []float64, slope []float64) float64 {
	n := len(weights)
	a.work += int64(2 * len(k.items) * (n + 1))
	f := 0.0
	for r, w := range weights {
		f += float64(w * k.room[r])
		if slope != nil {
			slope[r] = k.room[r]
		}
	}
	a.touched = a.touched[:0]
	for j, i := range k.items {
		v := a.reduced(i, weights)
		if v <= 0 {
			continue
		}
		if s := a.items[i].set; s >= 0 {
			if a.setBest[s] == 0 {
				a.touched = append(a.touched, int32(s))
			}
			if v > a.setBest[s] {
				a.setBest[s], a.setAt[s] = v, i
			}
			continue
		}
		f += float64(v * float64(k.most[j]))
		a.lower(slope, i, float64(k.most[j]))
	}
	for _, s := range a.touched {
		f += float64(a.setBest[s] * float64(a.roomy[s]))
		a.lower(slope, a.setAt[s], float64(a.roomy[s]))
		a.setBest[s] = 0
	}
	return f
}

func (a *appraiser) lower(slope []float64, i int32, count float64) {
	for r := range slope {
		slope[r] -= float64(count * a.need[int(i)*len(slope)+r])
	}
}

// descend improves the weights of a kind by Polyak steps toward the worth of the best pattern found.
func (a *appraiser) descend(k *kind, steps int) pattern {
	best, at := a.relaxed(k, k.weights, a.slope), slices.Clone(k.weights)
	found := a.greedy(k, k.weights)
	trial := slices.Clone(at)
	ease := 1.0
	for n := range steps {
		norm := 0.0
		for r, s := range a.slope {
			// Each resource in units of the node's room, so that millicores and bytes have equal weight.
			if k.room[r] > 0 {
				s /= k.room[r]
				if trial[r] > 0 || s < 0 {
					norm += float64(s * s)
				}
			}
		}
		gap := best - found.worth
		if norm == 0 || gap <= float64(best*1e-4) {
			break
		}
		for r, s := range a.slope {
			if k.room[r] > 0 {
				trial[r] = max(0, trial[r]-float64(float64(ease*gap)*s)/float64(norm*float64(k.room[r]*k.room[r])))
			}
		}
		if f := a.relaxed(k, trial, a.slope); f < best {
			best = f
			copy(at, trial)
		} else {
			ease *= 0.7
		}
		if n%6 == 5 {
			if other := a.greedy(k, trial); other.worth > found.worth {
				found = other
			}
		}
	}
	copy(k.weights, at)
	k.tight = best
	if other := a.greedy(k, at); other.worth > found.worth {
		found = other
	}
	return found
}

// rank orders the items of a kind by value relative to the worth of their resources.
func (a *appraiser) rank(k *kind, weights []float64) {
	n := len(weights)
	a.order = a.order[:0]
	for j, i := range k.items {
		v := a.value[i]
		if v <= 0 {
			continue
		}
		reduced := a.reduced(i, weights)
		a.order = append(a.order, ranked{item: i, most: k.most[j], rank: v / max(v-reduced, float64(v*1e-9)), reduced: reduced})
	}
	a.work += int64(len(k.items)*n + 60*len(a.order))
	slices.SortFunc(a.order, func(x, y ranked) int {
		return cmp.Or(cmp.Compare(y.rank, x.rank), cmp.Compare(x.item, y.item))
	})
}

// greedy fills a kind in the order of rank.
func (a *appraiser) greedy(k *kind, weights []float64) pattern {
	a.rank(k, weights)
	copy(a.left, k.room)
	copy(a.setLeft, a.roomy)
	var p pattern
	for _, o := range a.order {
		n := a.fit(o, a.left)
		if s := a.items[o.item].set; s >= 0 {
			n = min(n, int32(a.setLeft[s]))
			a.setLeft[s] -= int(n)
		}
		if n > 0 {
			a.take(o.item, n)
			p.items, p.counts = append(p.items, o.item), append(p.counts, n)
			p.worth += float64(float64(n) * a.value[o.item])
		}
	}
	return p
}

// fit returns how many pods of an item fit into the remaining resources.
func (a *appraiser) fit(o ranked, left []float64) int32 {
	n := float64(o.most)
	for r, free := range left {
		if need := a.need[int(o.item)*len(left)+r]; need > 0 {
			n = min(n, math.Floor(free/need))
		}
	}
	return int32(max(0, n))
}

// take subtracts the resources of n pods of the item; a negative n adds them.
func (a *appraiser) take(i, n int32) {
	for r := range a.left {
		a.left[r] -= float64(float64(n) * a.need[int(i)*len(a.left)+r])
	}
}

// deepening is the state of a search over whole pods.
type deepening struct {
	weights []float64
	// goal is the worth below which patterns need not be distinguished. best is the worth of the best pattern found,
	// open the highest bound of a branch that was cut off.
	goal, best, open float64
	nodes            int
	// found holds the patterns that were the best at some point of the search.
	found []pattern
}

// prove bounds the worth of a kind by a search over at most the given number of patterns. The result is an upper
// bound and at least goal. The weights are those of the kind. A search with a high goal ends soon, so the goal is
// halved toward the given one as long as searches end.
func (a *appraiser) prove(k *kind, goal float64, nodes int) float64 {
	a.rank(k, k.weights)
	a.look()
	top := k.tight
	a.deep = deepening{weights: k.weights, nodes: nodes}
	for range 6 {
		middle := float64(0.5*goal) + float64(0.5*top)
		if top-goal < float64(0.002*top) {
			middle = goal
		}
		copy(a.left, k.room)
		copy(a.setLeft, a.roomy)
		a.counts = append(a.counts[:0], make([]int32, len(a.order))...)
		a.deep.goal, a.deep.open = middle, 0
		done := a.branch(0, 0)
		top = min(top, max(middle, a.deep.best, a.deep.open))
		goal = max(goal, a.deep.best)
		if !done || top <= goal {
			break
		}
	}
	return top
}

// look computes, for each position in the order, how much the remaining items may add beyond the worth of resources.
func (a *appraiser) look() {
	a.ahead = append(a.ahead[:0], make([]float64, len(a.order)+1)...)
	clear(a.setBest)
	for j := len(a.order) - 1; j >= 0; j-- {
		o := a.order[j]
		a.ahead[j] = a.ahead[j+1]
		if o.reduced <= 0 {
			continue
		}
		s := a.items[o.item].set
		switch {
		case s < 0:
			a.ahead[j] += float64(o.reduced * float64(o.most))
		case o.reduced > a.setBest[s]:
			a.ahead[j] += float64((o.reduced - a.setBest[s]) * float64(a.roomy[s]))
			a.setBest[s] = o.reduced
		}
	}
	clear(a.setBest)
}

// worthLeft returns the worth of the remaining resources.
func (a *appraiser) worthLeft() float64 {
	f := 0.0
	for r, w := range a.deep.weights {
		f += float64(w * a.left[r])
	}
	return f
}

// branch tries all patterns that extend the current one with items from position j on, as far as they may exceed the
// goal. It reports whether the search was complete.
func (a *appraiser) branch(j int, worth float64) bool {
	d := &a.deep
	if worth > d.best {
		d.best = worth
		d.found = append(d.found, a.patternAt(worth))
	}
	base := worth + a.worthLeft()
	for ; j < len(a.order); j++ {
		a.work += 25
		if base+a.ahead[j] <= max(d.goal, d.best) {
			return true
		}
		if !a.tryCounts(j, worth, base) {
			return false
		}
	}
	return true
}

// tryCounts tries item j in all counts, from as many as fit down to one.
func (a *appraiser) tryCounts(j int, worth, base float64) bool {
	d, o := &a.deep, a.order[j]
	n, s := a.fit(o, a.left), a.items[o.item].set
	if s >= 0 {
		n = min(n, int32(a.setLeft[s]))
	}
	for ; n > 0; n-- {
		with := base + float64(float64(n)*o.reduced)
		if with+a.ahead[j+1] <= max(d.goal, d.best) {
			if o.reduced >= 0 {
				break
			}
			continue
		}
		d.nodes--
		a.work += int64(8 * len(a.left))
		done := d.nodes > 0
		if done {
			a.put(j, s, n)
			done = a.branch(j+1, worth+float64(float64(n)*a.value[o.item]))
			a.put(j, s, -n)
			n := max(0, n-1)
			with = base + max(0, float64(float64(n)*o.reduced))
		}
		if !done {
			d.open = max(d.open, with+a.ahead[j+1], base+a.ahead[j+1])
			return false
		}
	}
	return true
}

func (a *appraiser) put(j, set int, n int32) {
	a.take(a.order[j].item, n)
	a.counts[j] += n
	if set >= 0 {
		a.setLeft[set] -= int(n)
	}
}

func (a *appraiser) patternAt(worth float64) pattern {
	p := pattern{worth: worth}
	for j, n := range a.counts {
		if n > 0 {
			p.items, p.counts = append(p.items, a.order[j].item), append(p.counts, n)
		}
	}
	return p
}
