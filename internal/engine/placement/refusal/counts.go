// Package refusal summarizes verdicts about pods without a node: it counts them, orders them, and names labels and
// resources that share a number. It must not know how the verdicts were reached.
package refusal

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Counts counts verdicts that differ in rule and subject.
type Counts map[subject]*plan.NodeCount

// subject identifies counted verdicts: the amounts are ignored.
type subject struct {
	code     plan.Code
	key      label.Key
	resource int
	taint    model.Taint
}

// Add counts a verdict once more.
func (c Counts) Add(v plan.Verdict) {
	at := subject{v.Code, v.Key, int(v.Resource), v.Taint}
	have := c[at]
	if have == nil {
		c[at] = &plan.NodeCount{Rule: v, Nodes: 1}
		return
	}
	have.Nodes++
	have.Rule.Have = max(have.Rule.Have, v.Have)
}

// Sorted returns the counts, the most frequent first.
func (c Counts) Sorted() []plan.NodeCount {
	list := make([]plan.NodeCount, 0, len(c))
	for _, n := range c {
		list = append(list, *n)
	}
	slices.SortFunc(list, func(a, b plan.NodeCount) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), Compare(a.Rule, b.Rule))
	})
	return list
}

// Compare orders verdicts by rule and subject. Keys are numbered by name.
func Compare(a, b plan.Verdict) int {
	return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Resource, b.Resource),
		strings.Compare(a.Taint.Key, b.Taint.Key), strings.Compare(a.Taint.Value, b.Taint.Value), cmp.Compare(a.Taint.Effect, b.Taint.Effect))
}
