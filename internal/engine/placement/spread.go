package placement

import (
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Topology spread chosen with the packing. A spread constraint limits how far the counts of domains may differ, and asks
// for nothing else. So pods that need new nodes are not bound to the domains that they were assigned to: the packing
// opens each bin where it costs least, within what the constraint permits, and counts what is placed where.
//
// That holds for groups whose only rule by domain is one spread constraint, which counts no pods of other groups that are
// being placed. Where other rules apply, or a limit leaves some pods without a node, the assignment holds.

// skewLimits are how many more pods of a group each domain may get, such that the rest can still be placed. A domain
// may exceed the least one by maxSkew, so what one domain gets beyond that is due to all the others.
type skewLimits struct {
	domains []*domain
	maxSkew int
	// most and least are the largest and the certain counts, by domain. floor is the least count of the other domains.
	most, least []int
	floor       int
	// left are the pods that are not placed yet. highest is the count of the fullest domain that got pods.
	left, highest int
	// may is how many more pods each domain may get, and taken are the pods that it got.
	may   []int
	taken [][]*model.Pod
}

// newSkewLimits returns the limits for so many pods of a group with one spread constraint.
func (ad *admission) newSkewLimits(pg *pendingGroup, pods int) *skewLimits {
	s := &pg.rules.spreads[0]
	q := &skewLimits{maxSkew: s.maxSkew, floor: math.MaxInt, left: pods}
	open := map[int]bool{}
	for _, d := range pg.choices.domains {
		if atom := pg.rules.atom(d, s.counter.key); d.launchable && !pg.choices.exhausted[d.id] && atom != ad.space.Absent(s.counter.key) {
			open[atom] = true
			q.domains = append(q.domains, d)
			q.most, q.least = append(q.most, s.counter.counts[atom]), append(q.least, s.counter.sure[atom])
		}
	}
	domains := len(q.domains)
	for atom, count := range s.counter.counts {
		if !open[atom] && (count > 0 || s.counter.domains.Has(atom)) {
			q.floor = min(q.floor, s.counter.sure[atom])
			domains++
		}
	}
	if domains < s.minDomains {
		q.floor = 0
	}
	q.may, q.taken = make([]int, len(q.domains)), make([][]*model.Pod, len(q.domains))
	q.update()
	return q
}

func (q *skewLimits) clone() *skewLimits {
	if q == nil {
		return nil
	}
	c := *q
	c.most, c.least, c.may, c.taken = slices.Clone(q.most), slices.Clone(q.least), slices.Clone(q.may), slices.Clone(q.taken)
	for i := range c.taken {
		c.taken[i] = slices.Clip(c.taken[i])
	}
	return &c
}

// record notes that a domain got pods.
func (q *skewLimits) record(at int, pods []*model.Pod) {
	q.taken[at] = append(q.taken[at], pods...)
	q.most[at], q.least[at], q.left = q.most[at]+len(pods), q.least[at]+len(pods), q.left-len(pods)
	q.highest = max(q.highest, q.most[at])
	q.update()
}

// update computes how many more pods each domain may get. More pods are never easier to place than fewer.
func (q *skewLimits) update() {
	for at := range q.may {
		low, high := 0, q.left
		for low < high {
			if n := (low + high + 1) / 2; q.permits(at, n) {
				low = n
			} else {
				high = n - 1
			}
		}
		q.may[at] = low
	}
}

// permits reports whether the rest of the pods suffices for the other domains if the domain gets n.
func (q *skewLimits) permits(at, n int) bool {
	least := max(q.highest, q.most[at]+n) - q.maxSkew
	if least > q.floor {
		return false
	}
	due := max(0, least-q.least[at]-n)
	for i, count := range q.least {
		if i != at {
			due += max(0, least-count)
		}
	}
	return due <= q.left-n
}

// mostOpenDomains is the maximum number of domains that a packing chooses from.
const mostOpenDomains = 16

// mayChooseDomains reports whether the packing may choose the domains of the group.
func (as *assigner) mayChooseDomains(pg *pendingGroup) bool {
	rs := pg.rules
	if len(rs.pins) != 1 || len(rs.spreads) != 1 || len(rs.affinities)+len(rs.apart) > 0 || len(pg.choices.domains) > mostOpenDomains {
		return false
	}
	s := &rs.spreads[0]
	return s.self && s.counter.groups == 1 && len(rs.touched) == 1 && rs.touched[0] == s.counter &&
		!slices.ContainsFunc(pg.choices.domains, func(d *domain) bool { return d.counted != nil && d.counted[0] != surely })
}

// withAnyDomain returns the batches with one for each group that may choose its domains with the packing.
func (l *launcher) withAnyDomain(batches []*domainBatch) []*domainBatch {
	var list []*domainBatch
	of := map[*pendingGroup][]*domainBatch{}
	for _, batch := range batches {
		pg := batch.pending
		if len(batch.left) == 0 || batch.domain == nil || !l.assigner.mayChooseDomains(pg) {
			list = append(list, batch)
			continue
		}
		l.assigner.counters.assign(pg, batch.domain, -len(batch.left))
		if of[pg] == nil {
			list = append(list, &domainBatch{pending: pg, first: batch.first, anyDomain: true})
		}
		of[pg] = append(of[pg], batch)
	}
	for _, batch := range list {
		if batch.anyDomain {
			batch.gather(of[batch.pending])
		}
	}
	return list
}

// gather takes the pods of the batches, in the order of their assignment.
func (batch *domainBatch) gather(of []*domainBatch) {
	for _, one := range of {
		batch.rows = append(batch.rows, one.rows...)
	}
	for {
		var next *domainBatch
		for _, one := range of {
			if len(one.left) > 0 && (next == nil || one.turn() < next.turn()) {
				next = one
			}
		}
		if next == nil {
			return
		}
		batch.left = append(batch.left, next.removeFirst(1)...)
	}
}

// offersByDomain returns the pool's offers to a batch of any domain, with the index of the domain of each.
func (l *launcher) offersByDomain(ps *poolState, batch *domainBatch, q *skewLimits) poolOffers {
	all := poolOffers{pool: ps.index}
	for i, d := range q.domains {
		offers := offersThatHold(ps, batch, l.fleet.offersTo(ps, batch.pending, batch.pending.rowsIn(l.snap.Space, d)))
		all.offers = append(all.offers, offers...)
		all.domains = append(all.domains, slices.Repeat([]int{i}, len(offers))...)
	}
	return all
}

// settle assigns the pods that a packing placed to their domains. The order of assignment is one in which they can be
// bound: each pod goes where the count is least.
func (as *assigner) settle(pg *pendingGroup, q *skewLimits) {
	for at, pods := range q.taken {
		as.counters.assign(pg, q.domains[at], len(pods))
	}
	bound := make([]int, len(q.taken))
	for {
		least := -1
		for at, pods := range q.taken {
			if bound[at] < len(pods) && (least < 0 || q.most[at]-len(pods)+bound[at] < q.most[least]-len(q.taken[least])+bound[least]) {
				least = at
			}
		}
		if least < 0 {
			return
		}
		as.order = append(as.order, q.taken[least][bound[least]])
		bound[least]++
	}
}

// assignRest assigns the pods of batches of any domain that have no node yet to domains again.
func (l *launcher) assignRest(batches []*domainBatch) []*domainBatch {
	var list []*domainBatch
	for _, batch := range batches {
		if !batch.anyDomain {
			list = append(list, batch)
			continue
		}
		if pg := batch.pending; len(batch.left) > 0 {
			rest := pg.left
			pg.left = batch.left
			list = append(list, l.assigner.assign(pg)...)
			pg.left = append(slices.Clip(rest), pg.left...)
		}
	}
	return list
}

// Limits and topology spread. Domains are assigned as if every node were available. Where the limits of a pool suffice
// for some nodes only, the choice matters: pods of a domain are admissible as long as the other domains keep up, and a
// limit spent on one domain leaves those of its pods unbound whose skew depends on another domain. So when a packing
// under limits leaves such pods, the pool is packed once more in the order in which the pods were assigned, a bin at a
// time. A bin is filled as usual: limiting it to the pods that the skew admits at its turn would need more and smaller
// nodes, of which the limit permits fewer (testdata/spread-at-cpu-limit.txtar: 8 pods instead of 12).

// pace is how often a pattern is opened before the packing examines the rest again.
type pace uint8

const (
	allAtOnce pace = iota
	// someAtOnce opens a fifth: more than one pattern may be needed to use the groups evenly.
	someAtOnce
	oneByOne
)

func (k *packing) pace() pace {
	switch {
	case k.inTurn:
		return oneByOne
	case k.evenly:
		return someAtOnce
	}
	return allAtOnce
}

// cutShort reports whether the candidate has remaining pods that are spread over domains.
func cutShort(cand *packCandidate) bool { return len(cand.left) > 0 && cand.batch.spreads() }

// spreads reports whether the batch is part of a group with spread constraints.
func (batch *domainBatch) spreads() bool {
	return batch.turns != nil && len(batch.pending.rules.spreads) > 0
}

// turn returns when the first of the remaining pods was assigned.
func (cand *packCandidate) turn() int { return cand.batch.turns[len(cand.batch.turns)-len(cand.left)] }

// turn returns when the first of the remaining pods was assigned.
func (batch *domainBatch) turn() int { return batch.turns[len(batch.turns)-len(batch.left)] }

// beginTurns begins a packing in turn: it finds the batches of each group that is spread.
func (k *packing) beginTurns() {
	k.siblings = map[*pendingGroup][]*packCandidate{}
	for _, cand := range k.candidates {
		if cand.batch.spreads() {
			k.siblings[cand.pending] = append(k.siblings[cand.pending], cand)
		}
	}
}

// nextInTurn returns the batch of the seed's group with the earliest remaining pod.
func (k *packing) nextInTurn(seed *packCandidate) *packCandidate {
	best := seed
	for _, cand := range k.siblings[seed.pending] {
		if len(cand.left) > 0 && !k.unseedable[cand] && cand.turn() < best.turn() {
			best = cand
		}
	}
	return best
}

// endTurns ends a packing in turn. It records which batches have remaining pods because those of other domains must be
// placed first.
func (k *packing) endTurns() {
	for pg, cands := range k.siblings {
		for _, cand := range cands {
			cand.batch.capped = false
		}
		for i := range pg.rules.spreads {
			k.findCapped(cands, &pg.rules.spreads[i])
		}
	}
}

// findCapped is endTurns for one constraint: a domain may exceed by maxSkew those whose pods are not placed yet. The
// constraint's counts include the unplaced pods of a domain.
func (k *packing) findCapped(cands []*packCandidate, s *spreadRule) {
	waiting, open := map[int]int{}, map[int]bool{}
	for _, cand := range cands {
		atom := cand.pending.rules.atom(cand.batch.domain, s.counter.key)
		waiting[atom] += len(cand.left)
		open[atom] = open[atom] || len(cand.left) > 0 && !k.unseedable[cand]
	}
	for _, cand := range cands {
		own, least := cand.pending.rules.atom(cand.batch.domain, s.counter.key), math.MaxInt
		for _, other := range cands {
			if atom := cand.pending.rules.atom(other.batch.domain, s.counter.key); open[atom] && atom != own {
				least = min(least, s.counter.counts[atom]-waiting[atom])
			}
		}
		if least < math.MaxInt && max(0, least+s.maxSkew-(s.counter.counts[own]-waiting[own])) < len(cand.left) {
			cand.batch.capped = true
		}
	}
}
