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
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
	"github.com/karpenter-go/karpenter/plugin/bill"
)

// usageOf returns what a pod uses: CPU in millicores, memory in bytes; false if that is not known.
type usageOf func(namespace, name string) (cpu, memory int64, known bool)

// Of returns the bill of the nodes of a snapshot, with the usage of the pods; nil if that was not asked for.
func Of(snap *model.Snapshot, g bill.Grouping, usage usageOf) *bill.Bill {
	of := allocation.Of(snap, by(g))
	b := &bill.Bill{Grouping: g, Rows: make([]bill.Row, 0, len(of.Rows)), PerHour: bill.USD(of.Price),
		PerMonth: bill.USD(of.Price).PerMonth(), Nodes: of.Nodes, UnknownPrices: of.Unpriced, Unmanaged: of.Unmanaged}
	for i := range of.Rows {
		b.Rows = append(b.Rows, rowOf(&of.Rows[i]))
	}
	if usage != nil {
		b.Usage = addUse(b.Rows, of, snap, use{usage, by(g)})
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

// use is the usage of pods, and their rows.
type use struct {
	usage usageOf
	by    allocation.By
}

// addUse adds to the rows, which are in the order of the bill, what their pods use.
func addUse(rows []bill.Row, of *allocation.Bill, snap *model.Snapshot, u use) *bill.Usage {
	type rowKey struct {
		daemon bool
		key    allocation.Key
	}
	at, sum := map[rowKey]*bill.Row{}, &bill.Usage{}
	for i := range of.Rows {
		if r := &of.Rows[i]; r.Kind == allocation.Pods || r.Kind == allocation.Daemons {
			at[rowKey{r.Kind == allocation.Daemons, r.Key}] = &rows[i]
		}
	}
	requested := make(quantity.Vector, len(snap.Resources))
	for _, n := range snap.Nodes {
		if !n.Ours() {
			continue
		}
		for _, p := range n.Pods {
			sum.Of++
			cpu, memory, known := u.usage(p.Namespace, p.Name)
			if !known {
				continue
			}
			sum.Pods++
			clear(requested)
			p.AddUse(requested, 1)
			addTo(at[rowKey{p.Daemon, u.by(p)}], bill.Use{Pods: 1, CPU: cpu, Memory: memory, RequestedCPU: requested.At(quantity.CPU),
				RequestedMemory: requested.At(quantity.Memory)})
		}
	}
	return sum
}

// addTo adds what a pod uses to its row.
func addTo(r *bill.Row, pod bill.Use) {
	if r.Use == nil {
		r.Use = &bill.Use{}
	}
	u := r.Use
	u.Pods, u.CPU, u.Memory = u.Pods+1, quantity.Add(u.CPU, pod.CPU), quantity.Add(u.Memory, pod.Memory)
	u.RequestedCPU, u.RequestedMemory = quantity.Add(u.RequestedCPU, pod.RequestedCPU), quantity.Add(u.RequestedMemory, pod.RequestedMemory)
	u.CPUShare, u.MemoryShare = part(u.CPU, u.RequestedCPU), part(u.Memory, u.RequestedMemory)
}

func part(used, requested int64) float64 {
	if requested <= 0 {
		return 0
	}
	return float64(used) / float64(requested)
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
