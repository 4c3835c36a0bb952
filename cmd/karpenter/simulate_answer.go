package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/karpenter-go/karpenter/internal/engine/explain"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// answer is what the verb prints. Money is USD per hour; the cost is the price and, for every new node, what a node
// costs beyond it.
type answer struct {
	Nodes         []newNode  `json:"nodes"`
	ExistingNodes []existing `json:"existingNodes"`
	Unschedulable []refusal  `json:"unschedulable"`
	BindOrder     []string   `json:"bindOrder"`
	PricePerHour  float64    `json:"pricePerHour"`
	CostPerHour   float64    `json:"costPerHour"`
}

// newNode is a node to buy as its cheapest offering. InstanceTypes, cheapest first, are all that will do and can be had
// in the same zone and capacity type.
type newNode struct {
	Name          string   `json:"name"`
	NodePool      string   `json:"nodePool"`
	InstanceType  string   `json:"instanceType"`
	Zone          string   `json:"zone"`
	CapacityType  string   `json:"capacityType"`
	PricePerHour  float64  `json:"pricePerHour"`
	InstanceTypes []string `json:"instanceTypes"`
	Pods          []string `json:"pods"`
}

// existing are pods for a node that is there or in flight.
type existing struct {
	Name string   `json:"name"`
	Pods []string `json:"pods"`
}

// refusal is a pod without a place.
type refusal struct {
	Pod     string   `json:"pod"`
	Reasons []string `json:"reasons"`
}

func answerOf(snap *model.Snapshot, p *plan.Provision, idle []refusal) *answer {
	a := &answer{Nodes: []newNode{}, ExistingNodes: []existing{}, Unschedulable: []refusal{}}
	var price int64
	for i := range p.Claims {
		a.Nodes = append(a.Nodes, newNodeOf(snap, &p.Claims[i]))
		price += p.Claims[i].Price()
	}
	a.PricePerHour = explain.USD(price)
	a.CostPerHour = explain.USD(price + int64(len(p.Claims))*placement.ProductionNodePrice)
	for _, n := range p.Placed {
		a.ExistingNodes = append(a.ExistingNodes, existing{n.Node, podKeys(n.Pods)})
	}
	for _, r := range p.Refused {
		reasons := explain.Reasons(snap, r)
		for _, pod := range r.Pods {
			a.Unschedulable = append(a.Unschedulable, refusal{pod.Key(), reasons})
		}
	}
	a.Unschedulable = append(a.Unschedulable, idle...)
	a.BindOrder = podKeys(p.Order)
	return a
}

func newNodeOf(snap *model.Snapshot, c *plan.NewClaim) newNode {
	first := c.Options[0]
	return newNode{
		Name: c.Name, NodePool: c.Pool, InstanceType: first.Type, Zone: first.Zone, CapacityType: first.CapacityType,
		PricePerHour: explain.USD(first.Price), InstanceTypes: sameOffering(snap, c), Pods: podKeys(c.Pods),
	}
}

// sameOffering lists the claim's types that are on sale in the zone and capacity type of its first option, cheapest
// first.
func sameOffering(snap *model.Snapshot, c *plan.NewClaim) []string {
	catalogue := snap.Pool(c.Pool).Catalogue
	first := c.Options[0]
	type priced struct {
		name  string
		price int64
	}
	byName := make(map[string]*model.InstanceType, len(catalogue.Types))
	for i := range catalogue.Types {
		byName[catalogue.Types[i].Name] = &catalogue.Types[i]
	}
	var same []priced
	for _, option := range c.Options {
		for _, o := range byName[option.Type].Offerings {
			if o.Available && o.Zone == first.Zone && o.CapacityType == first.CapacityType {
				same = append(same, priced{option.Type, o.Price})
				break
			}
		}
	}
	slices.SortStableFunc(same, func(a, b priced) int { return cmp.Compare(a.price, b.price) })
	names := make([]string, len(same))
	for i := range same {
		names[i] = same[i].name
	}
	return names
}

func podKeys(pods []*model.Pod) []string {
	keys := make([]string, len(pods))
	for i, p := range pods {
		keys[i] = p.Key()
	}
	return keys
}

// pods counts all that wanted a place.
func (a *answer) pods() int {
	n := len(a.Unschedulable)
	for i := range a.Nodes {
		n += len(a.Nodes[i].Pods)
	}
	for i := range a.ExistingNodes {
		n += len(a.ExistingNodes[i].Pods)
	}
	return n
}

func (a *answer) writeJSON(out io.Writer) error {
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(a)
}

func (a *answer) writeText(out io.Writer) error {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	if len(a.Nodes) > 0 {
		fmt.Fprintln(w, "NEW NODE\tPOOL\tTYPE\tZONE\tCAPACITY\tUSD/HOUR\tPODS\tOTHER TYPES")
		for _, n := range a.Nodes {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.4f\t%d\t%d\n", n.Name, n.NodePool, n.InstanceType, n.Zone, n.CapacityType, n.PricePerHour,
				len(n.Pods), len(n.InstanceTypes)-1)
		}
		fmt.Fprintln(w)
	}
	if len(a.ExistingNodes) > 0 {
		fmt.Fprintln(w, "NODE\tPODS")
		for _, n := range a.ExistingNodes {
			fmt.Fprintf(w, "%s\t%d\n", n.Name, len(n.Pods))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	a.writeUnschedulable(&b)
	fmt.Fprintf(&b, "%d pods: %d new nodes for %.4f USD per hour, %d pods without a place\n", a.pods(), len(a.Nodes), a.PricePerHour, len(a.Unschedulable))
	_, err := io.WriteString(out, b.String())
	return err
}

// writeUnschedulable lists pods with the same reasons together.
func (a *answer) writeUnschedulable(b *strings.Builder) {
	for i := 0; i < len(a.Unschedulable); {
		n := 1
		for i+n < len(a.Unschedulable) && slices.Equal(a.Unschedulable[i+n].Reasons, a.Unschedulable[i].Reasons) {
			n++
		}
		name := a.Unschedulable[i].Pod
		if n > 1 {
			name = fmt.Sprintf("%s and %d more", name, n-1)
		}
		fmt.Fprintf(b, "NO PLACE for %s\n", name)
		for _, reason := range a.Unschedulable[i].Reasons {
			fmt.Fprintf(b, "  %s\n", reason)
		}
		i += n
	}
	if len(a.Unschedulable) > 0 {
		b.WriteByte('\n')
	}
}
