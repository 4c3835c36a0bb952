// Package decisions keeps the last decisions of the loops with their inputs, for captures and for the debug pages.
//
// It must not depend on any loop.
package decisions

import (
	"slices"
	"sync"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Record is one tick: the input and the result of its decision. Either Provision or Proposal is set.
type Record struct {
	// Snapshot is the input of the decision, so that the decision can be reproduced whatever was planned before: next
	// to a Provision, the pods of nodes that are being removed are pending in it, and nodes reserve the places of the
	// previous plan.
	Snapshot  *model.Snapshot
	Provision *plan.Provision
	Proposal  *disruption.Proposal
}

// History keeps the last records. Snapshots share unchanged data, so that a few cost little more than one. Where many
// pods select many others, or where the label values that pods name change, snapshots have copies of that data, and
// fewer are kept. The zero value keeps nothing. History is safe for concurrent use.
type History struct {
	mu      sync.Mutex
	keep    int
	records []Record
}

// NewHistory returns a History that keeps the last n records.
func NewHistory(n int) *History { return &History{keep: n} }

// Add appends a record and drops the oldest beyond the limit. A nil History keeps nothing.
func (h *History) Add(r Record) {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.records = append(h.records, r)
	over, weight := max(0, len(h.records)-h.keep), 0
	var newer *model.Snapshot
	for i := len(h.records) - 1; i >= over; i-- {
		snap := h.records[i].Snapshot
		if weight += sizeOf(snap) + rowsOf(snap, newer); weight > mostWeight && i < len(h.records)-1 {
			over = i + 1
			break
		}
		newer = snap
	}
	h.records = slices.Delete(h.records, 0, over)
}

// mostWeight bounds the total weight of the records except the last one: a few dozen MiB.
const mostWeight = 4 << 20

// sizeOf returns the size of the data that distinguishes the pending pods of a snapshot, in units of 8 bytes.
func sizeOf(snap *model.Snapshot) int {
	if snap == nil {
		return 0
	}
	n := 0
	for _, g := range snap.Groups {
		n += len(g.Matches) + len(g.BlockedBy)
	}
	return n
}

// rowsOf returns the size of the rows of a snapshot that it does not share with a newer one, in the same units.
func rowsOf(snap, newer *model.Snapshot) int {
	if snap == nil || snap.Space == nil || newer != nil && snap.Space == newer.Space {
		return 0
	}
	rows := len(snap.Nodes)
	for _, g := range snap.Groups {
		rows += len(g.Rows) + len(g.Preferences)
	}
	indexes := map[*model.TypeIndex]bool{}
	for _, p := range snap.Pools {
		if p.Types != nil && !indexes[p.Types] {
			indexes[p.Types] = true
			rows += p.Types.Len()
		}
	}
	return rows * snap.Space.Words()
}

// Records returns the kept records, the oldest first.
func (h *History) Records() []Record {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.records)
}
