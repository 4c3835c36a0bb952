package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/plugin/bill"
)

// Sheet returns the nodes as a table. It has why each stays if that is decided.
func (f *Fleet) Sheet() *Sheet {
	s := &Sheet{Columns: []Column{{Key: "node", Title: "Node"}, {Key: "pool", Title: "Pool"}, {Key: "type", Title: "Type"},
		{Key: "zone", Title: "Zone"}, {Key: "capacity", Title: "Capacity"}, {Key: "state", Title: "State"},
		{"cpu", "CPU", true}, {"memory", "Memory", true}, {"pods", "Pods", true}, {"price", "USD/h", true},
		{"waste", "Unused USD/h", true}, {Key: "age", Title: "Age", Number: true}, {Key: "drift", Title: "Drift"}}}
	decided := slices.ContainsFunc(f.Nodes, func(n Node) bool { return n.Code != "" })
	if decided {
		s.Columns = append(s.Columns, Column{Key: "stays", Title: "Why it stays"})
	}
	for i := range f.Nodes {
		n := &f.Nodes[i]
		s.Rows = append(s.Rows, Row{n.Name, []Cell{Words(n.Name), Words(n.Pool), Words(n.Type), Words(n.Zone),
			Words(n.CapacityType), Words(n.State), Percent(n.CPUShare), Percent(n.MemoryShare), Count(len(n.Pods)),
			n.priceCell(n.Price), n.priceCell(n.Waste()), Cell{Age(n.Age), n.Age.Seconds(), true}, Words(n.Drifted)}})
		if row := &s.Rows[i]; decided {
			row.Cells = append(row.Cells, Words(cmp.Or(n.Why, n.Code)))
		}
	}
	return s
}

// priceCell returns an amount of USD per hour, or that it is unknown or does not apply.
func (n *Node) priceCell(usd float64) Cell {
	switch {
	case n.Unpriced:
		return Words(bill.Unknown)
	case !n.Managed:
		return Words("–")
	}
	return Money(usd, 4)
}

// Age returns a duration in its most significant units.
func Age(d time.Duration) string {
	switch days := int(d.Hours()) / 24; {
	case d <= 0:
		return "–"
	case days > 0:
		return fmt.Sprintf("%dd %dh", days, int(d.Hours())%24)
	case d >= time.Hour:
		return fmt.Sprintf("%dh %dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dm", int(d.Minutes()))
}

// Place is a pool, a zone, an instance type and a capacity type, with the nodes there.
type Place struct {
	Pool, Zone, Type, CapacityType string
	Nodes                          int
	Unpriced                       int
	// Price and Waste are USD per hour.
	Price, Waste float64
}

// Places returns the nodes with a price, grouped by pool, zone, type and capacity type, in that order.
func (f *Fleet) Places() []Place {
	at := map[Place]int{}
	var list []Place
	for i := range f.Nodes {
		n := &f.Nodes[i]
		if !n.Managed {
			continue
		}
		key := Place{Pool: n.Pool, Zone: n.Zone, Type: n.Type, CapacityType: n.CapacityType}
		j, known := at[key]
		if !known {
			j = len(list)
			at[key], list = j, append(list, key)
		}
		list[j].Nodes++
		list[j].Price += n.Price
		list[j].Waste += n.Waste()
		if n.Unpriced {
			list[j].Unpriced++
		}
	}
	slices.SortFunc(list, func(a, b Place) int {
		return cmp.Or(strings.Compare(a.Pool, b.Pool), strings.Compare(a.Zone, b.Zone), strings.Compare(a.Type, b.Type),
			strings.Compare(a.CapacityType, b.CapacityType))
	})
	return list
}

// MapSheet returns the places as a table.
func MapSheet(places []Place) *Sheet {
	s := &Sheet{Columns: []Column{{Key: "pool", Title: "Pool"}, {Key: "zone", Title: "Zone"}, {Key: "type", Title: "Type"},
		{Key: "capacity", Title: "Capacity"}, {"nodes", "Nodes", true}, {"price", "USD/h", true},
		{"month", "USD/month", true}, {"waste", "Unused USD/h", true}, {"share", "Share of cost", true}}}
	total := 0.0
	for _, p := range places {
		total += p.Price
	}
	for _, p := range places {
		share := 0.0
		if total > 0 {
			share = p.Price / total
		}
		id := strings.Join([]string{p.Pool, p.Zone, p.Type, p.CapacityType}, "|")
		s.Rows = append(s.Rows, Row{id, []Cell{Words(p.Pool), Words(p.Zone), Words(p.Type), Words(p.CapacityType),
			Count(p.Nodes), Money(p.Price, 4), Money(p.Price*HoursPerMonth, 2), Money(p.Waste, 4), Percent(share)}})
		if p.Unpriced == p.Nodes {
			for i := range 4 {
				s.Rows[len(s.Rows)-1].Cells[5+i] = Words(bill.Unknown)
			}
		}
	}
	return s
}

// PendingSheet returns the pending pods as a table: a row for each pool that refuses them, or one for the others.
func PendingSheet(list []Pending) *Sheet {
	s := &Sheet{Columns: []Column{{Key: "pod", Title: "Pods"}, {"count", "Count", true}, {Key: "outcome", Title: "Outcome"},
		{Key: "pool", Title: "Pool"}, {"before", "Types", true}, {Key: "rule", Title: "Rule or target"},
		{Key: "nearest", Title: "Nearest change"}}}
	for i := range list {
		p := &list[i]
		id := strconv.Itoa(i)
		if len(p.Pools) == 0 {
			s.Rows = append(s.Rows, Row{id, []Cell{Words(p.Pod), Count(p.Count), Words(p.Outcome), Words(""), Words("–"),
				Words(p.Why), Words(p.Nearest)}})
		}
		for j, pool := range p.Pools {
			types := Words("–")
			if len(pool.Rules) > 0 {
				types = Count(pool.Rules[0].Before)
			}
			s.Rows = append(s.Rows, Row{id + "." + strconv.Itoa(j), []Cell{Words(p.Pod), Count(p.Count), Words(p.Outcome),
				Words(pool.Pool), types, Words(pool.Text), Words(pool.Nearest)}})
		}
	}
	return s
}

// PodsSheet returns the pods of a node as a table.
func PodsSheet(list []PodDetail) *Sheet {
	s := &Sheet{Columns: []Column{{Key: "pod", Title: "Pod"}, {Key: "workload", Title: "Workload"}, {Key: "requests", Title: "Requests"},
		{"share", "Of the node", true}, {"priority", "Priority", true}, {Key: "labels", Title: "Labels"},
		{Key: "keeps", Title: "Keeps the node"}}}
	for i := range list {
		p := &list[i]
		s.Rows = append(s.Rows, Row{p.Key, []Cell{Words(p.Key), Words(p.Workload), Words(cmp.Or(strings.Join(p.Requests, ", "), "none")),
			Percent(p.Share), Count(int(p.Priority)), Words(Few(p.Labels, 4)),
			Words(cmp.Or(strings.Join(p.Keeps, "; "), p.State, "no"))}})
	}
	return s
}

// FoundSheet returns pods that a filter finds as a table.
func FoundSheet(list []Found) *Sheet {
	s := &Sheet{Columns: []Column{{Key: "pod", Title: "Pod"}, {Key: "node", Title: "Node"}, {Key: "workload", Title: "Workload"}}}
	for _, p := range list {
		s.Rows = append(s.Rows, Row{p.Key, []Cell{Words(p.Key), Words(cmp.Or(p.Node, "waits for one")), Words(p.Workload)}})
	}
	return s
}

// SavingsSheet returns the blockers as a table.
func SavingsSheet(list []Blocker) *Sheet {
	s := &Sheet{Columns: []Column{{Key: "kind", Title: "Kept by"}, {Key: "name", Title: "Object"},
		{"saving", "Saving without it, USD/month", true}, {"held", "Price of the nodes, USD/month", true},
		{"nodes", "Nodes", true}, {Key: "why", Title: "Reason"}, {Key: "changes", Title: "May end at"}}}
	for _, b := range list {
		saving := Words("not computed")
		switch {
		case b.Known:
			saving = Money(b.Saving*HoursPerMonth, 2)
		case b.Fixed:
			saving = Words("–")
		}
		held := Money(b.Held*HoursPerMonth, 2)
		if b.Unpriced > 0 && b.Unpriced == len(b.Nodes) {
			held = Words(bill.Unknown)
		}
		s.Rows = append(s.Rows, Row{b.Kind + "|" + b.Name, []Cell{Words(b.Kind), Words(b.Name), saving,
			held, Count(len(b.Nodes)), Words(b.Text), Words(b.Changes)}})
	}
	return s
}

// Wait returns how long the step waits.
func (s *Step) Wait() time.Duration { return time.Duration(s.WaitSeconds) * time.Second }

// Sheet returns the steps as a table.
func (p *Plan) Sheet() *Sheet {
	s := &Sheet{Columns: []Column{{"step", "Step", true}, {Key: "reason", Title: "Reason"}, {Key: "remove", Title: "Remove"},
		{Key: "add", Title: "Launch"}, {"moved", "Pods moved", true}, {"saving", "Saving, USD/h", true},
		{"price", "Total after, USD/h", true}}}
	for i := range p.Steps {
		t := &p.Steps[i]
		reason := t.Reason
		if t.Method != "" {
			reason += " (" + t.Method + ")"
		}
		if t.WaitSeconds > 0 {
			reason += " after " + Age(t.Wait())
		}
		s.Rows = append(s.Rows, Row{strconv.Itoa(i + 1), []Cell{Count(i + 1), Words(reason), Words(Few(t.Remove, 3)),
			Words(cmp.Or(t.AddText, "nothing")), Count(t.Moved), Money(t.Saving, 4), Money(t.Price, 4)}})
	}
	return s
}

// Few returns at most n names, and how many more there are.
func Few(names []string, n int) string {
	if len(names) <= n {
		return strings.Join(names, ", ")
	}
	return strings.Join(names[:n], ", ") + " and " + strconv.Itoa(len(names)-n) + " more"
}
