package placement

import (
	"math"
	"slices"
)

// Filling a bin better. Greedy filling takes as many pods of each candidate as fit, in order, so that the rest of a bin may
// hold nothing: four pods of 3 CPUs in 16, where three of them and three of 2 CPUs leave no rest. With few pods, that
// costs a node. So bins of few pods are filled again with fewer pods of one candidate, while their value rises.

const (
	// maxCandidates and maxPods are how many of them a packing may have whose bins are refined.
	maxCandidates, maxPods = 16, 64
	// maxFewer is by how many pods of a candidate at the most a filling differs from the one before.
	maxFewer = 2
	// noCap is the cap of a candidate without one.
	noCap = math.MaxInt
	// promising is how much dearer than the best bin so far a bin may be that is refined.
	promising = 1.25
)

// refines reports whether the bins of a packing of the candidates are refined.
func refines(cands []*packCandidate) bool {
	pods := 0
	for _, cand := range cands {
		pods += len(cand.left)
	}
	return len(cands) > 1 && len(cands) <= maxCandidates && pods <= maxPods
}

// refine fills the trial bin of the search again with fewer pods of one candidate, while that raises its value.
func (k *packing) refine(s *binSearch, ps *poolState, o *offer, p typeOffering) {
	for better := true; better; {
		better = false
		for i := range s.trial.planned {
			planned := s.trial.planned[i]
			for less := 1; less <= min(maxFewer, planned.count) && !better; less++ {
				planned.candidate.cap = planned.count - less
				k.fill(s.spare.restart(ps, p, o, len(k.fleet.counters.totals)), s.seed)
				planned.candidate.cap = noCap
				k.examined++
				if better = s.begunBySeed(s.spare) && s.spare.worth() > s.trial.worth()*(1+1e-9); better {
					s.spare, s.trial = s.trial, s.spare
				}
			}
			if better {
				break
			}
		}
	}
}

// begunBySeed reports whether the bin begins with pods of the seed.
func (s *binSearch) begunBySeed(b *bin) bool {
	return len(b.planned) > 0 && b.planned[0].candidate == s.seed
}

// uncapped gives no candidate a cap.
func uncapped(cands []*packCandidate) []*packCandidate {
	for _, cand := range cands {
		cand.cap = noCap
	}
	return slices.Clone(cands)
}
