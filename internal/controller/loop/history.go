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

// History keeps the last records. Snapshots share what did not change, so that few cost little more than one. The zero
// value keeps nothing. It may be used by several goroutines.
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
	if over := len(h.records) - h.keep; over > 0 {
		h.records = slices.Delete(h.records, 0, over)
	}
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
