package explain

import (
	"fmt"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Provision returns a summary of a plan in lines: the placed pods, the claims with their cheapest option first, and
// the refused pods. Equal pods are counted, not listed.
func Provision(snap *model.Snapshot, p *plan.Provision) string {
	var b strings.Builder
	price := provision(&b, snap, p, "")
	fmt.Fprintf(&b, "total: %s for %s USD per hour\n", count(len(p.Claims), "claim"), Money(price))
	if p.Virtual != nil {
		price = provision(&b, snap, p.Virtual, "room for ")
		fmt.Fprintf(&b, "room in addition: %s for %s USD per hour\n", count(len(p.Virtual.Claims), "claim"), Money(price))
	}
	return b.String()
}

// provision writes the lines of a plan, with a prefix before the pods, and returns the price of its claims, nano-USD per
// hour.
func provision(b *strings.Builder, snap *model.Snapshot, p *plan.Provision, prefix string) int64 {
	for _, n := range p.Placed {
		fmt.Fprintf(b, "node %s: %s%s\n", n.Node, prefix, contents(snap, n.Pods))
	}
	var price int64
	for i := range p.Claims {
		c := &p.Claims[i]
		price += c.Price()
		fmt.Fprintf(b, "claim %s of pool %s: %s%s\n", c.Name, c.Pool, prefix, contents(snap, c.Pods))
		fmt.Fprintf(b, "  launches %s, requests %s\n", options(c), amounts(c.Requests))
	}
	for _, r := range p.Refused {
		fmt.Fprintf(b, "refused: %s%s\n", prefix, contents(snap, r.Pods))
		for _, clause := range Reasons(snap, r) {
			fmt.Fprintf(b, "  %s\n", clause)
		}
	}
	return price
}

func options(c *plan.NewClaim) string {
	if len(c.Options) == 0 {
		return "nothing"
	}
	first := c.Options[0]
	text := fmt.Sprintf("%s in %s as %s for %s USD per hour", first.Type, first.Zone, first.CapacityType, Money(first.Price))
	if more := len(c.Options) - 1; more > 0 {
		text += fmt.Sprintf(" or %s, the last for %s", count(more, "other type"), Money(c.Options[more].Price))
	}
	return text
}

// contents returns the number of pods by shape: "3 pods like default/web-1 (500m of cpu)".
func contents(snap *model.Snapshot, pods []*model.Pod) string {
	var parts []string
	for i := 0; i < len(pods); {
		n := 1
		for i+n < len(pods) && pods[i+n].Signature == pods[i].Signature {
			n++
		}
		name := pods[i].Key()
		if n > 1 {
			name = fmt.Sprintf("%d pods like %s", n, name)
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", name, amounts(RequestsOf(snap, pods[i]))))
		i += n
	}
	return strings.Join(parts, ", ")
}

// RequestsOf returns the requests of a pod, without the resource "pods".
func RequestsOf(snap *model.Snapshot, pod *model.Pod) []quantity.Amount {
	var list []quantity.Amount
	for r, value := range pod.Requests {
		if resource := quantity.Resource(r); value != 0 && resource != quantity.Pods && resourceName(snap, resource) != model.Unknown {
			list = append(list, quantity.Amount{Name: resourceName(snap, resource), Value: value})
		}
	}
	return append(list, pod.Unknown...)
}
