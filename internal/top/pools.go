package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// hoursPerMonth is that of AWS's price examples: 8,760 hours per year.
const hoursPerMonth = 730

// poolTotal holds the totals of a NodePool, or of nodes without one.
type poolTotal struct {
	name         string
	nodes, pods  int
	pricePerHour float64
	amounts      Amounts
}

var poolColumns = []column[poolTotal]{
	{title: "POOL", cell: func(p *poolTotal) string { return cmp.Or(p.name, "(none)") }},
	{title: "NODES", right: true, cell: func(p *poolTotal) string { return strconv.Itoa(p.nodes) }},
	{title: "PODS", right: true, cell: func(p *poolTotal) string { return strconv.Itoa(p.pods) }},
	{title: "USD/H", right: true, cell: func(p *poolTotal) string { return price(p.pricePerHour) }},
	{title: "USD/MONTH", right: true, cell: func(p *poolTotal) string { return perMonth(p.pricePerHour) }},
	{title: "CPU", cell: func(p *poolTotal) string { return bar(p.cpu()) }, narrow: func(p *poolTotal) string { return percent(p.cpu()) },
		role: func(p *poolTotal) role { return level(p.cpu()) }},
	{title: "MEMORY", cell: func(p *poolTotal) string { return bar(p.memory()) },
		narrow: func(p *poolTotal) string { return percent(p.memory()) }, role: func(p *poolTotal) role { return level(p.memory()) }},
}

func (p *poolTotal) cpu() float64 { return part(p.amounts.UsedCPU, p.amounts.UsableCPU) }

func (p *poolTotal) memory() float64 { return part(p.amounts.UsedMemory, p.amounts.UsableMemory) }

func perMonth(usdPerHour float64) string {
	if usdPerHour == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", usdPerHour*hoursPerMonth)
}

// totals returns the totals of the pools of nodes, the most expensive ones first.
func totals(nodes []Node) []poolTotal {
	var list []poolTotal
	at := map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		k, known := at[n.NodePool]
		if !known {
			k = len(list)
			at[n.NodePool], list = k, append(list, poolTotal{name: n.NodePool})
		}
		p := &list[k]
		p.nodes++
		p.pods += n.Pods
		p.pricePerHour += n.PricePerHour
		p.amounts.add(&n.Amounts)
	}
	slices.SortFunc(list, func(a, b poolTotal) int {
		return cmp.Or(cmp.Compare(b.pricePerHour, a.pricePerHour), cmp.Compare(a.name, b.name))
	})
	return list
}
