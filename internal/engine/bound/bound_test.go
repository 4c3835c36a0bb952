package bound_test

import (
	"github.com/karpenter-go/karpenter/internal/engine/bound"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// planned is what a plan costs, without and with the price of nodes, and the options for a bound on it.
func planned(p *plan.Provision) (price, cost int64, opts bound.Options) {
	placed := map[*model.Pod]bool{}
	for i := range p.Claims {
		price += p.Claims[i].Price()
		for _, pod := range p.Claims[i].Pods {
			placed[pod] = true
		}
	}
	for _, on := range p.Placed {
		for _, pod := range on.Pods {
			placed[pod] = true
		}
	}
	cost = price + int64(len(p.Claims))*placement.ProductionNodePrice
	return price, cost, bound.Options{NodePrice: placement.ProductionNodePrice, Pods: func(pod *model.Pod) bool { return placed[pod] }}
}
