package bound

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// search looks for good values by column generation, and keeps the best values that it can prove.
//
//	1 values     of the program over the known patterns, mixed with the best proved values (which stabilizes them)
//	2 appraise   the available kinds, the most promising first; the largest excess scales the values down
//	3 patterns   found in step 2 that make the program cheaper are added to it
//
// It repeats the steps until the two bounds meet or the work is done.
type search struct {
	*appraiser
	master *master
	rent   int64
	// share is the amount of work for this price per node, end the count at which it is done.
	share, end int64
	// best is the highest proved bound, in USD per hour, by the values center.
	best   float64
	center []float64
	// first holds the values of the ascent, which prove firstBest.
	first     []float64
	firstBest float64
	// sums holds the room of each class of limited supplies, by class and resource.
	sums []float64
	// effort is how many patterns a proof may try.
	effort int
	// offered holds the columns of patterns and the price of their kind.
	offered []offered
}

type offered struct {
	column int
	price  int64
}

const usd = model.Nano

func newSearch(p *problem, rent, work int64) *search {
	s := &search{appraiser: newAppraiser(p), center: make([]float64, len(p.items))}
	s.setRent(rent)
	s.share, s.end = work, work
	s.firstValues()
	s.firstProgram()
	return s
}

func (s *search) setRent(rent int64) {
	s.rent = rent
	for _, k := range s.kinds {
		k.cost = float64(k.price+rent) / usd
	}
	for _, st := range s.limited {
		for _, k := range st.kinds {
			if k.cost = 0; !st.owned {
				k.cost = float64(k.price+rent) / usd
			}
		}
	}
}

// reprice changes the price per node. The known patterns are kept, and so is the basis, which is still feasible.
func (s *search) reprice(rent, work int64) {
	s.setRent(rent)
	for _, o := range s.offered {
		s.master.columns[o.column].cost = float64(o.price+rent) / usd
	}
	before := slices.Clone(s.center)
	for _, k := range s.kinds {
		k.before = slices.Clone(k.center)
	}
	s.best = 0
	clear(s.center)
	s.share, s.end = work, s.spent()+work
	s.firstValues()
	// The values for the other price may be better, once lowered to this price.
	s.resume(before, func(k *kind) []float64 { return k.before })
	f := s.settleAll(effort, s.spent()+work/4)
	if total := s.bound(f); total > s.best {
		s.best = total
		s.recenter(f)
	}
}

func (s *search) spent() int64 { return s.work + s.master.work }

// firstProgram creates the initial program, with nodes that hold one item each.
func (s *search) firstProgram() {
	n := len(s.resources)
	right := make([]float64, len(s.items)+s.classes*n+s.problem.held)
	for i, it := range s.items {
		right[i] = float64(it.count)
	}
	for at := len(s.items); at < len(right); at++ {
		right[at] = 1
	}
	for _, st := range s.limited {
		if st.held && st.class >= 0 {
			right[len(s.items)+s.classes*n+st.class] = float64(st.count)
		}
	}
	s.master = newMaster(right)
	s.startItems()
	for i := range s.items {
		s.master.add(column{rows: []int32{int32(i)}, coefs: []float64{-1}})
	}
	for at := len(s.items); at < len(right); at++ {
		s.master.start(s.master.add(column{rows: []int32{int32(at)}, coefs: []float64{1}}))
	}
	s.openLimited()
}

func (s *search) startItems() {
	best, most := make([]*kind, len(s.items)), make([]int32, len(s.items))
	for _, k := range s.kinds {
		for j, i := range k.items {
			n := k.most[j]
			if set := s.items[i].set; set >= 0 {
				n = min(n, int32(s.roomy[set]))
			}
			if best[i] == nil || k.cost/float64(n) < best[i].cost/float64(most[i]) {
				best[i], most[i] = k, n
			}
		}
	}
	for i, k := range best {
		c := s.offer(k, pattern{items: []int32{int32(i)}, counts: []int32{most[i]}})
		s.master.start(c)
	}
}

// offer adds the pattern to the program and returns its column.
func (s *search) offer(k *kind, p pattern) int {
	c := column{cost: k.cost, rows: p.items}
	for _, n := range p.counts {
		c.coefs = append(c.coefs, float64(n))
	}
	at := s.master.add(c)
	s.offered = append(s.offered, offered{at, k.price})
	return at
}

// openLimited adds columns that assign items to the classes of limited supplies. Each class counts as one large node.
func (s *search) openLimited() {
	n := len(s.resources)
	s.sums = make([]float64, s.classes*n)
	for _, st := range s.limited {
		if st.held || st.committed {
			continue
		}
		for r := range n {
			most := 0.0
			for _, k := range st.kinds {
				most = max(most, k.room[r])
			}
			s.sums[st.class*n+r] += float64(float64(st.count) * most)
		}
	}
	open := make([]bool, s.classes*len(s.items))
	for _, st := range s.limited {
		if st.held || st.committed {
			continue
		}
		for _, k := range st.kinds {
			for _, i := range k.items {
				open[st.class*len(s.items)+int(i)] = true
			}
		}
	}
	for at, is := range open {
		if !is {
			continue
		}
		class, i := at/len(s.items), at%len(s.items)
		c := column{rows: []int32{int32(i)}, coefs: []float64{1}}
		for r := range n {
			if need := s.need[i*n+r]; need > 0 {
				c.rows = append(c.rows, int32(len(s.items)+class*n+r))
				c.coefs = append(c.coefs, need/s.sums[class*n+r])
			}
		}
		s.master.add(c)
	}
}

// run improves the values until they are optimal for the program or the work is done, and proves the result.
func (s *search) run() Certificate {
	s.effort = effort
	mix := 1.0 // the first patterns come from the first values
	for s.spent() < s.end {
		s.master.solve((s.end - s.spent()) / 2)
		s.separate(mix)
		f, found := s.appraise()
		if total := s.bound(f); total > s.best {
			s.best = total
			s.recenter(f)
		}
		added := s.admit(found) + s.openHeld()
		if s.master.worth()-s.best <= float64(0.0005*s.master.worth()) {
			break
		}
		switch {
		case added > 0:
			mix = calm
		case mix == 1:
			mix = calm
		case mix > 0:
			mix = 0
		case s.effort >= effortMost:
			return s.certify()
		default:
			s.effort *= 8
			mix = calm
		}
	}
	return s.certify()
}

// recenter stores the values, divided by the factor, and the weights that prove them.
func (s *search) recenter(factor float64) {
	for i, v := range s.value {
		s.center[i] = v / factor
	}
	for _, k := range s.kinds {
		for r, w := range k.weights {
			k.center[r] = w / factor
		}
	}
}

// separate sets the values to appraise: between the program's values and the best known ones.
func (s *search) separate(mix float64) {
	if s.best == 0 {
		mix = 0
	}
	for i := range s.value {
		s.value[i] = float64(mix*s.center[i]) + float64((1-mix)*max(0, s.master.dual[i]))
	}
}

// quote is a kind and the bound on its worth, as a multiple of its cost.
type quote struct {
	kind   *kind
	excess float64
}

// candidate is a pattern that may improve the program.
type candidate struct {
	kind    *kind
	pattern pattern
}

// patternsPerRound is the number of kinds for which a pattern is searched in each round.
const patternsPerRound = 100

const (
	// calm is the share of the best values in the mix of values to try.
	calm = 0.75
	// effort is how many patterns a proof may try at first, effortMost when that number brings no more progress.
	effort     = 1_000
	effortMost = 500_000
)

// appraise lowers the values until no available kind is worth more than it costs, and returns patterns that were
// worth more. The factor, at most one, is the highest ratio of a kind's worth to its cost.
func (s *search) appraise() (factor float64, found []candidate) {
	for n, q := range s.quotes() {
		if q.excess <= max(factor, 1) && (n >= patternsPerRound || q.excess <= 1 && factor == 1) {
			return max(factor, min(1, q.excess)), found
		}
		if s.spent() > s.end+s.end/4 {
			s.scale(q.excess)
			return 1, found
		}
		k := q.kind
		if f := s.relaxed(k, k.weights, nil); n >= patternsPerRound && f <= k.cost {
			factor = max(factor, f/k.cost) // earlier reductions have lowered this kind too
			continue
		}
		best := s.descend(k, 20)
		found = append(found, candidate{k, best})
		top := k.tight
		if goal := max(factor, 0.5) * k.cost; top > goal && best.worth < float64(top*0.999) {
			top = s.prove(k, max(goal, best.worth), s.effort)
			for _, other := range s.deep.found {
				found = append(found, candidate{k, other})
			}
		}
		s.lower(k, top)
		factor = max(factor, min(1, top/k.cost))
	}
	return factor, found
}

// quotes bounds the worth of every kind at its current weights, highest first.
func (s *search) quotes() []quote {
	quotes := make([]quote, len(s.kinds))
	for n, k := range s.kinds {
		quotes[n] = quote{k, s.relaxed(k, k.weights, nil) / k.cost}
	}
	slices.SortStableFunc(quotes, func(a, b quote) int { return cmp.Compare(b.excess, a.excess) })
	return quotes
}

// admit adds the patterns that make the program cheaper, and returns their number.
func (s *search) admit(found []candidate) int {
	added := 0
	for _, c := range found {
		if s.admits(c, 0) {
			s.offer(c.kind, c.pattern)
			added++
		}
	}
	return added
}

// admits reports whether the pattern makes the program cheaper. row is the dual value of the row of its nodes, at most 0.
func (s *search) admits(c candidate, row float64) bool {
	worth := row
	for j, i := range c.pattern.items {
		worth += float64(float64(c.pattern.counts[j]) * s.master.dual[i])
	}
	return worth > float64(c.kind.cost*(1+1e-7))
}

// bound returns the bound that the values prove when they are divided by the factor.
func (s *search) bound(factor float64) float64 {
	if factor <= 0 {
		return 0
	}
	total := 0.0
	for i, it := range s.items {
		total += float64(float64(it.count) * s.value[i])
	}
	return total/factor - s.credit(factor, s.probesPerLimited())
}

// manySupplies is the number of limited supplies above which they are not appraised individually in each round.
const manySupplies = 200

func (s *search) probesPerLimited() int {
	if len(s.limited) > manySupplies {
		return 0
	}
	return 8
}

// credit returns the worth of the limited supplies beyond their cost when the values are divided by the factor.
func (s *search) credit(factor float64, steps int) float64 {
	n, total := len(s.resources), 0.0
	for _, st := range s.limited {
		most := 0.0
		for _, k := range st.kinds {
			k.tight = s.relaxed(k, k.weights, nil)
			copy(s.step, k.weights)
			for r := range s.step {
				if k.like != nil {
					s.step[r] = k.like.weights[r]
				} else {
					s.step[r] = s.classWeight(st.class*n + r)
				}
			}
			if f := s.relaxed(k, s.step, nil); f < k.tight {
				copy(k.weights, s.step)
				k.tight = f
			}
			if steps > 0 && !st.committed {
				st.found = s.descend(k, steps)
			}
			top := k.tight
			if st.held && st.class >= 0 {
				top = s.prove(k, max(st.found.worth, float64(factor*k.cost)), effort)
			}
			if top /= factor; k.alternative != nil {
				top = min(top, k.alternative.cost)
			}
			most = max(most, (top-k.cost)/float64(max(1, k.units)))
		}
		total += float64(float64(st.count) * most)
	}
	return total
}

// classWeight returns the program's dual value of a resource of a class of limited supplies, per unit.
func (s *search) classWeight(at int) float64 {
	if s.sums == nil || s.sums[at] == 0 {
		return 0
	}
	return max(0, -s.master.dual[len(s.items)+at]/s.sums[at])
}
