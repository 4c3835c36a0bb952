package placement

import (
	"math"
)

// Limits and topology spread. Domains are assigned as if all nodes could be had. Where the limits of a pool suffice for some
// of them only, it matters which: pods of a domain are admissible as long as the other domains keep up, and a limit that is
// spent on one domain leaves those pods unbound that the skew keeps waiting for another. So when a packing under limits
// leaves such pods behind, the market is packed once more in the order in which the pods were assigned, a bin at a time, and no
// bin takes more pods of a domain than its skew bears beside the domains that still wait.

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

// nextInTurn is, of the lots of the seed's task, the one whose turn it is.
func (k *packing) nextInTurn(seed *prospect) *prospect {
	if !seed.spreads() {
		return seed
	}
	best := seed
	for _, p := range k.prospects {
		if p.task == seed.task && len(p.left) > 0 && !k.barren[p] && p.turn() < best.turn() {
			best = p
		}
	}
	return best
}

// findDue finds for each prospect how many of its pods a bin may take. The seed, whose turn it is, may have one in any case.
func (k *packing) findDue(seed *prospect) {
	for _, p := range k.prospects {
		if p.due = math.MaxInt; !p.spreads() {
			continue
		}
		for i := range p.rules.spreads {
			p.due = min(p.due, k.dueBy(p, &p.rules.spreads[i]))
		}
		if p == seed {
			p.due = max(1, p.due)
		}
		p.capped = p.due < len(p.left)
	}
}

// dueBy is how many pods of the prospect one constraint bears while its other domains have no more than they have now.
func (k *packing) dueBy(p *prospect, s *spreadRule) int {
	own, least := p.rules.atom(p.to, s.key), math.MaxInt
	for _, other := range k.prospects {
		if other.task != p.task || len(other.left) == 0 || k.barren[other] {
			continue
		}
		if atom := p.rules.atom(other.to, s.key); atom != own {
			least = min(least, k.settled(p, s, atom))
		}
	}
	if least == math.MaxInt {
		return least
	}
	return max(0, least+s.maxSkew-k.settled(p, s, own))
}

// settled counts what the constraint counts in the domain, but for those pods of the prospect's task that have no place yet.
func (k *packing) settled(p *prospect, s *spreadRule, atom int) int {
	count := s.counts[atom]
	for _, other := range k.prospects {
		if other.task == p.task && p.rules.atom(other.to, s.key) == atom {
			count -= len(other.left)
		}
	}
	return count
}
