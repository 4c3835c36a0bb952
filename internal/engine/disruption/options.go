package disruption

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// Options configures a run. The zero value is the production default.
type Options struct {
	Placement placement.Options
	Economics
	// SpotToSpot allows replacing spot nodes by spot nodes (feature gate SpotToSpotConsolidation).
	SpotToSpot bool
	// NoSearch skips the search for a cheaper fleet, which takes most of the time: nodes in use are not examined.
	NoSearch bool
	// WorkBudget limits the number of evaluations (placement.Options.WorkBudget) of all what-ifs of a search for
	// savings together; 0 means no limit. Nodes that the search has not reached at the limit are kept.
	WorkBudget int
	// Last is the last plan of provisioning, nil if there is none: virtual pods keep the nodes that it has for them.
	Last *plan.Provision
	// Static reports whether static pools are in use (feature gate StaticCapacity).
	Static bool
	// UnreadyBrake stops new commands while too many nodes are not ready.
	UnreadyBrake UnreadyBrake
}

// UnreadyBrake stops voluntary disruption while more than Percent of the initialized nodes and more than Nodes of them are
// not ready: then the network or the control plane is at fault rather than the nodes. The zero value never does.
type UnreadyBrake struct {
	On             bool
	Percent, Nodes int
}

// ParseUnreadyBrake reads "off", or a share and a number of nodes such as "45%,3".
func ParseUnreadyBrake(text string) (UnreadyBrake, error) {
	if text == "off" || text == "" {
		return UnreadyBrake{}, nil
	}
	share, nodes, both := strings.Cut(text, ",")
	share, percent := strings.CutSuffix(share, "%")
	of, err := strconv.Atoi(share)
	most, wrong := strconv.Atoi(nodes)
	if !both || !percent || err != nil || wrong != nil || of < 0 || of > 100 || most < 0 {
		return UnreadyBrake{}, fmt.Errorf("%q is neither off nor a share and a number of nodes such as 45%%,3", text)
	}
	return UnreadyBrake{On: true, Percent: of, Nodes: most}, nil
}

// Verdict returns why no command may begin; OK if the brake does not hold.
func (b UnreadyBrake) Verdict(snap *model.Snapshot) plan.Verdict {
	if !b.On {
		return plan.Verdict{}
	}
	all, unready := 0, 0
	for _, n := range snap.Nodes {
		if n.Stage == model.Initialized && !n.Deleting {
			if all++; !n.Ready {
				unready++
			}
		}
	}
	if unready <= b.Nodes || 100*unready <= b.Percent*all {
		return plan.Verdict{}
	}
	return plan.Verdict{Code: plan.NodesUnready, Have: int64(unready), Need: int64(all)}
}

// Economics holds what a consolidation must save, where the pool does not set it.
type Economics struct {
	// Payback is the time over which a saving must exceed the price of the disruption; 0 for an hour, negative for
	// none.
	Payback time.Duration
	// MinStay is the time after a consolidation during which moving its pods again has RepeatedMove times the price; 0
	// for an hour, negative for none.
	MinStay time.Duration
	// MovePrice is the price of moving a pod of eviction cost 1, nano-USD; 0 for 0.001 USD, negative for zero.
	MovePrice int64
	// MinSaving is the minimum saving, nano-USD per hour.
	MinSaving int64
	// again says that the pods have been moved within the minimum stay: those that cost less count as ordinary ones.
	again bool
}

// The defaults when neither the options nor the pool set a value.
const (
	ProductionPayback   = guard.Payback
	ProductionMinStay   = time.Hour
	ProductionMovePrice = model.Nano / 1000
)

// RepeatedMove is the price of moving pods again within the minimum stay, as a multiple of the price of moving them, or
// of ProductionMovePrice if that is more. Each step reduces the cost, so that no sequence of steps repeats itself; but
// where kube-scheduler binds pods otherwise than planned, nodes are launched for them, and consolidation would move the
// same pods at each pass. On 60 half used fleets (TestLive), no command costs more than it saves at 20; at 10, two of 249 do,
// for 1% of the cost; at 1, pods move three times as often for 2% of the cost.
const RepeatedMove = 20

// of returns the economics of a pool: its own values, else those of the run.
func (e Economics) of(pool *model.PoolSpec) Economics {
	if pool.Payback != 0 {
		e.Payback = pool.Payback
	} else if e.Payback == 0 {
		e.Payback = ProductionPayback
	}
	e.Payback = max(0, e.Payback)
	switch {
	case pool.MinStay != 0:
		e.MinStay = pool.MinStay
	case pool.Payback != 0:
		e.MinStay = pool.Payback
	case e.MinStay == 0:
		e.MinStay = ProductionMinStay
	}
	e.MinStay = max(0, e.MinStay)
	if pool.MovePrice != 0 {
		e.MovePrice = pool.MovePrice
	}
	switch {
	case e.MovePrice == 0:
		e.MovePrice = ProductionMovePrice
	case e.MovePrice < 0:
		e.MovePrice = 0
	}
	if pool.MinSaving != 0 {
		e.MinSaving = pool.MinSaving
	}
	e.MinSaving = max(0, e.MinSaving)
	return e
}

// priceOfMoving returns the price of moving all pods off the node that would be recreated elsewhere, nano-USD.
func (e Economics) priceOfMoving(n *model.Node) int64 {
	cost := evictionCost(n)
	if e.again {
		cost = 0
		for _, p := range n.Pods {
			if p.Reschedulable {
				cost += max(ordinaryCost, p.EvictionCost)
			}
		}
	}
	return int64(float64(e.MovePrice) * float64(cost) / ordinaryCost)
}

// spread returns the price of moving over the payback time, nano-USD per hour: the amount that a saving must exceed.
// It is infinite if moving has a price and the payback time is zero.
func (e Economics) spread(n *model.Node) float64 {
	price := e.priceOfMoving(n)
	if price == 0 {
		return 0
	}
	return float64(price) / e.Payback.Hours()
}

// ordinaryCost is the eviction cost of a pod without priority and annotation, in thousandths.
const ordinaryCost = 1000

// evictionCost returns the sum of the eviction costs of the node's pods, in thousandths. Pods with a negative cost
// count as zero and do not offset others.
func evictionCost(n *model.Node) int64 {
	var sum int64
	for _, p := range n.Pods {
		if p.Reschedulable {
			sum += max(0, p.EvictionCost)
		}
	}
	return sum
}
