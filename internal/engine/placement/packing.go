package placement

import (
	"cmp"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// The list of prospects that a packing fills bins from: what is looked up by the place in it, and who has no pods left.

// allPacked stands for the memory that nobody asks for.
const allPacked = -1

// index notes what is looked up by the place in the list of prospects.
func (k *packing) index() {
	k.cpus, k.memories, k.apart, k.descending = k.cpus[:0], k.memories[:0], k.apart[:0], true
	for i, p := range k.prospects {
		p.at = i
		k.cpus = append(k.cpus, p.group.Requests.At(quantity.CPU))
		k.memories = append(k.memories, p.group.Requests.At(quantity.Memory))
		k.apart = append(k.apart, p.rules.firstApart())
		k.descending = k.descending && (i == 0 || k.cpus[i] <= k.cpus[i-1])
	}
}

// seed is the first prospect that a bin may begin with; nil if there is none.
func (k *packing) seed() *prospect {
	for i, p := range k.prospects {
		if k.memories[i] != allPacked && (len(k.barren) == 0 || !k.barren[p]) {
			return p
		}
	}
	return nil
}

// took notes that so many bins took what is in one of them.
func (k *packing) took(b *bin, times int) {
	for _, p := range b.parts {
		k.waiting -= times * p.count
		if len(p.left) == 0 {
			k.memories[p.at] = allPacked
			k.packed++
		}
	}
}

// compact leaves out who has no pods left.
func (k *packing) compact() {
	if k.packed == 0 && len(k.cpus) == len(k.prospects) {
		return
	}
	k.prospects = slices.DeleteFunc(k.prospects, func(p *prospect) bool { return len(p.left) == 0 })
	k.packed, k.waiting = 0, 0
	for _, p := range k.prospects {
		k.waiting += len(p.left)
	}
	k.index()
}

// noSlot stands for the slot of a rule that there is not.
const noSlot = -1

// firstApart is the slot of the first rule that keeps the pods off hosts: of those that keep each other off, the first
// usually decides.
func (r *rules) firstApart() int {
	if len(r.hostApart) == 0 {
		return noSlot
	}
	return r.hostApart[0]
}

// next is the first prospect from i on that does not ask for more cpu or memory than the bin has free, and that its
// first rule does not keep off. Prospects that are looked at one by one count as asked.
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
		if k.asked++; cpus[i] <= free.CPU && memories[i] <= free.Memory && (apart[i] == noSlot || b.tally.at(apart[i]) == 0) {
			break
		}
	}
	return i
}
