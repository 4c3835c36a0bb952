package loop

import (
	"slices"
	"sync"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Record is one tick: what it decided from and what was decided. One of Provision and Proposal is set.
type Record struct {
	// Snapshot is what the decision was made from, so that the same comes out of it again, whatever was planned before: beside
	// a Provision, who is leaving is pending there, and nodes promise the seats of the plan before.
	Snapshot  *model.Snapshot
	Provision *plan.Provision
	Proposal  *disruption.Proposal
}

// History keeps the last records. Snapshots share what did not change, so that few cost little more than one; but where
// many pods select many others, each snapshot has all that is known of that anew, and fewer are kept. The zero value keeps
// nothing. It may be used by several goroutines.
type History struct {
	mu      sync.Mutex
	keep    int
	records []Record
}

// NewHistory keeps the last n records.
func NewHistory(n int) *History { return &History{keep: n} }

// Add appends a record and forgets the oldest beyond the limit. A nil History forgets all.
func (h *History) Add(r Record) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, r)
	over, weight := max(0, len(h.records)-h.keep), 0
	for i := len(h.records) - 1; i >= over; i-- {
		if weight += weigh(h.records[i].Snapshot); weight > mostWeight && i < len(h.records)-1 {
			over = i + 1
			break
		}
	}
	h.records = slices.Delete(h.records, 0, over)
}

// mostWeight is how much the records may weigh together, the last one left aside: a few dozen MiB.
const mostWeight = 4 << 20

// weigh counts what the pending pods of a snapshot are told apart by: 8 bytes each.
func weigh(snap *model.Snapshot) int {
	if snap == nil {
		return 0
	}
	n := 0
	for _, g := range snap.Groups {
		n += len(g.Matches) + len(g.BlockedBy)
	}
	return n
}

// Records are what is kept, oldest first.
func (h *History) Records() []Record {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.records)
}
