package model

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"

	"github.com/karpenter-go/karpenter/internal/engine/label"
)

// Marks define which pods are counted in topology domains.
//
// The selector of a spread constraint or an affinity term is interned as a mark. So is a required anti-affinity term:
// this mark counts its carriers, and its selector says which pods they exclude. Pods with the same namespace,
// labels and tolerations form one class, and a class is matched against each mark once. Counts per node are computed when a node is
// frozen, from its pods, so a new mark costs one pass over the pods and other changes cost nothing.

// class is the set of pods with the same namespace, labels and tolerations.
type class struct {
	namespace   string
	labels      map[string]string
	tolerations []Toleration
	refs        int
	// current is the matching against the first upTo marks.
	current *matching
	upTo    int
	// moved says that the newest marks changed the matching.
	moved bool
}

// matching holds the marks that select a class. It is never changed: snapshots hold it.
type matching struct {
	matches []int
	blocked []int
	// key is equal for classes that no mark distinguishes.
	key string
	// room is the matching against the marks of virtual pods too, by which virtual pods are grouped and all pods are
	// counted. It is nil if no such mark selects the class: then it is the same.
	room *matching
}

// all returns the matching against all marks, those of virtual pods included.
func (m *matching) all() *matching {
	if m.room != nil {
		return m.room
	}
	return m
}

// classOf interns the class of a pod.
func (b *Builder) classOf(spec *PodSpec) *class {
	b.classKey = appendText(b.classKey[:0], spec.Namespace)
	keys := b.labelKeys[:0]
	for key := range spec.Labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	b.labelKeys = keys
	for _, key := range keys {
		b.classKey = appendText(b.classKey, key)
		b.classKey = appendText(b.classKey, spec.Labels[key])
	}
	b.classKey = appendTolerations(b.classKey, spec.Tolerations)
	c := b.classes[string(b.classKey)]
	if c == nil {
		c = &class{namespace: spec.Namespace, labels: spec.Labels, tolerations: spec.Tolerations}
		b.classes[string(b.classKey)] = c
	}
	return c
}

// match returns the matching of a class against all current marks.
func (b *Builder) match(c *class) *matching {
	if c.current != nil && c.upTo == len(b.marks) {
		return c.current
	}
	m, all := &matching{}, &matching{}
	if c.current != nil {
		old := c.current.all()
		m.matches, m.blocked = slices.Clip(c.current.matches), slices.Clip(c.current.blocked)
		all.matches, all.blocked = slices.Clip(old.matches), slices.Clip(old.blocked)
	}
	known := len(all.matches) + len(all.blocked)
	selected, first := false, c.upTo
	for ; c.upTo < len(b.marks); c.upTo++ {
		mark := &b.marks[c.upTo]
		if c.upTo == first || !b.selectors[c.upTo].repeats {
			selected = b.selects(c.upTo, c)
		}
		if !selected {
			continue
		}
		all.add(c.upTo, mark)
		if !mark.Virtual {
			m.add(c.upTo, mark)
		}
	}
	if c.current != nil && len(all.matches)+len(all.blocked) == known {
		return c.current
	}
	m.key = m.text()
	if len(all.matches)+len(all.blocked) > len(m.matches)+len(m.blocked) {
		all.key, m.room = all.text(), all
	}
	c.current = m
	return m
}

// add adds a mark that selects the class.
func (m *matching) add(number int, mark *Mark) {
	if mark.Carrier {
		m.blocked = append(m.blocked, number)
		return
	}
	m.matches = append(m.matches, number)
}

// text returns the key of the matching.
func (m *matching) text() string {
	var key []byte
	for _, list := range [][]int{m.matches, m.blocked} {
		key = binary.AppendUvarint(key, uint64(len(list)))
		for _, n := range list {
			key = binary.AppendUvarint(key, uint64(n))
		}
	}
	return string(key)
}

// mark interns a mark.
func (b *Builder) mark(m Mark) int {
	key := appendBool(appendBool(appendBool(nil, m.Carrier), m.Live), m.Virtual)
	key = appendText(key, m.Key)
	prefix := len(key)
	key = appendSelector(key, &m.Selector)
	if known, ok := b.markNumbers[string(key)]; ok {
		if b.users[known]++; b.users[known] == 1 {
			b.dead--
		}
		return known
	}
	b.markNumbers[string(key)] = len(b.marks)
	b.marks, b.users = append(b.marks, m), append(b.users, 1)
	b.compileSelector(string(key[prefix:]))
	return len(b.marks) - 1
}

// markShape interns the marks and topology keys of a shape, if it has not done so yet. For a rejected shape it
// interns only the anti-affinity terms by host, zone or capacity type, because they affect other pods while its pods
// are bound.
func (b *Builder) markShape(s *shapeRecord) {
	if s.marked {
		return
	}
	virtual := s.Virtual != ""
	s.marked, s.partly = true, s.aside != nil
	if s.partly {
		for _, t := range s.repelling() {
			s.CarrierMarks = append(s.CarrierMarks, b.mark(Mark{Selector: t.Selector, Carrier: true, Key: t.Key, Virtual: virtual}))
			b.topologyKey(t.Key)
		}
		return
	}
	for i := range s.Spread {
		s.SpreadMarks = append(s.SpreadMarks, b.mark(Mark{Selector: counted(&s.Spread[i]), Live: true, Virtual: virtual}))
		b.topologyKey(s.Spread[i].Key)
	}
	joint, isJoint := jointSelector(s.Terms)
	for i := range s.Terms {
		t := &s.Terms[i]
		selector := t.Selector
		if isJoint && !t.Anti && t.Required() && !t.Together {
			selector = joint
		}
		s.TermMarks = append(s.TermMarks, b.mark(Mark{Selector: selector, Virtual: virtual}))
		carrier := -1
		if t.Anti && t.Required() {
			carrier = b.mark(Mark{Selector: t.Selector, Carrier: true, Key: t.Key, Virtual: virtual})
		}
		s.CarrierMarks = append(s.CarrierMarks, carrier)
		b.topologyKey(t.Key)
	}
}

// unmark releases the marks and topology keys of a shape. Snapshots keep the old shape.
func (b *Builder) unmark(s *shapeRecord) {
	b.giveBack(s)
	shape := *s.Shape
	shape.SpreadMarks, shape.TermMarks, shape.CarrierMarks = nil, nil, nil
	s.Shape, s.marked = &shape, false
}

// giveBack decrements the use counts of the marks and topology keys of a shape.
func (b *Builder) giveBack(s *shapeRecord) {
	if !s.marked {
		return
	}
	for _, m := range s.marks() {
		if b.users[m]--; b.users[m] == 0 {
			b.dead++
		}
	}
	for _, key := range s.markedKeys() {
		if b.topology[key]--; b.topology[key] == 0 {
			delete(b.topology, key)
			b.unmentioned += len(b.nodes)
		}
	}
}

// repelling returns the terms whose marks a rejected shape keeps.
func (s *shapeRecord) repelling() []*Term {
	var terms []*Term
	for i := range s.Terms {
		if t := &s.Terms[i]; t.Anti && t.Required() && isFixedKey(t.Key) {
			terms = append(terms, t)
		}
	}
	return terms
}

// markedKeys returns the topology keys that the marks of a shape use, other than the hostname, each as often as it is
// used.
func (s *shapeRecord) markedKeys() []string {
	if !s.partly {
		return s.topologyKeys()
	}
	var keys []string
	for _, t := range s.repelling() {
		if t.Key != LabelHostname {
			keys = append(keys, t.Key)
		}
	}
	return keys
}

// counted returns the selector of the pods that a spread constraint counts: none if its selector has no requirements
// (kube-scheduler, countPodsMatchSelector). It makes no difference that the pod itself matches such a selector: it is
// one pod in an empty domain, and maxSkew is at least 1.
func counted(s *Spread) Selector {
	if len(s.Selector.Requirements) == 0 {
		return Selector{Nothing: true}
	}
	return s.Selector
}

// jointSelector returns the selector of the pods that all required affinity terms select. kube-scheduler counts only
// these pods, whichever term it evaluates.
func jointSelector(terms []Term) (Selector, bool) {
	var joint Selector
	n := 0
	for i := range terms {
		if t := &terms[i]; !t.Anti && t.Required() && !t.Together {
			if n++; n == 1 {
				joint = t.Selector
			} else {
				joint = both(joint, t.Selector)
			}
		}
	}
	return joint, n > 1
}

func both(a, b Selector) Selector {
	out := Selector{
		Nothing: a.Nothing || b.Nothing, AllNamespaces: a.AllNamespaces && b.AllNamespaces,
		Requirements: slices.Concat(a.Requirements, b.Requirements),
	}
	switch {
	case a.AllNamespaces:
		out.Namespaces = b.Namespaces
	case b.AllNamespaces:
		out.Namespaces = a.Namespaces
	default:
		for _, namespace := range a.Namespaces {
			if slices.Contains(b.Namespaces, namespace) {
				out.Namespaces = append(out.Namespaces, namespace)
			}
		}
	}
	return out
}

// topologyKey gives every known value of the label its own atom, because domains are atoms. Hostnames are excluded:
// every node is its own domain.
func (b *Builder) topologyKey(key string) {
	if key == LabelHostname {
		return
	}
	if b.topology[key]++; b.topology[key] > 1 {
		return
	}
	b.mentions.Key(key)
	for _, n := range b.nodes {
		b.mentionDomain(key, n.spec.Labels)
	}
	for c := range b.types {
		b.mentionTypes(key, c)
	}
}

func (b *Builder) mentionDomain(key string, labels map[string]string) {
	if value, has := labels[key]; has {
		b.mentions.Value(key, value)
	}
}

func (b *Builder) mentionTypes(key string, c *Catalog) {
	if c == nil {
		return
	}
	for i := range c.Types {
		for _, r := range c.Types[i].Requirements {
			if r.Key == key && r.Operator == label.In {
				for _, v := range r.Values {
					b.mentions.Value(key, v)
				}
			}
		}
	}
}

// countMarks counts the marks of a node's pods.
func (b *Builder) countMarks(n *Node) {
	if len(b.marks) == 0 {
		return
	}
	counts := map[int]int{}
	n.matchings = make([]*matching, len(n.Pods))
	for i, p := range n.Pods {
		n.matchings[i] = b.match(p.class)
		for _, m := range n.matchings[i].all().matches {
			if !p.Terminating || !b.marks[m].Live {
				counts[m]++
			}
		}
		for _, m := range p.CarrierMarks {
			if m >= 0 {
				counts[m]++
			}
		}
	}
	n.Counts = make([]MarkCount, 0, len(counts))
	for _, m := range slices.Sorted(maps.Keys(counts)) {
		n.Counts = append(n.Counts, MarkCount{Mark: m, Count: counts[m]})
	}
}

// part is pods of one shape that no mark and no taint distinguishes.
type part struct {
	matching  *matching
	tolerated string
	pods      []*Pod
	// each is Group.each.
	each map[*Pod]*matching
}

// add adds a pod with its matching.
func (t *part) add(p *Pod, m *matching) {
	t.matching, t.pods = m, append(t.pods, p)
	if m.room == nil {
		return
	}
	if t.each == nil {
		t.each = map[*Pod]*matching{}
	}
	t.each[p] = m
}

// partition splits the pending pods of a shape by matching and by the taints that they tolerate.
func (b *Builder) partition(shape *shapeRecord) []part {
	byKey := map[identity]int{}
	var parts []part
	for _, p := range shape.pending {
		m := b.match(p.class)
		if shape.Virtual != "" {
			m = m.all()
		}
		id := identity{shape.Signature, m.key, tolerated(b.taints.list, p.Tolerations)}
		at, known := byKey[id]
		if !known {
			at = len(parts)
			byKey[id] = at
			parts = append(parts, part{tolerated: id.tolerated})
		}
		parts[at].add(p, m)
	}
	for _, part := range parts {
		slices.SortFunc(part.pods, comparePods)
	}
	return parts
}

// usedTogether returns what counts once per node: host ports, and the names of shared claims.
func usedTogether(pods []*Pod) (ports []HostPort, claims []string) {
	for _, p := range pods {
		ports = append(ports, p.HostPorts...)
		for _, v := range p.Shared {
			claims = append(claims, v.Claim)
		}
	}
	slices.SortFunc(ports, func(a, b HostPort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.IP, b.IP))
	})
	slices.Sort(claims)
	return ports, slices.Compact(claims)
}
