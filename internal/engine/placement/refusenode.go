package placement

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// The verdicts of existing nodes about unschedulable pods. Cost: every rule is evaluated once more per node, for each
// refused group. So it is done only on request (Options.AskNodes).

// verdictTally counts verdicts that differ in rule and subject.
type verdictTally map[verdictSubject]*plan.NodeCount

// verdictSubject identifies counted verdicts: the amounts are ignored.
type verdictSubject struct {
	code     plan.Code
	key      label.Key
	resource int
	taint    model.Taint
}

func (c verdictTally) add(v plan.Verdict) {
	subject := verdictSubject{v.Code, v.Key, int(v.Resource), v.Taint}
	have := c[subject]
	if have == nil {
		c[subject] = &plan.NodeCount{Rule: v, Nodes: 1}
		return
	}
	have.Nodes++
	have.Rule.Have = max(have.Rule.Have, v.Have)
}

// sorted returns the counts, the most frequent first.
func (c verdictTally) sorted() []plan.NodeCount {
	list := make([]plan.NodeCount, 0, len(c))
	for _, n := range c {
		list = append(list, *n)
	}
	slices.SortFunc(list, func(a, b plan.NodeCount) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), compareVerdicts(a.Rule, b.Rule))
	})
	return list
}

// compareVerdicts orders verdicts by rule and subject. Keys are numbered by name.
func compareVerdicts(a, b plan.Verdict) int {
	return cmp.Or(cmp.Compare(a.Code, b.Code), cmp.Compare(a.Key, b.Key), cmp.Compare(a.Resource, b.Resource),
		strings.Compare(a.Taint.Key, b.Taint.Key), strings.Compare(a.Taint.Value, b.Taint.Value), cmp.Compare(a.Taint.Effect, b.Taint.Effect))
}

// askNodes counts, over every node of the snapshot, why it does not admit one more pod of the group.
func (r *refusals) askNodes(pg *pendingGroup) []plan.NodeCount {
	tally := verdictTally{}
	for range len(r.snap.Nodes) - len(r.nodes.list) {
		tally.add(plan.Verdict{Code: plan.NodeLeaving})
	}
	for _, n := range r.nodes.list {
		tally.add(r.whyNot(pg, n))
	}
	return tally.sorted()
}

// whyNot returns the first refusing rule in kube-scheduler's order. If there is none, other pending pods use the
// capacity.
func (r *refusals) whyNot(pg *pendingGroup, n *target) plan.Verdict {
	if taint, no := pg.untolerated(n.node.Taints); no {
		return plan.Verdict{Code: plan.TaintNotTolerated, Taint: taint}
	}
	if key, no := r.otherLabel(pg.rows, n.node.Row); no {
		return plan.Verdict{Code: plan.LabelExcluded, Key: key}
	}
	if port, taken := pg.portTaken(&n.place); taken {
		return plan.Verdict{Code: plan.HostPortTaken, Have: int64(port.Port)}
	}
	if fit := r.fit.place(pg, &n.place, true); fit.Count == 0 && !fit.Verdict.OK() {
		return fit.Verdict
	}
	if against := r.admission.against(pg.rules, &pg.choices, domainOfRow(r.snap.Space, pg.rules, n.node.Row)); len(against) > 0 {
		return slices.MinFunc(against, compareVerdicts)
	}
	return plan.Verdict{Code: plan.NoPlaceFound}
}

// otherLabel returns the first label on which the node does not match the pod, for the alternative that matches
// furthest.
func (r *refusals) otherLabel(rows []label.Row, node label.Row) (label.Key, bool) {
	var furthest label.Key
	for _, row := range rows {
		at, no := r.outside(row, node)
		if !no {
			return 0, false
		}
		furthest = max(furthest, at)
	}
	return furthest, len(rows) > 0
}

// outside returns the first label on which b is not within a.
func (r *refusals) outside(a, b label.Row) (label.Key, bool) {
	for k := label.Key(0); int(k) < r.snap.Space.Len(); k++ {
		from, to := r.snap.Space.Span(k)
		for i := from; i < to; i++ {
			if b[i]&^a[i] != 0 {
				return k, true
			}
		}
	}
	return 0, false
}
