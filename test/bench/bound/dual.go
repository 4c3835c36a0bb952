package bound

import (
	"math"
	"slices"
)

const (
	ascents = 250 // steps of the ascent
	restart = 60  // after so many steps the ascent returns to the best weights
	firstly = 0.2 // length of the first step
)

// charge is the amount that a node of a class charges a pod for each resource if only that resource has weight.
type charge struct {
	class int
	of    vector
}

// row is a group with its charges; the group pays the cheapest one.
type row struct {
	count   float64
	charges []charge
}

// cheapest returns the lowest price of any node that any pod may use.
func (p *problem) cheapest() float64 {
	least := math.Inf(1)
	for _, g := range p.groups {
		for _, o := range g.offers {
			least = min(least, o.price)
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// rows omits charges that are not lower in any resource than another charge of the same class.
func (p *problem) rows(rent float64) []row {
	rows := make([]row, len(p.groups))
	for i, g := range p.groups {
		rows[i].count = g.count
		perClass := make([][]vector, len(p.classes))
		for _, o := range g.offers {
			var v vector
			for k := range v {
				if o.free[k] > 0 {
					v[k] = (o.price - rent) * g.wants[k] / o.free[k]
				}
			}
			perClass[o.class] = append(perClass[o.class], v)
		}
		for c, all := range perClass {
			for _, v := range undominated(all) {
				rows[i].charges = append(rows[i].charges, charge{c, v})
			}
		}
	}
	return rows
}

func undominated(all []vector) []vector {
	slices.SortFunc(all, func(a, b vector) int { return slices.Compare(a[:], b[:]) })
	var kept []vector
	for _, v := range all {
		if !slices.ContainsFunc(kept, func(k vector) bool { return k.fits(v) }) {
			kept = append(kept, v)
		}
	}
	return kept
}

// value returns the bound for the weights, without the rent, and its gradient.
func (p *problem) value(rows []row, weights []vector) (float64, []vector) {
	total, gradient := 0.0, make([]vector, len(p.classes))
	for _, r := range rows {
		least, at := math.Inf(1), 0
		for i := range r.charges {
			w, x := &weights[r.charges[i].class], &r.charges[i].of
			if s := w[0]*x[0] + w[1]*x[1] + w[2]*x[2] + w[3]*x[3]; s < least {
				least, at = s, i
			}
		}
		total += r.count * least
		for k, x := range r.charges[at].of {
			gradient[r.charges[at].class][k] += r.count * x
		}
	}
	return total, gradient
}

// solve searches for weights with a large value.
func (p *problem) solve(rent float64) float64 {
	rows := p.rows(rent)
	best, found := p.grid(rows)
	weights := slices.Clone(found)
	for i := range ascents {
		value, gradient := p.value(rows, weights)
		if value > best {
			best, found = value, slices.Clone(weights)
		}
		steepest := 0.0
		for _, g := range gradient {
			for _, x := range g {
				steepest = max(steepest, math.Abs(x))
			}
		}
		if steepest == 0 {
			break
		}
		length := firstly / (1 + float64(i)/12)
		for c := range weights {
			for k := range weights[c] {
				weights[c][k] += length * gradient[c][k] / steepest
			}
			weights[c] = p.simplex(c, weights[c])
		}
		if i%restart == restart-1 {
			copy(weights, found)
		}
	}
	return best
}

// grid tries weights that are equal for all classes except for GPUs.
func (p *problem) grid(rows []row) (float64, []vector) {
	best, found := math.Inf(-1), []vector(nil)
	for x := range 11 {
		for y := range 11 - x {
			a, b := float64(x)/10, float64(y)/10
			weights := make([]vector, len(p.classes))
			for c := range weights {
				weights[c] = vector{a, b, 1 - a - b, 0}
				if p.classes[c].gpu {
					weights[c] = vector{a * .3, b * .3, (1 - a - b) * .3, .7}
				}
				weights[c] = p.simplex(c, weights[c])
			}
			if value, _ := p.value(rows, weights); value > best {
				best, found = value, weights
			}
		}
	}
	return best, found
}

// simplex returns the nearest vector without negative parts and with the sum 1. In classes without GPUs their weight
// is zero.
func (p *problem) simplex(class int, v vector) vector {
	n := 4
	if !p.classes[class].gpu {
		n = 3
	}
	sorted := slices.Clone(v[:n])
	slices.Sort(sorted)
	sum, shift := 0.0, 0.0
	for i := range sorted {
		x := sorted[n-1-i]
		sum += x
		if t := (sum - 1) / float64(i+1); x > t {
			shift = t
		}
	}
	var w vector
	for k := range n {
		w[k] = max(0, v[k]-shift)
	}
	return w
}
