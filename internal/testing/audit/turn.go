package audit

import (
	"maps"
	"slices"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// turns binds the pods of the plan in its order, with all nodes present. For each pod it checks the filters of
// kube-scheduler that depend on bound pods: PodTopologySpread, InterPodAffinity and NodePorts.
func (j *judge) turns(p *plan.Provision) {
	leavers := j.leavers(p)
	r, spotOf := j.initialState(p, leavers)
	seen := map[string]bool{}
	for i, pod := range p.Order {
		if len(leavers) > 0 && j.haveLeft(r, pod, spotOf[pod.UID]) {
			leavers = nil
			r, spotOf = j.initialState(p, nil)
			j.bindAgain(r, p.Order[:i], spotOf)
		}
		s := spotOf[pod.UID]
		switch {
		case seen[pod.UID]:
			j.blame("order", pod.Key(), "is bound twice")
			continue
		case s == nil:
			j.blame("order", pod.Key(), "is bound and has no place")
			continue
		}
		seen[pod.UID] = true
		j.turn(r, pod, s)
		r.bind(pod, s, true)
	}
	for _, uid := range slices.Sorted(maps.Keys(spotOf)) {
		if !seen[uid] {
			j.blame("order", uid, "has a place and is never bound")
		}
	}
}

// leavers returns the pods of the plan that run on nodes being removed and cannot be evicted at present. They are
// removed together: before the first of them is bound, or before the first pod that requires it. A pod with a claim
// that only one pod may use counts as removed already: the plan makes no difference for it.
func (j *judge) leavers(p *plan.Provision) []*model.Pod {
	var leavers []*model.Pod
	for _, pod := range p.Order {
		if !j.snap.EvictionBlocked[pod.UID] {
			continue
		}
		if slices.ContainsFunc(pod.Shared, func(v model.Volume) bool { return v.Exclusive }) {
			return nil
		}
		leavers = append(leavers, pod)
	}
	return leavers
}

// haveLeft reports whether the leavers must be removed before the pod is bound: the pod is one of them, or it is not
// admissible while they run.
func (j *judge) haveLeft(r *bindState, pod *model.Pod, s *spot) bool {
	if s == nil || j.snap.EvictionBlocked[pod.UID] {
		return true
	}
	problems, ports := j.problems, s.ports
	j.problems = nil
	j.turn(r, pod, s)
	problem := len(j.problems) > 0
	j.problems, s.ports = problems, ports
	return problem
}

func (j *judge) bindAgain(r *bindState, pods []*model.Pod, spotOf map[string]*spot) {
	for _, pod := range pods {
		if s := spotOf[pod.UID]; s != nil {
			s.ports = append(s.ports, pod.HostPorts...)
			r.bind(pod, s, true)
		}
	}
}

// initialState returns a state that contains the pods that are bound before the first pod of the plan, and the node of each
// placed pod. It includes the leavers.
func (j *judge) initialState(p *plan.Provision, leavers []*model.Pod) (*bindState, map[string]*spot) {
	nodes, all, spotOf := j.spots(p)
	r := newBindState(all)
	for i, n := range j.snap.Nodes {
		for _, pod := range n.Pods {
			r.carried(pod)
			nodes[i].ports = append(nodes[i].ports, pod.HostPorts...)
		}
	}
	stay := append(j.staying(p), leavers...)
	for _, pod := range stay {
		r.carried(pod)
	}
	j.daemonPorts(nodes, all)
	for _, d := range j.snap.Daemons {
		r.carried(daemonPod(d))
	}
	for _, pod := range p.Order {
		r.rulesOf(pod)
	}
	for i, n := range j.snap.Nodes {
		for _, pod := range n.Pods {
			r.bind(pod, nodes[i], !pod.Terminating)
		}
		for _, pod := range stay {
			if pod.Node == n.Name {
				r.bind(pod, nodes[i], true)
			}
		}
	}
	j.daemonsCome(r, nodes, all)
	return r, spotOf
}

// staying returns the pods that run on nodes being removed, cannot be evicted at present and are refused by the plan.
// They stay where they are.
func (j *judge) staying(p *plan.Provision) []*model.Pod {
	var stay []*model.Pod
	for _, r := range p.Refused {
		for _, pod := range r.Pods {
			if j.snap.EvictionBlocked[pod.UID] {
				stay = append(stay, pod)
			}
		}
	}
	return stay
}

// daemonPorts reserves the host ports of the daemons that may run on planned nodes and on nodes that are not
// initialized.
func (j *judge) daemonPorts(nodes, all []*spot) {
	for i, s := range all {
		there := map[string]bool{}
		if i < len(nodes) {
			if j.snap.Nodes[i].Stage == model.Initialized {
				continue
			}
			for _, pod := range j.snap.Nodes[i].Pods {
				there[pod.Controller.UID] = true
			}
		}
		for _, d := range j.snap.Daemons {
			if _, no := untolerated(s.taints, d.DaemonSpec.Tolerations); no || there[d.UID] {
				continue
			}
			if slices.ContainsFunc(s.futures, func(l labeling) bool { return mayAdmit(d.DaemonSpec.Alternatives, l) }) {
				s.ports = append(s.ports, d.HostPorts...)
			}
		}
	}
}

// turn checks one pod.
func (j *judge) turn(r *bindState, pod *model.Pod, s *spot) {
	if port, taken := portTaken(s.ports, pod.HostPorts); taken {
		j.blame("port", pod.Key(), "finds port %d of %s taken at its turn", port.Port, s.name)
	}
	s.ports = append(s.ports, pod.HostPorts...)
	rules := r.rulesOf(pod)
	for i, c := range rules.spread {
		j.spread(pod, s, &pod.Spread[rules.hard[i]], c)
	}
	if rules.near != nil && !rules.allNear(s) && !(rules.alone() && rules.attractsItself && rules.everyKey(s)) {
		j.blame("affinity", pod.Key(), "finds no pod on %s at its turn that its affinity requires", s.name)
	}
	for i, c := range rules.apart {
		if c.mayHold(s, rules.apartKeys[i]) {
			j.blame("anti-affinity", pod.Key(), "finds a pod in %s of %s at its turn that its anti-affinity excludes", rules.apartKeys[i], s.name)
		}
	}
	for _, c := range r.carriers {
		if c.term(pod) && c.mayHold(s, c.keys[0]) {
			j.blame("inverse", pod.Key(), "finds a pod in %s of %s at its turn whose anti-affinity excludes it", c.keys[0], s.name)
		}
	}
}

func (j *judge) spread(pod *model.Pod, s *spot, constraint *model.Spread, c *tally) {
	key := canonical(constraint.Key)
	if s.has(key) != surely {
		j.blame("spread", pod.Key(), "is to spread over %s, which %s may lack", key, s.name)
		return
	}
	self := 0
	if selects(&constraint.Selector, pod.Labels) {
		self = 1
	}
	if there, fewest := c.crowded(s), c.fewest(constraint.MinDomains); there+self-fewest > constraint.MaxSkew {
		j.blame("spread", pod.Key(), "on %s at its turn: %s has %d, the emptiest %d, maxSkew is %d", s.name, key, there, fewest, constraint.MaxSkew)
	}
}

// bindState is the state of the cluster while pods are bound.
type bindState struct {
	spots []*spot
	// tallies by what they count. The slices are in order of creation; live ignores terminating pods.
	tallies  map[string]*tally
	live     []*tally
	general  []*tally
	carriers []*carrier
	rules    map[string]*podRules
	// terms caches the tallies of the carriers of a pod's terms, by pod signature.
	terms map[string][]*tally
	// counted caches which tallies count a pod, by namespace and labels.
	counted map[string]*counted
}

// carrier counts the pods that carry a required anti-affinity term. term reports whether the term selects a pod.
type carrier struct {
	*tally
	term func(*model.Pod) bool
}

// counted holds the tallies that count a pod.
type counted struct{ live, general []*tally }

func newBindState(spots []*spot) *bindState {
	return &bindState{spots: spots, tallies: map[string]*tally{}, rules: map[string]*podRules{}, terms: map[string][]*tally{},
		counted: map[string]*counted{}}
}

// podRules holds the tallies that the rules of one pod read.
type podRules struct {
	spread []*tally
	hard   []int
	// near counts the pods that all affinity terms select; nil without terms.
	near *tally
	// attractsItself reports whether the pod is selected by its own terms.
	attractsItself bool
	apart          []*tally
	apartKeys      []string
}

// allNear reports whether the node has every topology key, and each of these domains contains a pod that the terms
// select.
func (p *podRules) allNear(s *spot) bool {
	return !slices.ContainsFunc(p.near.keys, func(key string) bool { return !p.near.holds(s, key) })
}

// everyKey reports whether the node has every topology key.
func (p *podRules) everyKey(s *spot) bool {
	return !slices.ContainsFunc(p.near.keys, func(key string) bool { return s.has(key) != surely })
}

// alone reports whether no pod in the cluster is selected by the terms.
func (p *podRules) alone() bool { return len(p.near.most) == 0 }

// carried returns the tallies of the pods that carry the pod's required anti-affinity terms.
func (r *bindState) carried(pod *model.Pod) []*tally {
	list, known := r.terms[pod.Signature]
	if known {
		return list
	}
	for i := range pod.Terms {
		if t := &pod.Terms[i]; t.Anti && t.Weight == 0 {
			list = append(list, r.carrier(t))
		}
	}
	r.terms[pod.Signature] = list
	return list
}

// rulesOf returns the tallies that the pod's rules read. All tallies are created before the first pod is bound.
func (r *bindState) rulesOf(pod *model.Pod) *podRules {
	kind := kindOf(pod) + signatureOf(pod)
	if known := r.rules[kind]; known != nil {
		return known
	}
	rules := &podRules{}
	r.rules[kind] = rules
	for i := range pod.Spread {
		if !pod.Spread[i].Soft {
			rules.spread, rules.hard = append(rules.spread, r.spreadTally(pod, i)), append(rules.hard, i)
		}
	}
	var near []*model.Term
	for i := range pod.Terms {
		t := &pod.Terms[i]
		switch {
		case t.Weight > 0 || t.Together: // see judge.together
		case t.Anti:
			rules.apart = append(rules.apart, r.tally(&r.general, canonicalText("apart", t.Selector, t.Key),
				func(p *model.Pod) bool { return concerns(t, p) }, canonical(t.Key)))
			rules.apartKeys = append(rules.apartKeys, canonical(t.Key))
		default:
			near = append(near, t)
		}
	}
	r.carried(pod)
	if near != nil {
		rules.near = r.nearTally(near)
		rules.attractsItself = rules.near.selected(pod)
	}
	return rules
}

func (r *bindState) tally(list *[]*tally, id string, selected func(*model.Pod) bool, keys ...string) *tally {
	known := r.tallies[id]
	if known == nil {
		known = newTally(selected, keys...)
		r.tallies[id] = known
		*list = append(*list, known)
	}
	return known
}

// carrier returns the tally of the pods with the anti-affinity term.
func (r *bindState) carrier(t *model.Term) *tally {
	id := canonicalText("carrier", t.Selector, t.Key)
	known := r.tallies[id]
	if known == nil {
		known = newTally(nil, canonical(t.Key))
		r.tallies[id] = known
		r.carriers = append(r.carriers, &carrier{known, func(p *model.Pod) bool { return concerns(t, p) }})
	}
	return known
}

// nearTally returns the tally of the pods that all required affinity terms select, by each of their keys.
// kube-scheduler counts no other pods, whichever term it evaluates.
func (r *bindState) nearTally(terms []*model.Term) *tally {
	id := "near"
	var keys []string
	for _, t := range terms {
		id += canonicalText(t.Selector, t.Key)
		if key := canonical(t.Key); !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return r.tally(&r.general, id, func(p *model.Pod) bool {
		return !slices.ContainsFunc(terms, func(t *model.Term) bool { return !concerns(t, p) })
	}, keys...)
}

// spreadTally returns the tally of a spread constraint. It counts pods on nodes that have all topology keys of the
// pod's constraints and, depending on the policies, that the pod's node affinity accepts and whose taints it
// tolerates.
func (r *bindState) spreadTally(pod *model.Pod, at int) *tally {
	c := &pod.Spread[at]
	var keys []string
	for i := range pod.Spread {
		if !pod.Spread[i].Soft {
			keys = append(keys, canonical(pod.Spread[i].Key))
		}
	}
	id := canonicalText("spread", pod.Namespace, c.Selector, c.Key, keys)
	if !c.IgnoreAffinity {
		id += canonicalText("affinity", pod.Alternatives)
	}
	if c.HonorTaints {
		id += canonicalText("taints", pod.Tolerations)
	}
	if known := r.tallies[id]; known != nil {
		return known
	}
	// A selector without requirements selects no pod (kube-scheduler, countPodsMatchSelector).
	t := r.tally(&r.live, id, func(p *model.Pod) bool {
		return p.Namespace == pod.Namespace && len(c.Selector.Requirements) > 0 && selects(&c.Selector, p.Labels)
	}, canonical(c.Key))
	where := map[*spot]membership{}
	for _, s := range r.spots {
		where[s] = countsNode(pod, c, keys, s)
	}
	alternatives := pod.Alternatives
	if c.IgnoreAffinity {
		alternatives = nil
	}
	t.spreadOver(r.spots, where, alternatives)
	return t
}

func countsNode(pod *model.Pod, c *model.Spread, keys []string, s *spot) membership {
	counts := surely
	for _, key := range keys {
		counts = min(counts, s.has(key))
	}
	if !c.IgnoreAffinity && counts != never {
		counts = min(counts, s.accepted(pod.Alternatives))
	}
	if c.HonorTaints {
		if _, no := untolerated(s.taints, pod.Tolerations); no {
			counts = never
		}
	}
	return counts
}

// bind counts the pod in every tally that selects it, and in the live tallies if live is set. A pod that is planned
// as the successor of a terminating pod is live.
func (r *bindState) bind(pod *model.Pod, s *spot, live bool) {
	kind := kindOf(pod)
	c := r.counted[kind]
	if c == nil {
		c = &counted{}
		counts := func(t *tally) bool { return !t.selected(pod) }
		c.live, c.general = slices.DeleteFunc(slices.Clone(r.live), counts), slices.DeleteFunc(slices.Clone(r.general), counts)
		r.counted[kind] = c
	}
	if live {
		for _, t := range c.live {
			t.bind(s)
		}
	}
	for _, t := range c.general {
		t.bind(s)
	}
	for _, t := range r.carried(pod) {
		t.bind(s)
	}
}

// kindOf returns all properties of a pod that selectors see: its namespace and labels.
func kindOf(pod *model.Pod) string {
	kind := pod.Namespace + "\x00"
	for _, key := range slices.Sorted(maps.Keys(pod.Labels)) {
		kind += key + "\x00" + pod.Labels[key] + "\x00"
	}
	return kind
}
