package check

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

const (
	// NodePrice is the cost of a node beyond its price, USD per hour.
	NodePrice = 0.005
	// tolerance is the relative tolerance of prices.
	tolerance = 0.005
	// optionsPerNode is the maximum number of a node's instance types that are checked.
	optionsPerNode = 20
)

// node is a node of the workload or of the answer.
type node struct {
	name        string
	labels      map[string]string
	taints      []corev1.Taint
	capacity    amounts
	allocatable amounts
	used        amounts
	pods        []*pod // pods that the answer places here
	index       int
	// set only for the answer's nodes; pool and types may be unknown
	offering
	pool    *pool
	options []string
}

// placement is a pod and the node that the answer places it on.
type placement struct {
	pod  *pod
	node *node
}

// judge is the state of one check.
type judge struct {
	*Report
	*catalog
	answer   *Answer
	existing []*node
	added    []*node
	byName   map[string]*node // existing ones
	pending  []*pod
	byKey    map[string]*pod // pending ones
	bound    []placement
	placed   []placement
	at       map[string]*node // by pod
}

// Of judges an answer to a workload. An error means that the workload is invalid.
func Of(w *workload.World, a *Answer) (*Report, error) {
	j, err := newJudge(w, a)
	if err != nil {
		return nil, fmt.Errorf("checking the answer to %s: %w", w.Name, err)
	}
	j.launch()
	nodes := slices.Concat(j.existing, j.added)
	for i, n := range nodes {
		n.index = i
	}
	j.place()
	for _, n := range nodes {
		j.judgeNode(n)
	}
	j.account()
	j.judgeTopology(nodes)
	room := j.judgeLimits()
	j.judgeOptions()
	j.judgeWeights(room)
	j.judgeTotals()
	j.Nodes, j.Placed, j.Unscheduled = len(j.added), len(j.placed), len(j.pending)-len(j.placed)
	j.Cost = j.Price + NodePrice*float64(j.Nodes)
	j.Examples, j.EndStateOnly = j.examples(), a.BindOrder == nil
	return j.Report, nil
}

func newJudge(w *workload.World, a *Answer) (*judge, error) {
	c, err := newCatalog(w)
	if err != nil {
		return nil, err
	}
	j := &judge{
		Report:  &Report{Warnings: map[string]int{}, Problems: map[string]int{}, texts: map[string][]string{}},
		catalog: c, answer: a, byName: map[string]*node{}, byKey: map[string]*pod{}, at: map[string]*node{},
	}
	for i := range w.Nodes {
		n := existingNode(&w.Nodes[i])
		j.existing, j.byName[n.name] = append(j.existing, n), n
	}
	rules := map[string]*placeRule{}
	for _, pods := range [][]corev1.Pod{w.Pods, w.Bound} {
		for i := range pods {
			p, err := newPod(&pods[i], rules)
			if err != nil {
				return nil, err
			}
			j.addPod(p)
		}
	}
	return j, nil
}

func existingNode(n *corev1.Node) *node {
	taints := slices.Clone(n.Spec.Taints)
	if n.Spec.Unschedulable {
		taints = append(taints, corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	return &node{
		name: n.Name, labels: n.Labels, taints: taints, used: amounts{},
		capacity: amountsOf(n.Status.Capacity), allocatable: amountsOf(n.Status.Allocatable),
	}
}

func (j *judge) addPod(p *pod) {
	switch {
	case p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed:
	case p.Spec.NodeName == "":
		j.pending, j.byKey[p.key] = append(j.pending, p), p
		if p.unverified {
			j.warn("podsWithRulesNotVerified", 1)
		}
	case j.byName[p.Spec.NodeName] != nil:
		n := j.byName[p.Spec.NodeName]
		n.used.add(p.request)
		j.bound = append(j.bound, placement{p, n})
	}
}

// launch creates the answer's new nodes, and judges each as an offering of its pool.
func (j *judge) launch() {
	names := map[string]bool{}
	for name := range j.byName {
		names[name] = true
	}
	for i := range j.answer.Nodes {
		x := &j.answer.Nodes[i]
		name := x.Name
		if names[name] {
			j.problem("node name", name+" is used twice")
			name = fmt.Sprintf("%s#%d", name, i)
		}
		names[name] = true
		if len(x.Pods) == 0 {
			j.warn("emptyNodes", 1)
		}
		j.added = append(j.added, j.buyNode(name, x))
	}
}

func (j *judge) buyNode(name string, x *NewNode) *node {
	n := &node{
		name: name, offering: offering{x.InstanceType, x.Zone, x.CapacityType}, options: x.InstanceTypes, used: amounts{},
		labels: map[string]string{workload.LabelZone: x.Zone, workload.LabelCapacity: x.CapacityType}, pool: j.pools[x.NodePool],
	}
	if n.pool == nil {
		j.problem("unknown pool", name+": "+x.NodePool)
	}
	if j.types[x.InstanceType] == nil {
		j.problem("unknown type", name+": "+x.InstanceType)
	}
	switch price, sold := j.prices[n.offering]; {
	case !sold:
		j.problem("offering", fmt.Sprintf("%s: no %s %s in %s", name, x.InstanceType, x.CapacityType, x.Zone))
	default:
		j.Price += price
		if x.PricePerHour != nil && math.Abs(*x.PricePerHour-price) > tolerance*price {
			j.problem("price", fmt.Sprintf("%s: %s %s in %s costs %g, not %g", name, x.InstanceType, x.CapacityType, x.Zone, price, *x.PricePerHour))
		}
	}
	if n.pool != nil && j.types[x.InstanceType] != nil {
		n.labels, n.taints, n.allocatable = j.labels(n.pool, n.offering), n.pool.taints, j.allocatable[x.InstanceType]
		n.capacity = j.capacity[x.InstanceType]
		if !allHold(n.pool.requirements, n.labels) {
			j.problem("pool requirement", fmt.Sprintf("%s: %s does not allow %s %s in %s", name, n.pool.name, x.InstanceType, x.CapacityType, x.Zone))
		}
	}
	n.labels[workload.LabelHost] = name
	return n
}

// place places pods on nodes as the answer specifies, each once.
func (j *judge) place() {
	for i, x := range j.answer.Nodes {
		j.placeOn(j.added[i], x.Pods)
	}
	for _, x := range j.answer.ExistingNodes {
		n := j.byName[x.Name]
		if n == nil {
			j.problem("unknown node", x.Name)
		}
		j.placeOn(n, x.Pods)
	}
}

func (j *judge) placeOn(n *node, keys []string) {
	for _, key := range keys {
		p := j.byKey[key]
		if p == nil {
			j.problem("unknown pod", key+" is not a pending pod of the workload")
			continue
		}
		if before := j.at[key]; before != nil {
			j.problem("placed twice", key+" was on "+before.name)
		} else if n != nil {
			j.at[key], j.placed = n, append(j.placed, placement{p, n})
		}
		if n != nil { // it uses room in any case
			n.pods = append(n.pods, p)
			n.used.add(p.request)
		}
	}
}

// judgeNode judges the pods that the answer places on a node by the node's labels, taints and resources.
func (j *judge) judgeNode(n *node) {
	refused, asked := map[*placeRule][]string{}, map[corev1.ResourceName]bool{}
	for _, p := range n.pods {
		kinds, known := refused[p.rule]
		if !known {
			kinds = p.rule.refused(n.labels, n.taints, n.name)
			refused[p.rule] = kinds
		}
		for _, kind := range kinds {
			j.problem(kind, p.key+" on "+n.name)
		}
		for name, amount := range p.request {
			asked[name] = asked[name] || amount > 0
		}
	}
	for _, name := range n.used.lacking(n.allocatable) {
		if asked[name] { // if bound pods overcommit a resource, only pods that request it are affected
			j.problem("capacity "+string(name), fmt.Sprintf("%s: %g asked, %g allocatable", n.name, float64(n.used[name])/1000, float64(n.allocatable[name])/1000))
		}
	}
}

// account checks that every pending pod is either placed or reported as unschedulable.
func (j *judge) account() {
	called, alone := map[string]bool{}, map[string]bool{}
	for _, u := range j.answer.Unschedulable {
		p := j.byKey[u.Pod]
		switch {
		case p == nil:
			j.problem("unknown pod", u.Pod+" is called unschedulable but is not a pending pod")
			continue
		case called[u.Pod]:
			j.problem("unschedulable twice", u.Pod)
		case j.at[u.Pod] != nil:
			j.problem("placed and unschedulable", u.Pod)
		}
		called[u.Pod] = true
		if len(u.Reasons) == 0 {
			j.warn("noReason", 1)
		}
		lone, known := alone[p.shape]
		if !known {
			lone = slices.ContainsFunc(j.poolOrder, func(pool *pool) bool { return j.couldHold(pool, p, nil, hard) })
			alone[p.shape] = lone
		}
		if lone {
			j.warn("lone", 1)
		}
	}
	for _, p := range j.pending {
		if j.at[p.key] == nil && !called[p.key] {
			j.problem("unaccounted", p.key)
		}
	}
}

func (j *judge) judgeTopology(nodes []*node) {
	pods := make([]*pod, 0, len(j.bound)+len(j.placed))
	for _, b := range slices.Concat(j.bound, j.placed) {
		pods = append(pods, b.pod)
	}
	t := newTopology(nodes, pods)
	for _, b := range j.bound {
		t.bind(b.pod, b.node)
	}
	if j.answer.BindOrder == nil {
		t.remember()
		for _, b := range j.placed {
			t.bind(b.pod, b.node)
		}
		t.judgeEnd(j.placed, j.problem)
		return
	}
	for _, b := range j.inOrder() {
		for _, kind := range t.judge(b.pod, b.node) {
			j.problem(kind, b.pod.key+" on "+b.node.name+" at its turn")
		}
		t.bind(b.pod, b.node)
	}
}

// inOrder returns the placements in the order of binding, then those that the order omits.
func (j *judge) inOrder() []placement {
	seen := make(map[string]bool, len(j.placed))
	order := make([]placement, 0, len(j.placed))
	for _, key := range j.answer.BindOrder {
		switch n := j.at[key]; {
		case n == nil:
			j.problem("bind order", key+" is not placed")
		case seen[key]:
			j.problem("bind order", key+" is bound twice")
		default:
			seen[key] = true
			order = append(order, placement{j.byKey[key], n})
		}
	}
	for _, b := range j.placed {
		if !seen[b.pod.key] {
			j.problem("bind order", b.pod.key+" is left out")
			order = append(order, b)
		}
	}
	return order
}
