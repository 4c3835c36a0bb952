package placement

import (
	"cmp"
	"math"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The list of candidates that a packing fills bins from: facts by index, and which candidates have no pods left.

// allPacked is the memory of a candidate without remaining pods.
const allPacked = -1

// index computes the facts that are stored by index in the list of candidates.
func (k *packing) index() {
	k.cpus, k.memories, k.apart, k.descending = k.cpus[:0], k.memories[:0], k.apart[:0], true
	for i, cand := range k.candidates {
		cand.at = i
		k.cpus = append(k.cpus, cand.pending.group.Requests.At(quantity.CPU))
		k.memories = append(k.memories, cand.pending.group.Requests.At(quantity.Memory))
		k.apart = append(k.apart, cand.pending.rules.firstApart())
		k.descending = k.descending && (i == 0 || k.cpus[i] <= k.cpus[i-1])
	}
}

// seed returns the first candidate that a bin may begin with, or nil if there is none.
func (k *packing) seed() *packCandidate {
	for i, cand := range k.candidates {
		if k.memories[i] != allPacked && (len(k.unseedable) == 0 || !k.unseedable[cand]) {
			return cand
		}
	}
	return nil
}

// placed records that this many bins were opened with the content of b.
func (k *packing) placed(b *bin, times int) {
	for _, p := range b.planned {
		k.waiting -= times * p.count
		if len(p.candidate.left) == 0 {
			k.memories[p.candidate.at] = allPacked
			k.packed++
		}
	}
}

// compact removes candidates without remaining pods.
func (k *packing) compact() {
	if k.packed == 0 && len(k.cpus) == len(k.candidates) {
		return
	}
	k.candidates = slices.DeleteFunc(k.candidates, func(cand *packCandidate) bool { return len(cand.left) == 0 })
	k.packed, k.waiting = 0, 0
	for _, cand := range k.candidates {
		k.waiting += len(cand.left)
	}
	k.index()
}

// noSlot is the slot of a missing rule.
const noSlot = -1

// firstApart returns the slot of the first rule that excludes the pods from hosts. For pods that exclude each other,
// the first rule usually decides.
func (r *rules) firstApart() int {
	if len(r.hostApart) == 0 {
		return noSlot
	}
	return r.hostApart[0]
}

// next returns the index of the first candidate from i on that requests no more cpu or memory than the bin has free,
// and that its first apart rule does not exclude. Candidates examined one by one count as examined.
func (k *packing) next(b *bin, i int) int {
	free := model.SlackOf(b.free)
	if k.descending && i < len(k.cpus) && k.cpus[i] > free.CPU {
		at, _ := slices.BinarySearchFunc(k.cpus[i:], free.CPU, func(cpu, free int64) int { return cmp.Compare(free, cpu) })
		i += at
	}
	cpus, memories, apart := k.cpus, k.memories[:len(k.cpus)], k.apart[:len(k.cpus)]
	for ; i < len(cpus); i++ {
		if memories[i] == allPacked {
			continue
		}
		if k.examined++; cpus[i] <= free.CPU && memories[i] <= free.Memory && (apart[i] == noSlot || b.tally.At(apart[i]) == 0) {
			break
		}
	}
	return i
}

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
