package check

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// domain is a value of a topology key.
type domain struct{ key, value string }

// view is the domain of each node for a spread constraint, as a pod of one shape sees it.
type view struct {
	of   map[int]string // by node; nodes that do not count are missing
	size int            // number of domains
}

// spreadCount counts matching pods per domain.
type spreadCount struct {
	namespace string
	pods      selector
	view      *view
	count     map[string]int
	level     map[int]int // number of domains by number of pods
	low       int
	start     map[string]int // the counts when Topology.remember was called
}

func (s *spreadCount) add(node int) {
	d, counts := s.view.of[node]
	if !counts {
		return
	}
	n := s.count[d]
	s.count[d] = n + 1
	s.level[n]--
	s.level[n+1]++
	for s.level[s.low] == 0 {
		s.low++
	}
}

// least returns kube-scheduler's global minimum: 0 while there are fewer domains than minDomains.
func (s *spreadCount) least(minDomains int) int {
	if s.view.size < minDomains {
		return 0
	}
	return s.low
}

// affinityCount counts pods that match all terms of a pod's affinity, per domain.
type affinityCount struct {
	terms []podTerm
	count map[domain]int
	start map[domain]int
}

// antiCount counts, for one term of anti-affinity, pods that it selects and pods that carry it, per value of its key.
type antiCount struct {
	term            podTerm
	matched, owners map[string]int
}

// constraint is a spread constraint of a pod with its counter.
type constraint struct {
	*spreadCount
	key        string
	skew, most int // most is minDomains, 1 if not set
}

// topology holds the counters of PodTopologySpread and InterPodAffinity, one for each distinct constraint.
type topology struct {
	nodes      []*node
	views      map[string]*view
	spreads    map[string]*spreadCount
	spreadList []*spreadCount
	spreadOf   map[string][]constraint // by pod
	affinities map[string]*affinityCount
	affinityOf map[string]*affinityCount
	antis      map[string]*antiCount
	antiList   []*antiCount
	seen       map[string]*trackers // by kind of pod
}

// trackers are the counters that pods of a kind change.
type trackers struct {
	spreads    []*spreadCount
	affinities []*affinityCount
	antis      []*antiCount
}

func newTopology(nodes []*node, pods []*pod) *topology {
	t := &topology{
		nodes: nodes, views: map[string]*view{}, spreads: map[string]*spreadCount{}, spreadOf: map[string][]constraint{},
		affinities: map[string]*affinityCount{}, affinityOf: map[string]*affinityCount{}, antis: map[string]*antiCount{}, seen: map[string]*trackers{},
	}
	for _, p := range pods {
		for _, c := range p.spreads {
			fewest := 1
			if c.MinDomains != nil {
				fewest = int(*c.MinDomains)
			}
			t.spreadOf[p.key] = append(t.spreadOf[p.key], constraint{t.spread(p, c), c.TopologyKey, int(c.MaxSkew), fewest})
		}
		if len(p.affinity) > 0 {
			t.affinityOf[p.key] = t.affinity(p.affinity)
		}
		for _, term := range p.anti {
			if t.antis[term.text] == nil {
				a := &antiCount{term, map[string]int{}, map[string]int{}}
				t.antis[term.text], t.antiList = a, append(t.antiList, a)
			}
		}
	}
	return t
}

func (t *topology) affinity(terms []podTerm) *affinityCount {
	texts := make([]string, len(terms))
	for i := range terms {
		texts[i] = terms[i].text
	}
	text := strings.Join(texts, " ")
	if t.affinities[text] == nil {
		t.affinities[text] = &affinityCount{terms: terms, count: map[domain]int{}}
	}
	return t.affinities[text]
}

func (t *topology) spread(p *pod, c corev1.TopologySpreadConstraint) *spreadCount {
	pods := newSelector(c.LabelSelector, p.own(c.MatchLabelKeys, "In"))
	v, text := t.view(p, c)
	text = fmt.Sprintf("%s %q %s", p.Namespace, pods.text, text)
	if known := t.spreads[text]; known != nil {
		return known
	}
	s := &spreadCount{namespace: p.Namespace, pods: pods, view: v, count: map[string]int{}, level: map[int]int{}}
	for _, d := range v.of {
		s.count[d] = 0
	}
	s.level[0] = len(s.count)
	t.spreads[text], t.spreadList = s, append(t.spreadList, s)
	return s
}

// view counts the nodes that have all topology keys of the pod, and that the pod's own rules admit if the
// constraint's nodeAffinityPolicy and nodeTaintsPolicy are Honor.
func (t *topology) view(p *pod, c corev1.TopologySpreadConstraint) (*view, string) {
	honor := func(policy *corev1.NodeInclusionPolicy, otherwise corev1.NodeInclusionPolicy) bool {
		if policy != nil {
			otherwise = *policy
		}
		return otherwise == corev1.NodeInclusionPolicyHonor
	}
	byNode := honor(c.NodeAffinityPolicy, corev1.NodeInclusionPolicyHonor)
	byTaint := honor(c.NodeTaintsPolicy, corev1.NodeInclusionPolicyIgnore)
	keys := make([]string, len(p.spreads))
	for i, other := range p.spreads {
		keys[i] = other.TopologyKey
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	text := fmt.Sprintf("%q %q %t %t", keys, c.TopologyKey, byNode, byTaint)
	if byNode || byTaint {
		text += p.rule.text
	}
	if known := t.views[text]; known != nil {
		return known, text
	}
	v, values := &view{of: map[int]string{}}, map[string]bool{}
	for i, n := range t.nodes {
		has := func(key string) bool { _, ok := n.labels[key]; return ok }
		if slices.ContainsFunc(keys, func(key string) bool { return !has(key) }) ||
			byNode && !(p.rule.selected(n.labels) && p.rule.affine(n.labels, n.name)) || byTaint && !p.rule.tolerates(n.taints, hard) {
			continue
		}
		v.of[i] = n.labels[c.TopologyKey]
		values[v.of[i]] = true
	}
	v.size = len(values)
	t.views[text] = v
	return v, text
}

func (t *topology) trackers(p *pod) *trackers {
	if known := t.seen[p.kind]; known != nil {
		return known
	}
	all := &trackers{}
	for _, s := range t.spreadList { // a selector without expressions counts nothing, as in kube-scheduler
		if s.namespace == p.Namespace && len(s.pods.expressions) > 0 && s.pods.selects(p.Labels) {
			all.spreads = append(all.spreads, s)
		}
	}
	for _, a := range t.affinities {
		if matchesAll(a.terms, p) {
			all.affinities = append(all.affinities, a)
		}
	}
	for _, a := range t.antiList {
		if a.term.matches(p.Namespace, p.Labels) {
			all.antis = append(all.antis, a)
		}
	}
	t.seen[p.kind] = all
	return all
}

func matchesAll(terms []podTerm, p *pod) bool {
	for i := range terms {
		if !terms[i].matches(p.Namespace, p.Labels) {
			return false
		}
	}
	return true
}

// domainsOf returns the domains of a node for the terms' keys, each once.
func domainsOf(terms []podTerm, n *node) []domain {
	var all []domain
	for _, t := range terms {
		if value, ok := n.labels[t.key]; ok && !slices.Contains(all, domain{t.key, value}) {
			all = append(all, domain{t.key, value})
		}
	}
	return all
}

// bind counts a pod on a node.
func (t *topology) bind(p *pod, n *node) {
	moved := t.trackers(p)
	if p.DeletionTimestamp == nil {
		for _, s := range moved.spreads {
			s.add(n.index)
		}
	}
	for _, a := range moved.affinities {
		for _, d := range domainsOf(a.terms, n) {
			a.count[d]++
		}
	}
	for _, a := range moved.antis {
		if value, ok := n.labels[a.term.key]; ok {
			a.matched[value]++
		}
	}
	for _, term := range p.anti {
		if value, ok := n.labels[term.key]; ok {
			t.antis[term.text].owners[value]++
		}
	}
}

// judge returns the kinds of rule that exclude the pod from the node in the current state.
func (t *topology) judge(p *pod, n *node) []string {
	var kinds []string
	for _, c := range t.spreadOf[p.key] {
		d, has := n.labels[c.key]
		own := 0
		if c.pods.selects(p.Labels) {
			own = 1
		}
		if !has || c.count[d]+own-c.least(c.most) > c.skew {
			kinds = append(kinds, "spread "+c.key)
		}
	}
	if a := t.affinityOf[p.key]; a != nil && !a.admits(p, n) {
		kinds = append(kinds, "affinity")
	}
	if slices.ContainsFunc(p.anti, func(term podTerm) bool { return onNode(n, term.key, t.antis[term.text].matched) > 0 }) {
		kinds = append(kinds, "anti-affinity")
	}
	if slices.ContainsFunc(t.trackers(p).antis, func(a *antiCount) bool { return onNode(n, a.term.key, a.owners) > 0 }) {
		kinds = append(kinds, "anti-affinity of a bound pod")
	}
	return kinds
}

// admits reports whether the node has all keys and a matching pod in each domain, or the pod is the first of its
// kind.
func (a *affinityCount) admits(p *pod, n *node) bool {
	first := len(a.count) == 0 && matchesAll(a.terms, p)
	for _, t := range a.terms {
		value, has := n.labels[t.key]
		if !has || !first && a.count[domain{t.key, value}] == 0 {
			return false
		}
	}
	return true
}

func onNode(n *node, key string, counts map[string]int) int {
	value, has := n.labels[key]
	if !has {
		return 0
	}
	return counts[value]
}
