// Package bill is the cost of a fleet by namespace, workload or label of its pods, as plain data: rows with a price, in an
// order, with a filter, and as a table of text.
//
//	billing.Of (engine/allocation) --> Bill --+--> top, Text     a terminal, scripts
//	                                          +--> view.Bill     the page, CSV, the report
//
// Prices are whole nano-USD per hour, so that the rows add up to the price of the fleet in every document. Package history
// has the same type of money, USD.
//
// The package must not depend on Kubernetes, decisions of the engine or a terminal. Package billing fills a Bill.
package bill

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/karpenter-go/karpenter/plugin/table"
)

// The groupings of a bill.
const (
	ByNamespace = "namespace"
	ByWorkload  = "workload"
	ByLabel     = "label"
)

// Groupings returns what a bill may be grouped by.
func Groupings() []string { return []string{ByNamespace, ByWorkload, ByLabel} }

// Grouping is what the rows of a bill have in common. Label is the label key of ByLabel.
type Grouping struct {
	By    string `json:"by"`
	Label string `json:"label,omitempty"`
}

// String returns what the rows are, as the title of a column.
func (g Grouping) String() string {
	if g.By == ByLabel {
		return "label " + g.Label
	}
	return g.By
}

// The kinds of rows: what pods request; what DaemonSets and static pods request; what no pod requests, of nodes with pods
// and of nodes without any but those of DaemonSets.
const (
	Pods    = "pods"
	Daemons = "daemons"
	Unused  = "unused"
	Empty   = "empty"
)

// Row is a line of a Bill.
type Row struct {
	Kind string `json:"kind"`
	// Namespace is set by namespace and by workload, Workload (its kind) and Name by workload.
	Namespace string `json:"namespace,omitempty"`
	Workload  string `json:"workload,omitempty"`
	Name      string `json:"name,omitempty"`
	// Label is the value by label; nil for pods without the label.
	Label *string `json:"label,omitempty"`
	// Pods on managed nodes. UnknownPrices of them are on nodes of unknown price, and cost nothing here.
	Pods          int `json:"pods"`
	UnknownPrices int `json:"podsOfUnknownPrice,omitempty"`
	// Nodes is the number of nodes of Unused and Empty.
	Nodes int `json:"nodes,omitempty"`
	// CPU in millicores and Memory in bytes: what the pods request, or what no pod requests.
	CPU    int64 `json:"cpuMillicores"`
	Memory int64 `json:"memoryBytes"`
	// Use is what the pods use; nil if that is not known.
	Use *Use `json:"use,omitempty"`
	// PerHour and PerMonth are the price.
	PerHour  USD `json:"pricePerHour"`
	PerMonth USD `json:"pricePerMonth"`
}

// Unpriced reports whether all pods of the row are on nodes of unknown price, so that its own is unknown.
func (r *Row) Unpriced() bool { return r.Pods > 0 && r.UnknownPrices == r.Pods }

// PodsText returns the number of pods of a row of pods, and how many of them are on nodes of unknown price.
func (r *Row) PodsText() string {
	text := strconv.Itoa(r.Pods)
	if r.UnknownPrices > 0 {
		text += fmt.Sprintf(" (%d unknown)", r.UnknownPrices)
	}
	return text
}

// Bill is the price of a fleet by what it is paid for.
type Bill struct {
	Grouping
	// Rows: those of Pods, then Daemons, Unused, Empty; each kind in the order of Sort.
	Rows []Row `json:"rows"`
	// PerHour is the price of all nodes with a known price: the sum of all rows, without a filter.
	PerHour  USD `json:"pricePerHour"`
	PerMonth USD `json:"pricePerMonth"`
	// Nodes is the number of nodes with a NodeClaim. UnknownPrices of them have no known price. Unmanaged is the number of
	// nodes without a claim, which have no price.
	Nodes         int `json:"nodes"`
	UnknownPrices int `json:"unknownPrices,omitempty"`
	Unmanaged     int `json:"nodesWithoutClaim,omitempty"`
	// Usage is what is known of the usage of pods; nil if it was not asked for.
	Usage *Usage `json:"usage,omitempty"`
	// Filtered is the text of Filter, and Shown the price of the rows that contain it; empty and nil without one.
	Filtered string `json:"filter,omitempty"`
	Shown    *USD   `json:"shownPerHour,omitempty"`
}

// Title returns what the row is, in words: a namespace, NAMESPACE/KIND/NAME of a workload, or the value of the label.
func (b *Bill) Title(r *Row) string {
	switch r.Kind {
	case Unused:
		return "unused, of " + table.Plural(r.Nodes, "node")
	case Empty:
		return table.Plural(r.Nodes, "node") + " without pods"
	}
	switch {
	case b.By == ByWorkload:
		return r.Namespace + "/" + r.Workload + "/" + r.Name
	case r.Kind == Daemons:
		return "DaemonSets: " + b.group(r)
	}
	return b.group(r)
}

func (b *Bill) group(r *Row) string {
	switch {
	case b.By != ByLabel:
		return r.Namespace
	case r.Label == nil:
		return "no label " + b.Label
	}
	return cmp.Or(*r.Label, `""`)
}

// Share returns the part of the whole price that a row has, 0 to 1.
func (b *Bill) Share(r *Row) float64 {
	if b.PerHour == 0 {
		return 0
	}
	return float64(r.PerHour) / float64(b.PerHour)
}

// Filter returns the bill with the rows whose titles contain the text, ignoring case. An empty text matches all.
func (b *Bill) Filter(text string) *Bill {
	kept := *b
	kept.Rows, kept.Filtered, kept.Shown = slices.Clone(b.Rows), text, nil
	if text = strings.ToLower(text); text == "" {
		return &kept
	}
	kept.Rows = slices.DeleteFunc(kept.Rows, func(r Row) bool { return !strings.Contains(strings.ToLower(b.Title(&r)), text) })
	kept.Shown = new(USD)
	for i := range kept.Rows {
		*kept.Shown += kept.Rows[i].PerHour
	}
	return &kept
}

// orders are the columns by which rows can be sorted. Amounts are in descending order.
var orders = []struct {
	name    string
	compare func(a, b *Row) int
}{
	{"price", func(a, b *Row) int { return cmp.Compare(b.PerHour, a.PerHour) }},
	{"name", func(_, _ *Row) int { return 0 }},
	{"pods", func(a, b *Row) int { return cmp.Compare(b.Pods, a.Pods) }},
	{"cpu", func(a, b *Row) int { return cmp.Compare(b.CPU, a.CPU) }},
	{"memory", func(a, b *Row) int { return cmp.Compare(b.Memory, a.Memory) }},
}

// Orders returns the names that Sort accepts; the first one is that of a new bill.
func Orders() []string {
	names := make([]string, len(orders))
	for i, o := range orders {
		names[i] = o.name
	}
	return names
}

var kinds = []string{Pods, Daemons, Unused, Empty}

// Sort sorts the rows of each kind by a column, and by title for equal values. An unknown order means the first one.
func (b *Bill) Sort(by string, reverse bool) {
	at := 0
	for i := range orders {
		if orders[i].name == by {
			at = i
		}
	}
	slices.SortFunc(b.Rows, func(x, y Row) int {
		order := cmp.Or(orders[at].compare(&x, &y), strings.Compare(b.Title(&x), b.Title(&y)))
		if reverse {
			order = -order
		}
		return cmp.Or(cmp.Compare(slices.Index(kinds, x.Kind), slices.Index(kinds, y.Kind)), order)
	})
}
