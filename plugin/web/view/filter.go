package view

import (
	"slices"
	"strings"
)

// Found is a pod that a text finds. Node is empty for one that has none.
type Found struct{ Key, Node, Workload string }

// search is a text in lower case, and the workloads in whose keys it occurs.
type search struct {
	text      string
	workloads []bool
}

func (f *Fleet) search(text string) *search {
	s := &search{text: strings.ToLower(strings.TrimSpace(text)), workloads: make([]bool, len(f.Workloads))}
	for i := range f.Workloads {
		s.workloads[i] = strings.Contains(strings.ToLower(f.Workloads[i].Key()), s.text)
	}
	return s
}

// pod reports whether the text occurs in the key of the pod, NAMESPACE/NAME, or in that of its workload.
func (s *search) pod(f *Fleet, p *Pod) bool {
	if s.workloads[p.Workload] || strings.Contains(p.Name, s.text) {
		return true
	}
	namespace, name, both := strings.Cut(s.text, "/")
	return both && strings.HasSuffix(f.Workloads[p.Workload].Namespace, namespace) && strings.HasPrefix(p.Name, name)
}

// node reports whether the text occurs in a word of the node or of one of its pods.
func (s *search) node(f *Fleet, n *Node) bool {
	words := strings.ToLower(strings.Join([]string{n.Name, n.Pool, n.Type, n.Zone, n.CapacityType, n.State, n.Code}, "\n"))
	return strings.Contains(words, s.text) || slices.ContainsFunc(n.Pods, func(p Pod) bool { return s.pod(f, &p) })
}

// Filter returns the fleet in which nodes are Other that the text does not select: it occurs, ignoring case, neither in their
// words nor in the name, namespace or workload of one of their pods.
func (f *Fleet) Filter(text string) *Fleet {
	if strings.TrimSpace(text) == "" {
		return f
	}
	s, marked := f.search(text), *f
	marked.Nodes = slices.Clone(f.Nodes)
	for i := range marked.Nodes {
		marked.Nodes[i].Other = !s.node(f, &marked.Nodes[i])
	}
	return &marked
}

// Kept returns the fleet without the nodes that a filter does not select.
func (f *Fleet) Kept() *Fleet {
	kept := *f
	kept.Nodes = slices.DeleteFunc(slices.Clone(f.Nodes), func(n Node) bool { return n.Other })
	return &kept
}

// Find returns the first pods that the text selects, and how many there are: those without a node first, then by node.
func (f *Fleet) Find(text string, most int) (list []Found, of int) {
	if strings.TrimSpace(text) == "" {
		return nil, 0
	}
	s := f.search(text)
	add := func(p *Pod, node string) {
		if !s.pod(f, p) {
			return
		}
		if of++; len(list) < most {
			w := f.Workloads[p.Workload]
			list = append(list, Found{w.Namespace + "/" + p.Name, node, w.Key()})
		}
	}
	for i := range f.Waiting {
		add(&f.Waiting[i], "")
	}
	for i := range f.Nodes {
		for j := range f.Nodes[i].Pods {
			add(&f.Nodes[i].Pods[j], f.Nodes[i].Name)
		}
	}
	return list, of
}

// Namespaces returns those of all pods.
func (f *Fleet) Namespaces() []string {
	var list []string
	for i := range f.Workloads { // sorted by key, which begins with the namespace
		list = append(list, f.Workloads[i].Namespace)
	}
	return slices.Compact(list)
}
