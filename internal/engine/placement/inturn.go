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

// cutShort reports whether the prospect has remaining pods that are spread over domains.
func cutShort(p *prospect) bool { return len(p.left) > 0 && p.spreads() }

// spreads reports whether the lot is part of a task with spread constraints.
func (l *lot) spreads() bool { return l.turns != nil && len(l.rules.spreads) > 0 }

// turn returns when the first of the remaining pods was assigned.
func (l *lot) turn() int { return l.turns[len(l.turns)-len(l.left)] }

// takeTurns begins a packing in turn: it finds the lots of each task that is spread.
func (k *packing) takeTurns() {
	k.siblings = map[*task][]*prospect{}
	for _, p := range k.prospects {
		if p.spreads() {
			k.siblings[p.task] = append(k.siblings[p.task], p)
		}
	}
}

// nextInTurn returns the lot of the seed's task with the earliest remaining pod.
func (k *packing) nextInTurn(seed *prospect) *prospect {
	best := seed
	for _, p := range k.siblings[seed.task] {
		if len(p.left) > 0 && !k.barren[p] && p.turn() < best.turn() {
			best = p
		}
	}
	return best
}

// tookTurns ends a packing in turn. It records which lots have remaining pods because those of other domains must be
// placed first.
func (k *packing) tookTurns() {
	for t, lots := range k.siblings {
		for _, p := range lots {
			p.capped = false
		}
		for i := range t.rules.spreads {
			k.findCapped(lots, &t.rules.spreads[i])
		}
	}
}

// findCapped is tookTurns for one constraint: a domain may exceed by maxSkew those whose pods are not placed yet. The
// constraint's counts include the unplaced pods of a domain.
func (k *packing) findCapped(lots []*prospect, s *spreadRule) {
	waiting, open := map[int]int{}, map[int]bool{}
	for _, p := range lots {
		atom := p.rules.atom(p.to, s.key)
		waiting[atom] += len(p.left)
		open[atom] = open[atom] || len(p.left) > 0 && !k.barren[p]
	}
	for _, p := range lots {
		own, least := p.rules.atom(p.to, s.key), math.MaxInt
		for _, other := range lots {
			if atom := p.rules.atom(other.to, s.key); open[atom] && atom != own {
				least = min(least, s.counts[atom]-waiting[atom])
			}
		}
		if least < math.MaxInt && max(0, least+s.maxSkew-(s.counts[own]-waiting[own])) < len(p.left) {
			p.capped = true
		}
	}
}
