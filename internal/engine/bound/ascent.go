package bound

import (
	"encoding/binary"
	"math"
	"slices"
)

// The first values are those of divisible pods on divisible nodes. Nodes are grouped into classes of similar
// proportions, each class gives its resources weights that sum to one, and a node charges a pod
//
//	cost * sum over resources of weight * need / room
//
// so that the charges on a node never exceed its cost, whatever pods it holds. An item is worth its cheapest charge.
// The weights follow the gradient of the total worth: toward the resource that the pods that select the class need
// most.
//
// Where a rule limits how many pods of some items a node holds, a part of the cost of each node is rent. These pods
// share the rent, in addition to the charge, which then covers the rest of the cost.

// rate holds what a kind charges an item for each resource at full weight.
type rate struct {
	class int
	full  []float64
}

// ascent is the state of the gradient ascent.
type ascent struct {
	*search
	classOf []int
	// present reports, by class and resource, whether the nodes of the class have the resource.
	present [][]bool
	rates   [][]rate
	// classes and full hold the same rates contiguously, because each step reads all of them. The rates of item i are
	// at from[i] to from[i+1]; each has one entry of full per resource.
	from    []int
	classes []int
	full    []float64
	weights [][]float64
	slopes  [][]float64
	// rent of a node, USD per hour. lodgers holds the part of the rent that each pod of an item pays.
	rent    float64
	lodgers map[int]float64
}

const (
	gridSteps   = 6
	ascentSteps = 250
)

// firstValues computes the first values and sets the weights of the kinds to match.
func (s *search) firstValues() {
	lodgers := s.itemsLimitedPerNode()
	parts := []float64{0}
	if lodgers != nil {
		parts = []float64{0, 0.25, 0.5, 0.75, 0.999}
	}
	least := math.Inf(1)
	for _, k := range s.kinds {
		least = min(least, k.cost)
	}
	for _, part := range parts {
		a := &ascent{search: s, lodgers: lodgers, rent: float64(part * least)}
		a.classify()
		a.listRates()
		a.settle(a.ascend())
	}
	s.first, s.firstBest = slices.Clone(s.center), s.best
	for _, k := range s.kinds {
		k.first = slices.Clone(k.center)
	}
}

// itemsLimitedPerNode returns the items of which one node holds only a limited number, for the rule that requires most
// nodes, and the part of the rent that each of their pods pays. It returns nil if no rule requires more than one node.
func (s *search) itemsLimitedPerNode() map[int]float64 {
	var best map[int]float64
	forced := 1.0
	keep := func(nodes float64, items map[int]float64) {
		if nodes > forced {
			forced, best = nodes, items
		}
	}
	for set, room := range s.roomy {
		items, pods := map[int]float64{}, 0.0
		for i, it := range s.items {
			if it.set == set {
				items[i] = 1 / float64(room)
				pods += float64(it.count)
			}
		}
		keep(pods/float64(room), items)
	}
	for i, it := range s.items {
		if it.set < 0 && it.most < unbounded {
			keep(float64(it.count)/float64(it.most), map[int]float64{i: 1 / float64(it.most)})
		}
	}
	return best
}

// ascend returns the best weights found.
func (a *ascent) ascend() [][]float64 {
	best, at := 0.0, [][]float64(nil)
	keep := func(total float64) {
		if total > best || at == nil {
			best, at = total, make([][]float64, len(a.weights))
			for c, w := range a.weights {
				at[c] = slices.Clone(w)
			}
		}
	}
	shares := make([]int, len(a.resources))
	shares[0] = gridSteps
	for more := true; more; more = nextShares(shares) {
		for c := range a.weights {
			for r, n := range shares {
				a.weights[c][r] = float64(n)
			}
			a.normalize(c)
		}
		keep(a.climb())
	}
	a.restore(at)
	for n := range ascentSteps {
		total := a.climb()
		keep(total)
		a.move(0.2 / (1 + float64(n)/12))
		if n%60 == 59 {
			a.restore(at)
		}
	}
	return at
}

func (a *ascent) restore(at [][]float64) {
	for c, w := range at {
		copy(a.weights[c], w)
	}
}

// classify assigns kinds of similar proportions to one class.
func (a *ascent) classify() {
	known := map[string]int{}
	for _, k := range a.kinds {
		var key []byte
		present := make([]bool, len(k.room))
		for r, room := range k.room {
			present[r] = room > 0
			if room > 0 {
				key = binary.AppendVarint(key, int64(r))
				key = binary.AppendVarint(key, int64(math.Round(math.Log2(room/max(1, k.room[0])))))
			}
		}
		c, has := known[string(key)]
		if !has {
			c = len(known)
			known[string(key)] = c
			a.present = append(a.present, present)
			a.weights = append(a.weights, make([]float64, len(k.room)))
			a.slopes = append(a.slopes, make([]float64, len(k.room)))
		}
		a.classOf = append(a.classOf, c)
	}
}

// listRates lists the rates for each item. Of two rates of a class it omits one that is never cheaper.
func (a *ascent) listRates() {
	n := len(a.resources)
	a.rates = make([][]rate, len(a.items))
	full := make([]float64, n)
	for at, k := range a.kinds {
		class := a.classOf[at]
		for _, i := range k.items {
			for r := range full {
				if full[r] = 0; k.room[r] > 0 {
					full[r] = (k.cost - a.rent) * a.need[int(i)*n+r] / k.room[r]
				}
			}
			a.work += int64(n * (1 + len(a.rates[i])))
			if slices.ContainsFunc(a.rates[i], func(q rate) bool { return q.class == class && below(q.full, full) }) {
				continue
			}
			a.rates[i] = slices.DeleteFunc(a.rates[i], func(q rate) bool { return q.class == class && below(full, q.full) })
			a.rates[i] = append(a.rates[i], rate{class, slices.Clone(full)})
		}
	}
	a.from = []int{0}
	for _, rates := range a.rates {
		for _, q := range rates {
			a.classes, a.full = append(a.classes, q.class), append(a.full, q.full...)
		}
		a.from = append(a.from, len(a.classes))
	}
	a.rates = nil
}

func below(a, b []float64) bool {
	for r := range a {
		if a[r] > b[r] {
			return false
		}
	}
	return true
}

// climb computes the values of the items at the weights, and the gradient. It returns the total worth.
func (a *ascent) climb() float64 {
	total := 0.0
	for c := range a.slopes {
		clear(a.slopes[c])
	}
	n := len(a.resources)
	for i := range a.items {
		from, to := a.from[i], a.from[i+1]
		least, by := math.Inf(1), -1
		full := a.full[from*n : to*n]
		for j, class := range a.classes[from:to] {
			charge, rate := 0.0, full[j*n:(j+1)*n]
			for r, w := range a.weights[class] {
				charge += float64(w * rate[r])
			}
			if charge < least {
				least, by = charge, j
			}
		}
		a.work += int64((to - from) * n)
		if a.value[i] = least; a.rent > 0 {
			a.value[i] += float64(a.rent * a.lodgers[i])
		}
		count := float64(a.items[i].count)
		total += float64(count * a.value[i])
		slopes := a.slopes[a.classes[from+by]]
		for r, f := range full[by*n : (by+1)*n] {
			slopes[r] += float64(count * f)
		}
	}
	return total
}

// move moves the weights one step along the gradient.
func (a *ascent) move(step float64) {
	steepest := 0.0
	for _, slope := range a.slopes {
		steepest = max(steepest, slices.Max(slope))
	}
	for c, slope := range a.slopes {
		for r := range slope {
			a.weights[c][r] += float64(step*slope[r]) / max(steepest, 1e-300)
		}
		a.normalize(c)
	}
}

// normalize moves the weights of a class to the nearest nonnegative weights that sum to one (a projection onto the
// simplex), over the resources that its nodes have.
func (a *ascent) normalize(c int) {
	w, sorted := a.weights[c], []float64(nil)
	for r, x := range w {
		if !a.present[c][r] {
			w[r] = 0
			continue
		}
		sorted = append(sorted, x)
	}
	slices.Sort(sorted)
	slices.Reverse(sorted)
	sum, excess := 0.0, 0.0
	for i, x := range sorted {
		sum += x
		if t := (sum - 1) / float64(i+1); x > t {
			excess = t
		}
	}
	for r := range w {
		if a.present[c][r] {
			w[r] = max(0, w[r]-excess)
		}
	}
}

// settle computes the values at the weights. If they prove a higher bound than the best known, it keeps them and sets
// the weights of the kinds to match.
func (a *ascent) settle(at [][]float64) {
	a.restore(at)
	a.climb()
	total := a.bound(1)
	if total <= a.best && a.best > 0 {
		return
	}
	for at, k := range a.kinds {
		for r, w := range a.weights[a.classOf[at]] {
			if k.weights[r] = 0; k.room[r] > 0 {
				k.weights[r] = float64(w*(k.cost-a.rent)) / k.room[r]
			}
		}
	}
	a.recenter(1)
	a.best = max(0, total)
}

// nextShares advances to the next partition of the sum of the shares. It reports false after the last one.
func nextShares(shares []int) bool {
	last := len(shares) - 1
	rest := shares[last]
	shares[last] = 0
	at := last - 1
	for at >= 0 && shares[at] == 0 {
		at--
	}
	if at < 0 {
		return false
	}
	shares[at]--
	shares[at+1] = rest + 1
	return true
}
