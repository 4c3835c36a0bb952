package model

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
	"strings"
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
	// withVirtual is the matching against the marks of virtual pods too, by which virtual pods are grouped and all pods are
	// counted. It is nil if no such mark selects the class: then it is the same.
	withVirtual *matching
}

// all returns the matching against all marks, those of virtual pods included.
func (m *matching) all() *matching {
	if m.withVirtual != nil {
		return m.withVirtual
	}
	return m
}

// classOf interns the class of a pod.
func (in *interner) classOf(spec *PodSpec) *class {
	in.classKey = appendText(in.classKey[:0], spec.Namespace)
	keys := in.labelKeys[:0]
	for key := range spec.Labels {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	in.labelKeys = keys
	for _, key := range keys {
		in.classKey = appendText(in.classKey, key)
		in.classKey = appendText(in.classKey, spec.Labels[key])
	}
	in.classKey = appendTolerations(in.classKey, spec.Tolerations)
	c := in.classes[string(in.classKey)]
	if c == nil {
		c = &class{namespace: spec.Namespace, labels: spec.Labels, tolerations: spec.Tolerations}
		in.classes[string(in.classKey)] = c
	}
	return c
}

// match returns the matching of a class against all current marks.
func (in *interner) match(c *class) *matching {
	if c.current != nil && c.upTo == len(in.marks) {
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
	for ; c.upTo < len(in.marks); c.upTo++ {
		mark := &in.marks[c.upTo]
		if c.upTo == first || !in.selectors[c.upTo].repeats {
			selected = in.selects(c.upTo, c)
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
		all.key, m.withVirtual = all.text(), all
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
func (in *interner) mark(m Mark) int {
	key := appendBool(appendBool(appendBool(nil, m.Carrier), m.Live), m.Virtual)
	key = appendText(key, m.Key)
	prefix := len(key)
	key = appendSelector(key, &m.Selector)
	if known, ok := in.markNumbers[string(key)]; ok {
		if in.users[known]++; in.users[known] == 1 {
			in.dead--
		}
		return known
	}
	in.markNumbers[string(key)] = len(in.marks)
	in.marks, in.users = append(in.marks, m), append(in.users, 1)
	in.compileSelector(string(key[prefix:]))
	return len(in.marks) - 1
}

// markShape interns the marks and topology keys of a shape, if it has not done so yet. For a rejected shape it
// interns only the anti-affinity terms by host, zone or capacity type, because they affect other pods while its pods
// are bound.
func (in *interner) markShape(s *shapeRecord) {
	if s.marked {
		return
	}
	virtual := s.Virtual != ""
	s.marked, s.partly = true, s.aside != nil
	if s.partly {
		for _, t := range s.repelling() {
			s.CarrierMarks = append(s.CarrierMarks, in.mark(Mark{Selector: t.Selector, Carrier: true, Key: t.Key, Virtual: virtual}))
			in.topologyKey(t.Key)
		}
		return
	}
	for i := range s.Spread {
		s.SpreadMarks = append(s.SpreadMarks, in.mark(Mark{Selector: counted(&s.Spread[i]), Live: true, Virtual: virtual}))
		in.topologyKey(s.Spread[i].Key)
	}
	joint, isJoint := jointSelector(s.Terms)
	for i := range s.Terms {
		t := &s.Terms[i]
		selector := t.Selector
		if isJoint && !t.Anti && t.Required() && !t.Together {
			selector = joint
		}
		s.TermMarks = append(s.TermMarks, in.mark(Mark{Selector: selector, Virtual: virtual}))
		carrier := -1
		if t.Anti && t.Required() {
			carrier = in.mark(Mark{Selector: t.Selector, Carrier: true, Key: t.Key, Virtual: virtual})
		}
		s.CarrierMarks = append(s.CarrierMarks, carrier)
		in.topologyKey(t.Key)
	}
}

// unmark releases the marks and topology keys of a shape. Snapshots keep the old shape.
func (in *interner) unmark(s *shapeRecord) {
	in.giveBack(s)
	shape := *s.Shape
	shape.SpreadMarks, shape.TermMarks, shape.CarrierMarks = nil, nil, nil
	s.Shape, s.marked = &shape, false
}

// giveBack decrements the use counts of the marks and topology keys of a shape.
func (in *interner) giveBack(s *shapeRecord) {
	if !s.marked {
		return
	}
	for _, m := range s.marks() {
		if in.users[m]--; in.users[m] == 0 {
			in.dead++
		}
	}
	for _, key := range s.markedKeys() {
		if in.topology[key]--; in.topology[key] == 0 {
			delete(in.topology, key)
			in.unmentioned += in.mentions.ValuesOf(key)
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

// topologyKey counts a use of the label as topology key. Hostnames are excluded: every node is its own domain.
func (in *interner) topologyKey(key string) {
	if key == LabelHostname {
		return
	}
	if in.topology[key]++; in.topology[key] == 1 {
		in.mentions.Key(key)
		in.newKeys = append(in.newKeys, key)
	}
}

// countMarks counts the marks of a node's pods.
func (in *interner) countMarks(n *Node) {
	if len(in.marks) == 0 {
		return
	}
	counts := map[int]int{}
	n.matchings = make([]*matching, len(n.Pods))
	for i, p := range n.Pods {
		n.matchings[i] = in.match(p.class)
		for _, m := range n.matchings[i].all().matches {
			if !p.Terminating || !in.marks[m].Live {
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
