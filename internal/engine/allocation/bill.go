package allocation

import (
	"cmp"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// Kind is what the money of a row is paid for.
type Kind uint8

// The kinds of rows, in their order in a Bill.
const (
	// Pods: what pods request that are placed on nodes.
	Pods Kind = iota
	// Daemons: what pods of DaemonSets and static pods request. They come with each node.
	Daemons
	// Unused: what no pod requests, of nodes with pods that are placed.
	Unused
	// Empty: what no pod requests, of nodes without pods other than Daemons. Claims without a node are among them.
	Empty
)

// String returns the name of the kind.
func (k Kind) String() string { return [...]string{"pods", "daemons", "unused", "empty"}[k] }

// Key is what pods have in common that are one row. Fields that do not matter for the grouping are empty.
type Key struct {
	Namespace, Kind, Name string
}

func (k Key) compare(other Key) int {
	return cmp.Or(strings.Compare(k.Namespace, other.Namespace), strings.Compare(k.Kind, other.Kind), strings.Compare(k.Name, other.Name))
}

// Kinds of keys that are no kinds of the API.
const (
	// KindLabel: pods with the label by which a bill is grouped. Those without it have the empty Key.
	KindLabel = "Label"
	// KindStaticPod: the mirror pods of a static pod.
	KindStaticPod = "StaticPod"
	// KindOther: the pods of all keys that Bill.Largest leaves out.
	KindOther = "Other"
)

// By returns the key of a pod on a node.
type By func(*model.Pod) Key

// ByNamespace groups pods by their namespace.
func ByNamespace(p *model.Pod) Key { return Key{Namespace: p.Namespace} }

// ByWorkload groups pods by what a user applies for them, see model.Owner.Workload. A pod without a controller is its own
// workload of kind Pod. Static pods of one name on several nodes are one, of kind KindStaticPod.
func ByWorkload(p *model.Pod) Key {
	switch owner := p.Controller.Workload(p.Labels, p.Created); owner.Kind {
	case "":
		return Key{p.Namespace, "Pod", p.Name}
	case "Node": // https://kubernetes.io/docs/tasks/configure-pod-container/static-pod/
		return Key{p.Namespace, KindStaticPod, strings.TrimSuffix(p.Name, "-"+p.Node)}
	default:
		return Key{p.Namespace, owner.Kind, owner.Name}
	}
}

// ByLabel groups pods by the value of one of their labels.
func ByLabel(label string) By {
	return func(p *model.Pod) Key {
		if value, has := p.Labels[label]; has {
			return Key{Kind: KindLabel, Name: value}
		}
		return Key{}
	}
}

// Row is a line of a Bill.
type Row struct {
	Kind Kind
	// Key is empty for Unused and Empty.
	Key Key
	// Pods is the number of the row's pods on managed nodes, Unpriced how many of these are on nodes of unknown price,
	// which cost nothing here. Nodes is the number of nodes of Unused and Empty.
	Pods, Unpriced, Nodes int
	// CPU in millicores and Memory in bytes: what the pods request, on nodes of known price. For Unused and Empty it is
	// what the nodes have in addition.
	CPU, Memory int64
	// Price in nano-USD per hour.
	Price int64
}

// Bill is the price of a fleet by what it is paid for.
type Bill struct {
	// Rows by kind, then by price, the highest first, then by key. Their prices add up to Price.
	Rows []Row
	// Price of all managed nodes whose price is known, nano-USD per hour.
	Price int64
	// Nodes is the number of managed nodes, Unpriced how many of these have no known price. Unmanaged is the number of
	// nodes without a claim. They and their pods have no part in the bill.
	Nodes, Unpriced, Unmanaged int
}

// Of returns the bill of the nodes of a snapshot, grouped by the keys of their pods.
func Of(snap *model.Snapshot, by By) *Bill {
	b := billing{by: by, divider: newDivider(snap.Resources), at: map[rowKey]int{}}
	for _, n := range snap.Nodes {
		b.add(n)
	}
	slices.SortFunc(b.bill.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(b.Price, a.Price), a.Key.compare(b.Key))
	})
	return &b.bill
}

// Largest returns, of each kind, at most n rows with the highest prices, and one more with the sum of the others, whose Key
// is of KindOther. Their prices add up to that of the bill.
func (b *Bill) Largest(n int) []Row {
	var rows []Row
	of := 0
	for i := range b.Rows {
		r := b.Rows[i]
		if i > 0 && r.Kind != b.Rows[i-1].Kind {
			of = 0
		}
		if of++; of <= n {
			rows = append(rows, r)
			continue
		}
		if of == n+1 {
			rows = append(rows, Row{Kind: r.Kind, Key: Key{Kind: KindOther}})
		}
		rest := &rows[len(rows)-1]
		rest.Pods, rest.Unpriced, rest.Nodes = rest.Pods+r.Pods, rest.Unpriced+r.Unpriced, rest.Nodes+r.Nodes
		rest.CPU, rest.Memory, rest.Price = quantity.Add(rest.CPU, r.CPU), quantity.Add(rest.Memory, r.Memory), rest.Price+r.Price
	}
	return rows
}

type rowKey struct {
	kind Kind
	key  Key
}

// billing is a bill to which node after node is added.
type billing struct {
	*divider
	by    By
	bill  Bill
	at    map[rowKey]int
	parts []int64
}

func (b *billing) add(n *model.Node) {
	if !n.Ours() {
		b.bill.Unmanaged++
		return
	}
	b.bill.Nodes++
	price := n.LeastPrice()
	if price <= 0 {
		b.bill.Unpriced++
		for _, p := range n.Pods {
			r := b.row(kindOf(p), b.by(p))
			r.Pods++
			r.Unpriced++
		}
		return
	}
	b.bill.Price += price
	b.parts = b.divide(n, price, b.parts)
	rest := Empty
	for i, p := range n.Pods {
		kind := kindOf(p)
		if kind == Pods {
			rest = Unused
		}
		clear(b.use)
		p.AddUse(b.use, 1)
		r := b.row(kind, b.by(p))
		r.Pods++
		r.Price += b.parts[i]
		r.CPU, r.Memory = quantity.Add(r.CPU, b.use.At(quantity.CPU)), quantity.Add(r.Memory, b.use.At(quantity.Memory))
	}
	r := b.row(rest, Key{})
	r.Nodes++
	r.Price += b.parts[len(n.Pods)]
	r.CPU = quantity.Add(r.CPU, max(0, n.Usable.At(quantity.CPU)-n.Used.At(quantity.CPU)))
	r.Memory = quantity.Add(r.Memory, max(0, n.Usable.At(quantity.Memory)-n.Used.At(quantity.Memory)))
}

func kindOf(p *model.Pod) Kind {
	if p.Daemon {
		return Daemons
	}
	return Pods
}

// row returns the row of the kind and key, valid until the next call.
func (b *billing) row(kind Kind, key Key) *Row {
	at, known := b.at[rowKey{kind, key}]
	if !known {
		at = len(b.bill.Rows)
		b.at[rowKey{kind, key}], b.bill.Rows = at, append(b.bill.Rows, Row{Kind: kind, Key: key})
	}
	return &b.bill.Rows[at]
}
