package placement

import (
	"math"
)

// Limits and topology spread. Domains are assigned as if all nodes could be had. Where the limits of a pool suffice for some
// of them only, it matters which: pods of a domain are admissible as long as the other domains keep up, and a limit that is
// spent on one domain leaves those pods unbound that the skew keeps waiting for another. So when a packing under limits
// leaves such pods behind, the market is packed once more in the order in which the pods were assigned, a bin at a time. A bin
// is filled as ever: to take no more pods than the skew bears at its turn would need more and smaller nodes, of which the
// limit allows fewer (testdata/spread-at-cpu-limit.txtar: 8 pods in place of 12).

// pace is how often a pattern is opened before the packing looks at the rest again.
type pace uint8

const (
	allAtOnce pace = iota
	// someAtOnce opens a fifth: more than one pattern may be needed to use up the groups evenly.
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

// cutShort reports whether the prospect has pods left that are spread over domains.
func cutShort(p *prospect) bool { return len(p.left) > 0 && p.spreads() }

// spreads reports whether the lot is one of those that a task with spread constraints is split into.
func (l *lot) spreads() bool { return l.turns != nil && len(l.rules.spreads) > 0 }

// turn is when the first of the pods that are left was assigned.
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

// nextInTurn is, of the lots of the seed's task, the one whose turn it is.
func (k *packing) nextInTurn(seed *prospect) *prospect {
	best := seed
	for _, p := range k.siblings[seed.task] {
		if len(p.left) > 0 && !k.barren[p] && p.turn() < best.turn() {
			best = p
		}
	}
	return best
}

// tookTurns ends a packing in turn: it notes which lots have pods left because those of other domains come first.
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

// findCapped is tookTurns for one constraint: a domain may have maxSkew more than those where pods still wait for a place. What the
// constraint counts in a domain are also the pods that wait there.
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
