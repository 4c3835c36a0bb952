package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Options of a run. The zero value selects the production defaults.
type Options struct {
	// NodePrice is the cost of a node beyond its price, nano-USD per hour: agents licensed per node, daemons, one more
	// point of failure. 0 means ProductionNodePrice, a negative value none.
	NodePrice int64
	// IgnorePreferences is --preference-policy=Ignore: preferred terms and soft spread are ignored.
	IgnorePreferences bool
	// RelaxMinValues is --min-values-policy=BestEffort: where too few values are left the minimum is lowered.
	RelaxMinValues bool
	// Effort is --packing-effort: the factor for the usual work spent on finding a cheaper packing; 0 means 1.
	Effort int
	// Closed reports nodes that accept no new pods. Their existing pods still count for topology. Nil closes none.
	Closed func(*model.Node) bool
	// Moving lists pods in transit: they may run on their old or their new node.
	Moving []Moving
	// AskNodes adds the verdicts of existing nodes to refusals.
	AskNodes bool
	// DecidedClaims are not in the snapshot: they count for the part of one type in one zone in the
	// spot capacity, and for nothing else.
	DecidedClaims []plan.NewClaim
	// WorkBudget is how many evaluations a run may make (whether a group fits a node, a bin or a domain); 0 means no
	// limit. If they do not suffice, the plan is the part finished so far: see budget.go.
	WorkBudget int
	// Provisioning plans what is launched, and not a what-if: the price of ScheduleAnyway is bounded, and bins of few pods
	// are filled as well as possible. Schedule sets it.
	Provisioning bool
	// IgnoreSoftSpread ignores topology spread with ScheduleAnyway.
	IgnoreSoftSpread bool
}

// ProductionNodePrice is 0.005 USD per hour.
const ProductionNodePrice = 5 * model.Nano / 1000

func (o *Options) nodePrice() int64 {
	switch {
	case o.NodePrice == 0:
		return ProductionNodePrice
	case o.NodePrice < 0:
		return 0
	}
	return o.NodePrice
}

// NodePriceOf returns the cost of a node of the pool beyond its price: the pool's value, else that of the options.
func (o Options) NodePriceOf(pool *model.PoolSpec) int64 {
	if pool.NodePrice != 0 {
		o.NodePrice = pool.NodePrice
	}
	return o.nodePrice()
}
