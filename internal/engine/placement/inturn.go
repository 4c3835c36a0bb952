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

// takeTurns begins a packing in turn: it finds the lots of each task that is spread, and what is due of each.
func (k *packing) takeTurns() {
	k.siblings = map[*task][]*prospect{}
	for _, p := range k.prospects {
		if p.spreads() {
			k.siblings[p.task] = append(k.siblings[p.task], p)
		}
	}
	for _, p := range k.prospects {
		if lots := k.siblings[p.task]; len(lots) > 0 && lots[0] == p {
			k.findDue(p.task)
		}
	}
}

// nextInTurn is, of the lots of the seed's task, the one whose turn it is. It may have one pod in any case.
func (k *packing) nextInTurn(seed *prospect) *prospect {
	best := seed
	for _, p := range k.siblings[seed.task] {
		if len(p.left) > 0 && !k.barren[p] && p.turn() < best.turn() {
			best = p
		}
	}
	best.due = max(1, best.due)
	return best
}

// tookTurn finds anew what is due after a bin was opened, or proved impossible, for the seed.
func (k *packing) tookTurn(b *bin, seed *prospect) {
	k.findDue(seed.task)
	if b == nil {
		return
	}
	for _, part := range b.parts {
		if part.task != seed.task {
			k.findDue(part.task)
		}
	}
}

// findDue finds how many pods of each lot of the task a bin may take.
func (k *packing) findDue(t *task) {
	lots := k.siblings[t]
	if len(lots) == 0 {
		return
	}
	for _, p := range lots {
		p.due = math.MaxInt
	}
	for i := range t.rules.spreads {
		k.findDueBy(lots, &t.rules.spreads[i])
	}
	for _, p := range lots {
		p.capped = p.due < len(p.left)
	}
}

// findDueBy is findDue for one constraint: a domain may have maxSkew more than those where pods still wait for a place. What the
// constraint counts in a domain are also the pods that wait there.
func (k *packing) findDueBy(lots []*prospect, s *spreadRule) {
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
		if least < math.MaxInt {
			p.due = min(p.due, max(0, least+s.maxSkew-(s.counts[own]-waiting[own])))
		}
	}
}
