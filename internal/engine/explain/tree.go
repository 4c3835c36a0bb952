package explain

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Tree returns a refusal in full, in lines: per pool, the closest first, the rule that left no type, how many
// instance types each rule excluded, and what would have to change; then the verdicts of existing nodes.
//
//	pool default: needs 512Gi of memory, the largest of 12 types has 384Gi
//	  label topology.kubernetes.io/zone (pod: In [a])     40 types -> 12
//	  memory at least 512Gi                               12 types -> 0
//	  3 types would fit if label topology.kubernetes.io/zone were not required
//	4 nodes of 5: needs 512Gi of memory, at most 12Gi is free
//	1 node of 5: taint dedicated=db:NoSchedule is not tolerated
func Tree(snap *model.Snapshot, r plan.Refusal) string {
	var b strings.Builder
	if !r.Verdict.OK() || len(r.Pools) == 0 {
		fmt.Fprintln(&b, own(snap, r))
	}
	for _, p := range closest(snap, r.Pools) {
		writePool(&b, snap, r, p)
	}
	for _, c := range nodeClauses(snap, r) {
		fmt.Fprintln(&b, c.Text)
	}
	if r.Dropped > 0 {
		fmt.Fprintf(&b, "the result is the same without %s\n", count(r.Dropped, "preference"))
	}
	return b.String()
}

func writePool(b *strings.Builder, snap *model.Snapshot, r plan.Refusal, p *plan.PoolVerdict) {
	fmt.Fprintf(b, "pool %s: %s\n", p.Pool, said(snap, r, p, true))
	for _, hint := range hints(snap, r, p) {
		fmt.Fprintf(b, "  %s\n", hint)
	}
	for _, f := range p.Filters {
		fmt.Fprintf(b, "  %-58s %s -> %d\n", rule(snap, f.Rule), count(f.Before, "type"), f.After)
	}
	for _, c := range p.Nearest {
		fmt.Fprintf(b, "  %s\n", change(snap, c))
	}
	if n := len(p.Filters); n > 0 && p.Filters[n-1].After == 0 && len(p.Nearest) == 0 {
		fmt.Fprintln(b, "  more than one constraint excludes all types")
	}
}

// rule returns a rule as the criterion that types must meet.
func rule(snap *model.Snapshot, v plan.Verdict) string {
	o := operands{snap, v}
	switch v.Code {
	case plan.TaintNotTolerated:
		return "taint " + Taint(v.Taint)
	case plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
		return o.key()
	case plan.ResourceTooLarge, plan.CombinationTooLarge:
		return o.resource() + " at least " + Quantity(o.resource(), v.Need)
	case plan.NoOffering:
		return "available offering"
	case plan.ReservationTaken:
		return "reserved capacity that is not used up"
	case plan.SpotShareReached:
		return "within the share of spot capacity"
	case plan.LimitReached:
		return "within the limits"
	case plan.NodeLimitReached:
		return "within the limit of nodes"
	case plan.QuotaReached:
		return "within the CapacityQuotas"
	case plan.TypesSpared:
		return "without devices"
	}
	return Verdict(snap, v)
}

// change returns the change that would help, and how many types would then fit.
func change(snap *model.Snapshot, c plan.Change) string {
	o := operands{snap, c.Rule}
	would := count(c.Types, "type") + " would fit "
	switch c.Rule.Code {
	case plan.TaintNotTolerated:
		return would + "if taint " + Taint(c.Rule.Taint) + " were tolerated"
	case plan.LabelUndefined, plan.LabelExcluded, plan.TypesExcluded:
		return would + "if " + o.key() + " were not required"
	case plan.ResourceTooLarge, plan.CombinationTooLarge:
		if c.Rule.Have <= 0 {
			return would + "without " + o.resource()
		}
		_, have := o.needHave()
		return would + "for at most " + have + " of " + o.resource()
	case plan.NoOffering, plan.ReservationTaken:
		return would + "if they had an available offering"
	case plan.MinValuesUnmet:
		return would + "if minValues of " + o.key() + " were at most " + strconv.FormatInt(c.Rule.Have, 10)
	case plan.LimitReached:
		need, _ := o.needHave()
		return would + "if the limit had " + need + " of " + o.resource() + " left"
	case plan.NodeLimitReached:
		return would + "if the limit of nodes were higher"
	case plan.QuotaReached:
		need, _ := o.needHave()
		return would + "if CapacityQuota " + o.Quota + " had " + need + " of " + o.resource() + " left"
	case plan.SpotShareReached:
		return would + "if one of them might have a larger share of the spot capacity"
	case plan.TypesSpared:
		return count(c.Types, "type") + " with devices would fit, and are reserved for pods that request devices"
	}
	return would + "otherwise"
}
