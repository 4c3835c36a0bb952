package top

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/bill"
	"github.com/karpenter-go/karpenter/plugin/table"
)

// poolTotal holds the totals of a NodePool, or of nodes without one.
type poolTotal struct {
	name         string
	nodes, pods  int
	pricePerHour float64
	unpriced     int
	amounts      Amounts
	// pool is nil for nodes without a NodePool, and for those of one that does not exist, which is gone.
	pool *Pool
	gone bool
}

var poolColumns = []column[poolTotal]{
	{Column: poolColumn{Title: "POOL", Cell: func(p *poolTotal) string { return cmp.Or(p.name, "(none)") }}},
	{Column: poolColumn{Title: "NODES", Right: true, Cell: func(p *poolTotal) string { return strconv.Itoa(p.nodes) }}},
	{Column: poolColumn{Title: "PODS", Right: true, Cell: func(p *poolTotal) string { return strconv.Itoa(p.pods) }}},
	{Column: poolColumn{Title: "READY", Cell: (*poolTotal).ready}, role: (*poolTotal).readyRole},
	{Column: poolColumn{Title: "LIMIT", Cell: (*poolTotal).limit}, role: (*poolTotal).limitRole},
	{Column: poolColumn{Title: "USD/H", Right: true, Cell: func(p *poolTotal) string { return price(p.pricePerHour, p.unpriced > 0) }}},
	{Column: poolColumn{Title: "USD/MONTH", Right: true, Cell: func(p *poolTotal) string { return perMonth(p.pricePerHour, p.unpriced > 0) }}},
	{Column: poolColumn{Title: "CPU", Cell: func(p *poolTotal) string { return table.Bar(p.cpu()) },
		Narrow: func(p *poolTotal) string { return table.Percent(p.cpu()) }}, role: func(p *poolTotal) role { return level(p.cpu()) }},
	{Column: poolColumn{Title: "MEMORY", Cell: func(p *poolTotal) string { return table.Bar(p.memory()) },
		Narrow: func(p *poolTotal) string { return table.Percent(p.memory()) }}, role: func(p *poolTotal) role { return level(p.memory()) }},
}

type poolColumn = table.Column[poolTotal]

func (p *poolTotal) cpu() float64 { return part(p.amounts.UsedCPU, p.amounts.UsableCPU) }

func (p *poolTotal) memory() float64 { return part(p.amounts.UsedMemory, p.amounts.UsableMemory) }

func (p *poolTotal) ready() string {
	switch {
	case p.gone:
		return "gone"
	case p.pool == nil:
		return "-"
	case p.pool.Ready:
		return "yes"
	}
	return "no"
}

func (p *poolTotal) readyRole() role {
	if p.gone || p.pool != nil && !p.pool.Ready {
		return bad
	}
	return plain
}

func (p *poolTotal) limit() string {
	if p.pool == nil {
		return "-"
	}
	return cmp.Or(p.pool.Limit, "-")
}

func (p *poolTotal) limitRole() role {
	if p.pool != nil && p.pool.AtLimit != "" {
		return bad
	}
	return plain
}

func perMonth(usdPerHour float64, unpriced bool) string {
	if usdPerHour == 0 {
		return price(0, unpriced)
	}
	return fmt.Sprintf("%.2f", usdPerHour*bill.HoursPerMonth)
}

// totals returns the totals of the pools, and of nodes without one, the most expensive ones first.
func totals(nodes []Node, pools []Pool) []poolTotal {
	var list []poolTotal
	at := map[string]int{}
	for i := range pools {
		at[pools[i].Name], list = len(list), append(list, poolTotal{name: pools[i].Name, pool: &pools[i]})
	}
	for i := range nodes {
		n := &nodes[i]
		k, known := at[n.NodePool]
		if !known {
			k = len(list)
			at[n.NodePool], list = k, append(list, poolTotal{name: n.NodePool, gone: n.NodePool != "" && pools != nil})
		}
		p := &list[k]
		p.nodes++
		p.pods += n.Pods
		p.pricePerHour += n.PricePerHour
		if n.Unpriced {
			p.unpriced++
		}
		p.amounts.add(&n.Amounts)
	}
	sortTotals(list)
	return list
}

func sortTotals(rows []poolTotal) {
	slices.SortFunc(rows, func(a, b poolTotal) int {
		return cmp.Or(cmp.Compare(b.pricePerHour, a.pricePerHour), cmp.Compare(a.name, b.name))
	})
}

// totals returns the rows of pools: those of the filter, or all.
func (f *Fleet) totals() []poolTotal {
	if f.poolRows != nil {
		return f.poolRows
	}
	return totals(f.Nodes, f.Pools)
}

// matchingTotals returns, of all rows, those that contain the text, and the rows of the kept nodes of other pools.
func matchingTotals(text string, all, kept []poolTotal) []poolTotal {
	rows := []poolTotal{}
	for i := range all {
		if all[i].matches(text) {
			rows = append(rows, all[i])
			continue
		}
		at := slices.IndexFunc(kept, func(row poolTotal) bool { return row.name == all[i].name && row.nodes > 0 })
		if at >= 0 {
			rows = append(rows, kept[at])
		}
	}
	sortTotals(rows)
	return rows
}

// matches reports whether the name or a state of the row, or the reason for it, contains the text, ignoring case.
func (p *poolTotal) matches(text string) bool {
	words := []string{p.name, p.ready(), p.limit()}
	if p.pool != nil {
		words = append(words, p.pool.NotReady, p.pool.AtLimit)
	}
	return strings.Contains(strings.ToLower(strings.Join(words, "\n")), text)
}
