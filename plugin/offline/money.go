package offline

import (
	"fmt"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/plugin/top"
)

// FleetFigures covers all nodes with claims, including those being launched.
type FleetFigures struct {
	Nodes        int     `json:"nodes"`
	PricePerHour top.Sum `json:"pricePerHour,omitzero"`
	// CostPerHour includes the costs of nodes beyond their price.
	CostPerHour top.Sum `json:"costPerHour,omitzero"`
	// UnknownPrices is the number of nodes whose price is unknown. Price and cost are those of the others.
	UnknownPrices int `json:"unknownPrices,omitempty"`
}

// figuresOf returns the figures of the nodes with claims for which about returns true.
func figuresOf(snap *model.Snapshot, opts disruption.Options, about func(*model.Node) bool) FleetFigures {
	var f FleetFigures
	var price, cost int64
	for _, n := range snap.Nodes {
		switch {
		case !n.Ours() || !about(n):
			continue
		case n.LeastPrice() == 0:
			f.UnknownPrices++
		default:
			price, cost = price+n.LeastPrice(), cost+opts.CostOf(snap, n)
		}
		f.Nodes++
	}
	f.PricePerHour, f.CostPerHour = top.SumOf(usd(price), f.Nodes, f.UnknownPrices), top.SumOf(usd(cost), f.Nodes, f.UnknownPrices)
	return f
}

// perHour returns what the nodes cost, in words.
func (f *FleetFigures) perHour() string {
	switch {
	case f.PricePerHour.IsZero():
		return "of unknown price"
	case f.UnknownPrices > 0:
		return fmt.Sprintf("for %v USD per hour, %v including per-node overhead, without %s of unknown price", f.PricePerHour, f.CostPerHour,
			plural(f.UnknownPrices, "node"))
	}
	return fmt.Sprintf("for %v USD per hour, %v including per-node overhead", f.PricePerHour, f.CostPerHour)
}

// knownPrice returns an amount of USD, 0 for unknown.
func knownPrice(usd float64) string {
	if usd == 0 {
		return "unknown"
	}
	return fmt.Sprintf("%.4f", usd)
}
