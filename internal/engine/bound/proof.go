package bound

import "math"

// Proving values: the values are lowered until no available node is worth more than it costs.

// scale divides all values by a factor if it is above one.
func (s *search) scale(factor float64) {
	for i := range s.value {
		s.value[i] /= max(1, factor)
	}
}

// lower reduces the values of a kind's items until the kind is worth no more than it costs, given a bound on its
// worth. It uses the smaller of two reductions: all items in proportion; or, if the bound is that of the weights, w
// in proportion, and only those items that then exceed w.need, as far as w decreases.
func (s *search) lower(k *kind, top float64) {
	if top <= k.cost {
		return
	}
	all, some := k.cost/top, k.cost/k.tight
	lossAll, lossSome := 0.0, 0.0
	for _, i := range k.items {
		count, v := float64(s.items[i].count), s.value[i]
		lossAll += float64(count * float64(v*(1-all)))
		lossSome += float64(count * (v - s.lowered(i, k.weights, some)))
	}
	factor := some
	if lossAll < lossSome {
		factor = all
	}
	for _, i := range k.items {
		if lossAll < lossSome {
			s.value[i] *= all
		} else {
			s.value[i] = s.lowered(i, k.weights, some)
		}
	}
	for r := range k.weights {
		k.weights[r] *= factor
	}
}

func (s *search) lowered(i int32, weights []float64, factor float64) float64 {
	v := s.value[i]
	return min(v, float64(factor*max(v, v-s.reduced(i, weights))))
}

// margin is the relative distance of the certificate below the computed bound: values have rounding errors of about
// 1e-13.
const margin = 1e-9

// certify proves the best values again with more effort and stores them in whole nano-USD. If the work does not
// suffice, it uses the first values, whose proof costs nothing.
func (s *search) certify() Certificate {
	c := Certificate{NodePrice: s.rent}
	if s.best <= 0 {
		return c
	}
	s.resume(s.center, func(k *kind) []float64 { return k.center })
	f := s.settleAll(max(s.effort, 5_000), s.spent()+s.share/3)
	if s.bound(f) < s.firstBest {
		s.resume(s.first, func(k *kind) []float64 { return k.first })
		f = s.settleAll(0, 0)
	}
	for i, it := range s.items {
		each := int64(s.value[i] / f * usd * (1 - margin))
		for _, p := range it.parts {
			c.Worth = append(c.Worth, Worth{Group: p.group, Count: p.count, Each: each})
		}
	}
	c.Credit = int64(math.Ceil(s.credit(f, 40) * usd * (1 + margin)))
	return c
}

// resume restores values that were proved and the weights that prove them.
func (s *search) resume(values []float64, weights func(*kind) []float64) {
	copy(s.value, values)
	for _, k := range s.kinds {
		copy(k.weights, weights(k))
	}
}

// settleAll is like appraise for all kinds, without collecting patterns. Each proof may try effort patterns; it stops
// when the work reaches end.
func (s *search) settleAll(effort int, end int64) (factor float64) {
	for _, q := range s.quotes() {
		if q.excess <= factor || s.spent() > end {
			s.scale(q.excess)
			return max(factor, min(1, q.excess))
		}
		k := q.kind
		if f := s.relaxed(k, k.weights, nil); f <= float64(factor*k.cost) {
			continue
		}
		best := s.descend(k, 60)
		top := k.tight
		if goal := factor * k.cost; top > goal {
			top = s.prove(k, max(goal, best.worth), effort)
		}
		s.lower(k, top)
		factor = max(factor, min(1, top/k.cost))
	}
	return factor
}
