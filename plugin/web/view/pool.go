package view

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Pool is a pool with what it has, and what it may launch. Money is USD per hour.
type Pool struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight"`
	// State is ready, static, at its limit, launches nothing, not ready or refused; Reason why, if it is not ready or static.
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Nodes are those with claims, NotReady those of them that are not initialized or not ready. Of a static pool, Replicas are
	// the nodes that it shall have, and Missing those that cannot be launched.
	Nodes    int     `json:"nodes"`
	NotReady int     `json:"notReady,omitempty"`
	Static   bool    `json:"static,omitempty"`
	Replicas int64   `json:"replicas,omitempty"`
	Missing  int64   `json:"missing,omitempty"`
	Price    float64 `json:"pricePerHour"`
	Unpriced int     `json:"unknownPrices,omitempty"`
	// Gauges are the limits of the pool, and the quotas in which its nodes count.
	Gauges []Gauge `json:"limits"`
	// Budgets are what may be disrupted now, by reason. Window is when a window of a budget opens or closes next.
	Budgets []Allowance `json:"budgets"`
	Window  string      `json:"nextWindow,omitempty"`
	// Launches is what it may launch.
	Launches Launches `json:"launches"`
}

// Gauge is a limit and what is used of it. Share is above 1 if that is more than the limit.
type Gauge struct {
	// Quota is the CapacityQuota whose limit it is, empty for one of the pool.
	Quota    string  `json:"quota,omitempty"`
	Resource string  `json:"resource"`
	Used     string  `json:"used"`
	Limit    string  `json:"limit"`
	Share    float64 `json:"share"`
	// Reached says that no further node fits.
	Reached bool `json:"reached,omitempty"`
}

// Name returns what is limited, in words.
func (g *Gauge) Name() string {
	if g.Quota != "" {
		return "quota " + g.Quota + ", " + g.Resource
	}
	return g.Resource
}

// Text returns what is used, in words.
func (g *Gauge) Text() string {
	return fmt.Sprintf("%s of %s (%.0f%%)", g.Used, g.Limit, g.Share*100)
}

// Allowance is how many nodes may be disrupted for a reason: Remaining now of Allowed at once, which is -1 for any number.
type Allowance struct {
	Reason    string `json:"reason"`
	Remaining int64  `json:"remaining"`
	Allowed   int64  `json:"allowed"`
}

// Launches is the instance types that a pool may launch. Price is that of the cheapest, in USD per hour.
type Launches struct {
	Types         int      `json:"types"`
	Cheapest      string   `json:"cheapest,omitempty"`
	Price         float64  `json:"pricePerHour,omitempty"`
	CapacityTypes []string `json:"capacityTypes"`
	Zones         []string `json:"zones"`
}

// Text returns the types in words.
func (l *Launches) Text() string {
	if l.Types == 0 {
		return "nothing"
	}
	return fmt.Sprintf("from %.4f USD/h (%s); %s; %s", l.Price, l.Cheapest, strings.Join(l.CapacityTypes, ", "), strings.Join(l.Zones, ", "))
}

// Allowed returns what the budgets allow now, in words: one figure if it is the same for all reasons.
func (p *Pool) Allowed() string {
	var parts []string
	same := true
	for i, b := range p.Budgets {
		text := fmt.Sprintf("%d of %d", b.Remaining, b.Allowed)
		if b.Allowed < 0 {
			text = "any"
		}
		same = same && b.Allowed == p.Budgets[0].Allowed && b.Remaining == p.Budgets[0].Remaining
		if parts = append(parts, b.Reason+" "+text); i == len(p.Budgets)-1 && same {
			return text
		}
	}
	return strings.Join(parts, ", ")
}

// Told returns the state with its reason.
func (p *Pool) Told() string {
	if p.Reason == "" {
		return p.State
	}
	return p.State + ": " + p.Reason
}

// SortPools sorts pools as they are tried for a pod: by weight, then by name.
func SortPools(list []Pool) {
	slices.SortFunc(list, func(a, b Pool) int { return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(a.Name, b.Name)) })
}

// PoolsSheet returns the pools as a table.
func PoolsSheet(list []Pool) *Sheet {
	s := &Sheet{Columns: []Column{{Key: "pool", Title: "Pool"}, {Key: "state", Title: "State"}, {"weight", "Weight", true},
		{"nodes", "Nodes", true}, {"replicas", "Replicas", true}, {"price", "USD/h", true}, {Key: "limits", Title: "Limits and quotas in use"},
		{Key: "budgets", Title: "May be disrupted now"}, {Key: "window", Title: "Next window"}, {"types", "Types", true},
		{Key: "launches", Title: "May launch"}}}
	for i := range list {
		p := &list[i]
		limits := make([]string, len(p.Gauges))
		for j := range p.Gauges {
			limits[j] = p.Gauges[j].Name() + " " + p.Gauges[j].Text()
		}
		replicas := Words("–")
		if p.Static {
			replicas = Count(int(p.Replicas))
		}
		s.Rows = append(s.Rows, Row{p.Name, []Cell{Words(p.Name), Words(p.Told()), Count(int(p.Weight)), Count(p.Nodes), replicas,
			Money(p.Price, 4), Words(cmp.Or(strings.Join(limits, "; "), "none")), Words(p.Allowed()), Words(cmp.Or(p.Window, "–")),
			Count(p.Launches.Types), Words(p.Launches.Text())}})
	}
	return s
}

// Summary returns a pool in a few words each: nodes, price, and what may happen to them.
func (p *Pool) Summary() []string {
	nodes := strconv.Itoa(p.Nodes) + " nodes"
	if p.Nodes == 1 {
		nodes = "1 node"
	}
	if p.Static {
		nodes += fmt.Sprintf(" of %d replicas", p.Replicas)
	}
	if p.NotReady > 0 {
		nodes += fmt.Sprintf(", %d not ready", p.NotReady)
	}
	parts := []string{nodes, fmt.Sprintf("%.2f USD/h", p.Price), fmt.Sprintf("weight %d", p.Weight),
		"may be disrupted now: " + cmp.Or(p.Allowed(), "nothing")}
	if p.Launches.Types > 0 {
		parts = append(parts, fmt.Sprintf("%d types from %.4f USD/h", p.Launches.Types, p.Launches.Price))
	}
	return parts
}
