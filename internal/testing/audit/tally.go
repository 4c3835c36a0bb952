package audit

import (
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// tally counts pods by topology domain. While the domain of a node is open, a pod on it counts in most for every
// possible domain and in least for none. In the tally of its own node (here) it always counts.
type tally struct {
	// keys are the topology keys. selected reports whether a pod counts.
	keys     []string
	selected func(*model.Pod) bool
	// where says which nodes count; nil means all.
	where map[*spot]membership
	// at holds the domains that a node may be in if it counts; nil means all its possible domains.
	at    map[*spot][]value
	most  map[domain]int
	least map[domain]int
	here  map[*spot]int
	// possible holds the domains that a counted node may be in, certain those that a counted node is in. Both are for
	// spread.
	possible, certain map[domain]bool
}

// domain is a value of a topology key.
type domain struct{ key, value string }

func newTally(selected func(*model.Pod) bool, keys ...string) *tally {
	return &tally{keys: keys, selected: selected, most: map[domain]int{}, least: map[domain]int{}, here: map[*spot]int{}}
}

// bind counts a pod on the node.
func (t *tally) bind(s *spot) {
	counts := surely
	if t.where != nil {
		counts = t.where[s]
	}
	if counts == never {
		return
	}
	t.here[s]++
	for _, key := range t.keys {
		values := t.domain(s, key)
		for _, v := range values {
			if v.present {
				t.most[domain{key, v.text}]++
			}
		}
		if counts == surely && len(values) == 1 && values[0].present {
			t.least[domain{key, values[0].text}]++
		}
	}
}

// mayHold reports whether a domain that the node may be in may contain a counted pod.
func (t *tally) mayHold(s *spot, key string) bool {
	return slices.ContainsFunc(s.domain(key), func(v value) bool { return v.present && t.most[domain{key, v.text}] > 0 })
}

// holds reports whether every domain that the node may be in contains a counted pod.
func (t *tally) holds(s *spot, key string) bool {
	if s.has(key) != surely {
		return false
	}
	return t.here[s] > 0 || !slices.ContainsFunc(s.domain(key), func(v value) bool { return t.least[domain{key, v.text}] == 0 })
}

// domain returns the values that the label of a node may have if the node counts.
func (t *tally) domain(s *spot, key string) []value {
	if t.at != nil {
		return t.at[s]
	}
	return s.domain(key)
}

// spreadOver sets the domains of a spread constraint: those of the nodes that count.
func (t *tally) spreadOver(spots []*spot, where map[*spot]membership, alternatives [][]label.Requirement) {
	t.where, t.possible, t.certain, t.at = where, map[domain]bool{}, map[domain]bool{}, map[*spot][]value{}
	for _, s := range spots {
		t.at[s] = s.domain(t.keys[0])
		if where[s] == maybe {
			t.at[s] = s.domainIf(alternatives, t.keys[0])
		}
	}
	for _, s := range spots {
		if where[s] == never {
			continue
		}
		values := t.at[s]
		for _, v := range values {
			if v.present {
				t.possible[domain{t.keys[0], v.text}] = true
			}
		}
		if where[s] == surely && len(values) == 1 && values[0].present {
			t.certain[domain{t.keys[0], values[0].text}] = true
		}
	}
}

// fewest returns the lowest count that any domain may have. It returns 0 if there may be fewer than minDomains
// domains.
func (t *tally) fewest(minDomains int) int {
	if len(t.certain) < max(1, minDomains) {
		return 0
	}
	fewest := -1
	for d := range t.possible {
		if n := t.least[d]; fewest < 0 || n < fewest {
			fewest = n
		}
	}
	return max(0, fewest)
}

// crowded returns the highest count that a domain that the node may be in may have.
func (t *tally) crowded(s *spot) int {
	most := 0
	for _, v := range s.domain(t.keys[0]) {
		if v.present {
			most = max(most, t.most[domain{t.keys[0], v.text}])
		}
	}
	return most
}

// selects implements a label selector (Kubernetes API, LabelSelector) for the labels of a pod.
func selects(s *model.Selector, labels map[string]string) bool {
	if s.Nothing {
		return false
	}
	for _, r := range s.Requirements {
		text, has := labels[r.Key]
		if !allows(label.Requirement{Key: r.Key, Operator: r.Operator, Values: r.Values}, value{text, has}) {
			return false
		}
	}
	return true
}

// concerns reports whether an affinity term selects the pod.
func concerns(t *model.Term, pod *model.Pod) bool {
	s := &t.Selector
	return (s.AllNamespaces || slices.Contains(s.Namespaces, pod.Namespace)) && selects(s, pod.Labels)
}
