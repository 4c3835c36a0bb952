package placement

import (
	"math"
)

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

// takeTurns begins a packing in turn: it finds the batches of each group that is spread.
func (k *packing) takeTurns() {
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

// tookTurns ends a packing in turn. It records which batches have remaining pods because those of other domains must be
// placed first.
func (k *packing) tookTurns() {
	for pg, cands := range k.siblings {
		for _, cand := range cands {
			cand.batch.capped = false
		}
		for i := range pg.rules.spreads {
			k.findCapped(cands, &pg.rules.spreads[i])
		}
	}
}

// findCapped is tookTurns for one constraint: a domain may exceed by maxSkew those whose pods are not placed yet. The
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
