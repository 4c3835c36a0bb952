package explain

import (
	"strconv"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Unconsolidatable returns why a node is kept, and the cost of the node per month. cost is in nano-USD per hour.
func Unconsolidatable(snap *model.Snapshot, v plan.Verdict, cost int64) string {
	text := Verdict(snap, v)
	if cost <= 0 {
		return text
	}
	return text + "; the node costs " + strconv.FormatFloat(USD(cost)*quantity.HoursPerMonth, 'f', 2, 64) + " USD a month"
}
