// Package billing fills the bill that commands and pages show from a snapshot of the engine.
//
// It must not know where the snapshot came from, nor how a bill is shown.
package billing

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/allocation"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/plugin/bill"
)

// Of returns the bill of the nodes of a snapshot.
func Of(snap *model.Snapshot, g bill.Grouping) *bill.Bill {
	of := allocation.Of(snap, by(g))
	b := &bill.Bill{Grouping: g, Rows: make([]bill.Row, 0, len(of.Rows)), PerHour: bill.USD(of.Price),
		PerMonth: bill.USD(of.Price).PerMonth(), Nodes: of.Nodes, UnknownPrices: of.Unpriced, Unmanaged: of.Unmanaged}
	for i := range of.Rows {
		b.Rows = append(b.Rows, rowOf(&of.Rows[i]))
	}
	b.Sort(bill.Orders()[0], false)
	return b
}

func by(g bill.Grouping) allocation.By {
	switch g.By {
	case bill.ByWorkload:
		return allocation.ByWorkload
	case bill.ByLabel:
		return allocation.ByLabel(g.Label)
	}
	return allocation.ByNamespace
}

func rowOf(r *allocation.Row) bill.Row {
	row := bill.Row{Kind: r.Kind.String(), Namespace: r.Key.Namespace, Workload: r.Key.Kind, Name: r.Key.Name, Pods: r.Pods,
		UnknownPrices: r.Unpriced, Nodes: r.Nodes, CPU: r.CPU, Memory: r.Memory, PerHour: bill.USD(r.Price),
		PerMonth: bill.USD(r.Price).PerMonth()}
	if r.Key.Kind == allocation.KindLabel {
		value := r.Key.Name
		row.Workload, row.Name, row.Label = "", "", &value
	}
	return row
}

// mostLabels is the number of keys that Labels returns at most.
const mostLabels = 20

// Labels returns the keys of the labels that most pods on nodes have, those of most pods first, without those that
// controllers set to tell pods of one workload apart.
func Labels(snap *model.Snapshot) []string {
	pods := map[string]int{}
	for _, n := range snap.Nodes {
		for _, p := range n.Pods {
			for key := range p.Labels {
				if !strings.Contains(key, ":") { // the engine's own
					pods[key]++
				}
			}
		}
	}
	for _, key := range []string{"pod-template-hash", "controller-revision-hash", "pod-template-generation", "controller-uid",
		"batch.kubernetes.io/controller-uid", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index",
		"batch.kubernetes.io/job-completion-index"} {
		delete(pods, key)
	}
	keys := slices.SortedFunc(maps.Keys(pods), func(a, b string) int {
		return cmp.Or(cmp.Compare(pods[b], pods[a]), strings.Compare(a, b))
	})
	return keys[:min(len(keys), mostLabels)]
}
