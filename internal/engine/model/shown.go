package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/bitset"
	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Labels that nodes get after they have joined, from a daemon such as node-feature-discovery or from admission. Neither
// the pool nor its types define them, so a plan does not know them. A DaemonSet that selects one of them runs on the new
// nodes too, and takes room. What all nodes of a type in the pool show, or all of the pool where the type has none, is
// assumed of new nodes, for the DaemonSets only: a pod that requires such a label has no node before the label is there.
//
// Only keys that some DaemonSet names are examined.

// labelsSettle is how long after its initialization a node may lack a label that the others show.
const labelsSettle = 5 * time.Minute

// ShownLabel is a label that nodes of a pool have, by which a DaemonSet selects nodes, and that neither the pool nor the
// instance type defines. Values are sorted.
type ShownLabel struct {
	Key    string
	Values []string
}

// shown holds the labels that nodes of a pool show, by instance type; "" is for types that have no node. Nil for none.
type shown map[string][]ShownLabel

// of returns the labels of nodes of the type.
func (s shown) of(instanceType string) []ShownLabel {
	if labels, known := s[instanceType]; known {
		return labels
	}
	return s[""]
}

// id identifies equal values.
func (s shown) id() string {
	if len(s) == 0 {
		return ""
	}
	return fmt.Sprintf("%q", s) // fmt sorts maps
}

// add adds to the row what nodes of the type show. The labels may still be absent.
func (s shown) add(space *label.Space, row label.Row, instanceType string) {
	for _, l := range s.of(instanceType) {
		if k, known := space.Lookup(l.Key); known {
			from, to := space.Span(k)
			for _, value := range l.Values {
				bitset.Set(row[from:to]).Add(space.Atom(k, value))
			}
		}
	}
}

// Shown returns the labels that are assumed of new nodes of the type, by key, and the DaemonSets that run there because of
// them.
func (p *Pool) Shown(instanceType string) (labels []ShownLabel, because []*Daemon) {
	labels = p.shown.of(instanceType)
	t := 0
	if p.Types != nil {
		t, _ = p.Types.Lookup(instanceType)
	}
	if len(labels) == 0 || p.Types == nil || t < 0 {
		return nil, nil
	}
	space := p.Types.space
	without := make(label.Row, space.Words())
	space.And(without, p.Start, p.Types.Rows[t])
	with := slices.Clone(without)
	p.shown.add(space, with, instanceType)
	for _, d := range p.daemons {
		if d.Admits(space, with, p.Taints) && !d.selects(space, without) {
			because = append(because, d)
		}
	}
	slices.SortFunc(because, func(a, b *Daemon) int { return compareDaemons(a.DaemonSpec, b.DaemonSpec) })
	return labels, because
}

// noticeShown updates what the nodes of each pool show.
func (f *freezer) noticeShown(now time.Time) {
	keys := f.selectedKeys()
	counts := map[string]*shownCounts{}
	for name, p := range f.from.pools {
		if open := f.undefined(p.spec, keys); len(open) > 0 {
			counts[name] = &shownCounts{keys: open, byType: map[string]*shownCount{}}
		}
	}
	if len(counts) > 0 {
		for _, n := range f.from.nodes {
			if c := counts[n.spec.Pool]; c != nil && n.spec.Stage == Initialized && !n.spec.Deleting {
				c.add(n.spec, now.Sub(n.spec.InitializedAt) >= labelsSettle)
			}
		}
	}
	for name, p := range f.from.pools {
		fresh := counts[name].shown()
		if fresh.id() == p.shown.id() {
			continue
		}
		p.shown, p.dirty, f.poolsDirty = fresh, true, true
		for node, n := range f.from.nodes {
			if n.spec.Pool == name && n.spec.Stage < Initialized {
				f.dirtyNodes[node] = true
			}
		}
	}
}

// selectedKeys returns the keys by which admitted DaemonSets select nodes.
func (f *freezer) selectedKeys() []string {
	var keys []string
	for _, d := range f.from.daemons {
		if d.aside != nil {
			continue
		}
		for _, reqs := range d.spec.Alternatives {
			for _, r := range reqs {
				if key := label.Canonical(r.Key); !OnEveryNode(key) && key != FieldName && !slices.Contains(keys, key) {
					keys = append(keys, key)
				}
			}
		}
	}
	slices.Sort(keys)
	return keys
}

// undefined returns those of the keys that neither the pool nor its types define.
func (f *freezer) undefined(p *PoolSpec, keys []string) []string {
	if p.Catalog == nil || len(keys) == 0 {
		return nil
	}
	ofTypes := f.shared.keysOfTypes(p.Catalog)
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
		return ofTypes[key] || slices.ContainsFunc(p.Requirements, func(r label.Requirement) bool { return label.Canonical(r.Key) == key })
	})
}

// shownCounts counts the nodes of a pool by the keys that it leaves undefined.
type shownCounts struct {
	keys   []string
	byType map[string]*shownCount
}

// shownCount holds, for each key, the values of the nodes that have it, and whether a node lacks it.
type shownCount struct {
	values []map[string]bool
	lacks  []bool
}

func newShownCount(keys int) *shownCount {
	return &shownCount{values: make([]map[string]bool, keys), lacks: make([]bool, keys)}
}

// add counts a node. One that is not settled may still get a label.
func (c *shownCounts) add(n *NodeSpec, settled bool) {
	for _, of := range []string{n.Labels[LabelType], ""} {
		count := c.byType[of]
		if count == nil {
			count = newShownCount(len(c.keys))
			c.byType[of] = count
		}
		for i, key := range c.keys {
			value, has := n.Labels[key]
			switch {
			case has && count.values[i] == nil:
				count.values[i] = map[string]bool{value: true}
			case has:
				count.values[i][value] = true
			case settled:
				count.lacks[i] = true
			}
		}
	}
}

// shown returns the labels that all nodes of a type, or of the pool, have.
func (c *shownCounts) shown() shown {
	if c == nil {
		return nil
	}
	all := shown{}
	any := false
	for instanceType, count := range c.byType {
		var labels []ShownLabel
		for i, key := range c.keys {
			if len(count.values[i]) > 0 && !count.lacks[i] {
				labels = append(labels, ShownLabel{key, slices.Sorted(maps.Keys(count.values[i]))})
			}
		}
		all[instanceType], any = labels, any || len(labels) > 0
	}
	if !any {
		return nil
	}
	return all
}

// String returns the label as text.
func (l ShownLabel) String() string { return l.Key + "=" + strings.Join(l.Values, "|") }
