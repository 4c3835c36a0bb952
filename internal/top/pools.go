package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/karpenter-go/karpenter/internal/table"
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
	{Column: poolColumn{Title: "POOL", Cell: func(p *poolTotal) string { return cmp.Or(p.name, "(none)") }}},
	{Column: poolColumn{Title: "NODES", Right: true, Cell: func(p *poolTotal) string { return strconv.Itoa(p.nodes) }}},
	{Column: poolColumn{Title: "PODS", Right: true, Cell: func(p *poolTotal) string { return strconv.Itoa(p.pods) }}},
	{Column: poolColumn{Title: "USD/H", Right: true, Cell: func(p *poolTotal) string { return price(p.pricePerHour) }}},
	{Column: poolColumn{Title: "USD/MONTH", Right: true, Cell: func(p *poolTotal) string { return perMonth(p.pricePerHour) }}},
	{Column: poolColumn{Title: "CPU", Cell: func(p *poolTotal) string { return table.Bar(p.cpu()) },
		Narrow: func(p *poolTotal) string { return table.Percent(p.cpu()) }}, role: func(p *poolTotal) role { return level(p.cpu()) }},
	{Column: poolColumn{Title: "MEMORY", Cell: func(p *poolTotal) string { return table.Bar(p.memory()) },
		Narrow: func(p *poolTotal) string { return table.Percent(p.memory()) }}, role: func(p *poolTotal) role { return level(p.memory()) }},
}

type poolColumn = table.Column[poolTotal]

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
