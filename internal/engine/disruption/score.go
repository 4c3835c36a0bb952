package disruption

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// CostOf returns the cost of a node of the snapshot, nano-USD per hour: its price and the price per node of its pool.
// A launching claim counts at the cheapest machine that it may become (model.Node.LeastPrice).
func (o Options) CostOf(snap *model.Snapshot, n *model.Node) int64 {
	return n.LeastPrice() + o.beyond(snap, n)
}

// beyond returns the price per node of the node's pool.
func (o Options) beyond(snap *model.Snapshot, n *model.Node) int64 {
	if pool := snap.Pool(n.Pool); pool != nil {
		return o.Placement.NodePriceOf(pool.PoolSpec)
	}
	return 0
}

// Score returns the ratio of a command's saving over the payback time to the price of the disruption. If its nodes
// belong to several pools, each has the price and the payback of its own pool. It returns false if nothing that moves
// has a price.
func (o Options) Score(snap *model.Snapshot, cmd *plan.Command) (float64, bool) {
	var spread float64
	for _, c := range cmd.Candidates {
		if n := snap.Node(c.Node); n != nil {
			spread += o.economics(snap, n).spread(n)
		}
	}
	if spread == 0 {
		return 0, false
	}
	return float64(cmd.Worth.Saving) / spread, true
}

// byWorth sorts commands by score, highest first, with commands that move nothing that has a price before all others.
// If budgets or limits do not suffice for all commands, the best are begun.
func byWorth(snap *model.Snapshot, opts Options, commands []plan.Command) {
	worth := make(map[string]float64, len(commands))
	for i := range commands {
		score, priced := opts.Score(snap, &commands[i])
		if !priced {
			score = math.Inf(1)
		}
		worth[commands[i].ID] = score
	}
	slices.SortStableFunc(commands, func(a, b plan.Command) int { return cmp.Compare(worth[b.ID], worth[a.ID]) })
}

// PriceOfMoving returns the price of moving all pods off the node, nano-USD.
func (o Options) PriceOfMoving(snap *model.Snapshot, n *model.Node) int64 {
	return o.economics(snap, n).priceOfMoving(n)
}

// economics returns the economics of a node of the snapshot: those of its pool, with a higher price of moving its pods
// within the minimum stay.
func (o Options) economics(snap *model.Snapshot, n *model.Node) Economics {
	e := o.ofPool(snap, n)
	if o.stayUntil(snap, n).After(snap.Now) {
		e.MovePrice, e.again = RepeatedMove*max(e.MovePrice, ProductionMovePrice), true
	}
	return e
}

func (o Options) ofPool(snap *model.Snapshot, n *model.Node) Economics {
	if pool := snap.Pool(n.Pool); pool != nil {
		return o.Economics.of(pool.PoolSpec)
	}
	return o.Economics.of(&model.PoolSpec{})
}

// stayUntil returns the end of the minimum stay of a node that consolidation launched or moved pods to; the zero time for
// other nodes.
func (o Options) stayUntil(snap *model.Snapshot, n *model.Node) time.Time {
	at := guard.ConsolidatedAt(n)
	if at.IsZero() {
		return at
	}
	return at.Add(o.ofPool(snap, n).MinStay)
}

// Share is the effect of a command on one of the pools of its nodes: the part of the pool's cost that it saves, and
// the part of the pool's eviction cost that it causes. Score is the first divided by the second; the policy Balanced
// requires at least LeastScore.
type Share struct {
	Pool, Policy       string
	Saving, Disruption float64
	Score              float64
}

// Shares returns the shares of each command of the snapshot, by pool name.
func (o Options) Shares(snap *model.Snapshot, commands []plan.Command) [][]Share {
	w := &projection{began: snap, snap: snap, opts: o}
	list := make([][]Share, len(commands))
	for i := range commands {
		list[i] = w.shares(&commands[i])
	}
	return list
}

func (w *projection) shares(cmd *plan.Command) []Share {
	var nodes []*model.Node
	for _, c := range cmd.Candidates {
		if n := w.snap.Node(c.Node); n != nil {
			nodes = append(nodes, n)
		}
	}
	parts, total := w.scales(nodes)
	var list []Share
	for _, pool := range w.snap.Pools {
		part, concerned := parts[pool.Name]
		if !concerned {
			continue
		}
		whole := w.whole(pool.Name)
		saving := float64(cmd.Worth.Saving) * float64(part.cost) / float64(max(total, 1))
		list = append(list, Share{Pool: pool.Name, Policy: pool.Policy, Saving: saving / float64(max(whole.cost, 1)),
			Disruption: float64(part.eviction) / float64(max(whole.eviction, 1)), Score: float64(score(saving, part, whole)) / 1000})
	}
	slices.SortFunc(list, func(a, b Share) int { return strings.Compare(a.Pool, b.Pool) })
	return list
}
