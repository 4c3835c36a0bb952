package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// remember stores the counts of the pods that were bound before the plan.
func (t *topology) remember() {
	for _, s := range t.spreadList {
		s.start = maps.Clone(s.count)
	}
	for _, a := range t.affinities {
		a.start = maps.Clone(a.count)
	}
}

// alike identifies pods of a plan that count for their own constraint, in one domain.
type alike struct {
	spread     *spreadCount
	key, value string
	skew, most int
}

// judgeEnd judges what holds after every admissible order, when all pods are bound. Counts only grow and the nodes
// exist from the start, so that the minimum at a pod's turn is at most the one at the end.
func (t *topology) judgeEnd(placed []placement, report func(kind, text string)) {
	groups, carriers := map[alike]int{}, map[*affinityCount]map[domain]int{}
	for _, at := range placed {
		p, n := at.pod, at.node
		for _, c := range t.spreadOf[p.key] {
			d, has := n.labels[c.key]
			if !has {
				report("spread "+c.key, fmt.Sprintf("%s on %s: node has no such label", p.key, n.name))
				continue
			}
			own := 0
			if len(c.pods.expressions) > 0 && c.pods.selects(p.Labels) {
				own = 1
			}
			groups[alike{c.spreadCount, c.key, d, c.skew, c.most}] += own
		}
		if a := t.affinityOf[p.key]; a != nil {
			t.judgeAffinityEnd(a, at, carriers, report)
		}
		t.judgeAntiEnd(p, n, report)
	}
	for g, n := range groups {
		if least := g.spread.start[g.value] + n; least-g.spread.least(g.most) > g.skew {
			report("spread "+g.key, fmt.Sprintf("%d pods in %s, fewest elsewhere %d, maxSkew %d", least, g.value, g.spread.least(g.most), g.skew))
		}
	}
	for a, byDomain := range carriers {
		a.judgeFirst(byDomain, report)
	}
}

func (t *topology) judgeAffinityEnd(a *affinityCount, at placement, carriers map[*affinityCount]map[domain]int, report func(kind, text string)) {
	own := matchesAll(a.terms, at.pod)
	var asked []string
	for _, term := range a.terms {
		if slices.Contains(asked, term.key) {
			continue
		}
		asked = append(asked, term.key)
		d := domain{term.key, at.node.labels[term.key]}
		switch _, has := at.node.labels[term.key]; {
		case !has || a.count[d] == 0:
			report("affinity", fmt.Sprintf("%s on %s: nothing it asks for in %s %s", at.pod.key, at.node.name, d.key, d.value))
		case own:
			if carriers[a] == nil {
				carriers[a] = map[domain]int{}
			}
			carriers[a][d]++
		}
	}
}

// judgeFirst reports domains in which only carriers of the term that match themselves run. The first pod may do so if
// no pod matched anywhere before.
func (a *affinityCount) judgeFirst(byDomain map[domain]int, report func(kind, text string)) {
	alone := map[string][]domain{}
	for d, own := range byDomain {
		if a.start[d] == 0 && a.count[d] == own {
			alone[d.key] = append(alone[d.key], d)
		}
	}
	for _, domains := range alone {
		slices.SortFunc(domains, func(x, y domain) int { return cmp.Compare(x.value, y.value) })
		if len(a.start) == 0 {
			domains = domains[1:]
		}
		for _, d := range domains {
			report("affinity", fmt.Sprintf("first pod in %s %s found none of its kind there", d.key, d.value))
		}
	}
}

func (t *topology) judgeAntiEnd(p *pod, n *node, report func(kind, text string)) {
	selected := t.trackers(p).antis
	itself := func(term podTerm) int {
		if slices.ContainsFunc(selected, func(a *antiCount) bool { return a.term.text == term.text }) {
			return 1
		}
		return 0
	}
	if slices.ContainsFunc(p.anti, func(term podTerm) bool { return onNode(n, term.key, t.antis[term.text].matched) > itself(term) }) {
		report("anti-affinity", p.key+" on "+n.name)
	}
	carries := func(a *antiCount) bool {
		return slices.ContainsFunc(p.anti, func(term podTerm) bool { return term.text == a.term.text })
	}
	if slices.ContainsFunc(selected, func(a *antiCount) bool { return onNode(n, a.term.key, a.owners) > 0 && !carries(a) }) {
		report("anti-affinity of a bound pod", p.key+" on "+n.name)
	}
}
