package check

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/test/bench/workload"
)

// amounts are thousandths of each resource, rounded up.
type amounts map[corev1.ResourceName]int64

func amountsOf(l corev1.ResourceList) amounts {
	a := make(amounts, len(l))
	for name, q := range l {
		a[name] = q.MilliValue()
	}
	return a
}

func (a amounts) add(b amounts) {
	for name, n := range b {
		a[name] += n
	}
}

// lacking returns the resources that exceed the available amounts, in order.
func (a amounts) lacking(have amounts) []corev1.ResourceName {
	var short []corev1.ResourceName
	for name, n := range a {
		if n > 0 && n > have[name] {
			short = append(short, name)
		}
	}
	slices.Sort(short)
	return short
}

func (a amounts) fits(have amounts) bool {
	for name, n := range a {
		if n > 0 && n > have[name] {
			return false
		}
	}
	return true
}

// expression is one requirement on a label.
type expression struct {
	key, operator string
	values        []string
}

// holds reports whether a label with this value, or a missing label, satisfies the expression. Gt and Lt never hold
// for a value that is not an integer. An unknown operator never holds.
func (e expression) holds(value string, has bool) bool {
	switch e.operator {
	case "In":
		return has && slices.Contains(e.values, value)
	case "NotIn":
		return !has || !slices.Contains(e.values, value)
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	}
	if !has || len(e.values) == 0 {
		return false
	}
	n, err := strconv.ParseInt(value, 10, 64)
	bound, boundErr := strconv.ParseInt(e.values[0], 10, 64)
	if err != nil || boundErr != nil {
		return false
	}
	switch e.operator {
	case "Gt":
		return n > bound
	case "Lt":
		return n < bound
	case "Gte":
		return n >= bound
	case "Lte":
		return n <= bound
	}
	return false
}

func allHold(expressions []expression, labels map[string]string) bool {
	for _, e := range expressions {
		if value, has := labels[e.key]; !e.holds(value, has) {
			return false
		}
	}
	return true
}

// selector is a label selector. Equivalent selectors have the same text.
type selector struct {
	nothing     bool // selects nothing; otherwise an empty list of expressions selects everything
	expressions []expression
	text        string
}

func newSelector(s *metav1.LabelSelector, more []expression) selector {
	if s == nil {
		return selector{nothing: true, text: "nothing"}
	}
	all := slices.Clone(more)
	for key, value := range s.MatchLabels {
		all = append(all, expression{key, "In", []string{value}})
	}
	for _, e := range s.MatchExpressions {
		all = append(all, expression{e.Key, string(e.Operator), slices.Sorted(slices.Values(e.Values))})
	}
	texts := make([]string, len(all))
	for i, e := range all {
		texts[i] = fmt.Sprintf("%q", append([]string{e.key, e.operator}, e.values...))
	}
	slices.Sort(texts)
	return selector{expressions: all, text: strings.Join(slices.Compact(texts), " ")}
}

func (s selector) selects(labels map[string]string) bool {
	return !s.nothing && allHold(s.expressions, labels)
}

// placeRule holds the pod's rules about a node's labels and taints. Pods with the same rules share one.
type placeRule struct {
	text        string
	selector    map[string]string
	required    *corev1.NodeSelector
	tolerations []corev1.Toleration
	keys        []string // all label keys in the rules
}

func newPlaceRule(spec *corev1.PodSpec) (*placeRule, error) {
	r := &placeRule{selector: spec.NodeSelector, tolerations: spec.Tolerations}
	if spec.Affinity != nil && spec.Affinity.NodeAffinity != nil {
		r.required = spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	}
	r.keys = slices.Collect(maps.Keys(r.selector))
	if r.required != nil {
		for _, term := range r.required.NodeSelectorTerms {
			for _, e := range term.MatchExpressions {
				r.keys = append(r.keys, e.Key)
			}
		}
	}
	slices.Sort(r.keys)
	r.keys = slices.Compact(r.keys)
	text, err := json.Marshal([]any{r.selector, r.required, r.tolerations})
	r.text = string(text)
	return r, err
}

func (r *placeRule) selected(labels map[string]string) bool {
	for key, value := range r.selector {
		if have, ok := labels[key]; !ok || have != value {
			return false
		}
	}
	return true
}

// affine reports whether a term of the required node affinity holds. A term without expressions and fields never
// holds.
func (r *placeRule) affine(labels map[string]string, name string) bool {
	if r.required == nil {
		return true
	}
	for _, term := range r.required.NodeSelectorTerms {
		if len(term.MatchExpressions)+len(term.MatchFields) > 0 &&
			allHold(nodeExpressions(term.MatchExpressions), labels) && fieldsHold(nodeExpressions(term.MatchFields), name) {
			return true
		}
	}
	return false
}

func fieldsHold(fields []expression, name string) bool {
	for _, f := range fields {
		if f.key != "metadata.name" || !f.holds(name, name != "") {
			return false
		}
	}
	return true
}

func nodeExpressions(requirements []corev1.NodeSelectorRequirement) []expression {
	all := make([]expression, len(requirements))
	for i, r := range requirements {
		all[i] = expression{r.Key, string(r.Operator), r.Values}
	}
	return all
}

// hard are the effects that exclude a pod; soft adds PreferNoSchedule.
var (
	hard = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute}
	soft = append(slices.Clone(hard), corev1.TaintEffectPreferNoSchedule)
)

func (r *placeRule) tolerates(taints []corev1.Taint, effects []corev1.TaintEffect) bool {
	for _, taint := range taints {
		if slices.Contains(effects, taint.Effect) && !slices.ContainsFunc(r.tolerations, func(t corev1.Toleration) bool { return tolerated(t, taint) }) {
			return false
		}
	}
	return true
}

func tolerated(by corev1.Toleration, taint corev1.Taint) bool {
	if by.Effect != "" && by.Effect != taint.Effect {
		return false
	}
	switch by.Operator {
	case corev1.TolerationOpExists:
		return by.Key == "" || by.Key == taint.Key
	case corev1.TolerationOpEqual, "":
		return by.Key == taint.Key && by.Value == taint.Value
	}
	return false
}

// refused returns the kinds of rule that a node violates.
func (r *placeRule) refused(labels map[string]string, taints []corev1.Taint, name string) []string {
	var kinds []string
	if !r.tolerates(taints, hard) {
		kinds = append(kinds, "taint")
	}
	if !r.selected(labels) {
		kinds = append(kinds, "node selector")
	}
	if !r.affine(labels, name) {
		kinds = append(kinds, "node affinity")
	}
	return kinds
}

// pod is a pod with its evaluated rules.
type pod struct {
	*corev1.Pod
	key        string
	kind       string // namespace and labels: the inputs of selectors
	request    amounts
	rule       *placeRule
	shape      string // rule and request
	spreads    []corev1.TopologySpreadConstraint
	affinity   []podTerm
	anti       []podTerm
	unverified bool
}

// podTerm is a term of pod (anti-)affinity. Equivalent terms have the same text.
type podTerm struct {
	namespaces []string
	byLabel    selector // of namespaces
	pods       selector
	key        string
	text       string
}

func (t *podTerm) matches(namespace string, labels map[string]string) bool {
	return (slices.Contains(t.namespaces, namespace) || t.byLabel.selects(map[string]string{corev1.LabelMetadataName: namespace})) && t.pods.selects(labels)
}

// newPod shares the rules of pods with the same rules.
func newPod(p *corev1.Pod, rules map[string]*placeRule) (*pod, error) {
	rule, err := newPlaceRule(&p.Spec)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", p.Name, err)
	}
	if known := rules[rule.text]; known != nil {
		rule = known
	}
	rules[rule.text] = rule
	n := &pod{Pod: p, rule: rule, request: requestOf(&p.Spec)}
	if p.Namespace == "" {
		p.Namespace = "default"
	}
	n.key, n.kind = p.Namespace+"/"+p.Name, p.Namespace+" "+fmt.Sprintf("%q", p.Labels)
	n.shape = rule.text + fmt.Sprint(n.request)
	for _, c := range p.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable == corev1.DoNotSchedule {
			n.spreads = append(n.spreads, c)
		}
	}
	if a := p.Spec.Affinity; a != nil && a.PodAffinity != nil {
		n.affinity = n.terms(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	if a := p.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
		n.anti = n.terms(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	n.unverified = hasOtherRules(&p.Spec)
	return n, nil
}

// own returns expressions with the pod's own values of some labels.
func (p *pod) own(keys []string, operator string) []expression {
	var all []expression
	for _, key := range keys {
		if value, ok := p.Labels[key]; ok {
			all = append(all, expression{key, operator, []string{value}})
		}
	}
	return all
}

func (p *pod) terms(terms []corev1.PodAffinityTerm) []podTerm {
	all := make([]podTerm, len(terms))
	for i, t := range terms {
		names := slices.Sorted(slices.Values(t.Namespaces))
		if len(names) == 0 && t.NamespaceSelector == nil {
			names = []string{p.Namespace}
		}
		more := append(p.own(t.MatchLabelKeys, "In"), p.own(t.MismatchLabelKeys, "NotIn")...)
		byLabel, pods := newSelector(t.NamespaceSelector, nil), newSelector(t.LabelSelector, more)
		all[i] = podTerm{names, byLabel, pods, t.TopologyKey, fmt.Sprintf("%q", append([]string{byLabel.text, pods.text, t.TopologyKey}, names...))}
	}
	return all
}

func hasOtherRules(spec *corev1.PodSpec) bool {
	return len(spec.ResourceClaims) > 0 || len(spec.SchedulingGates) > 0 || spec.Resources != nil ||
		slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil || v.Ephemeral != nil }) ||
		slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool {
			return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 })
		})
}

// requestOf returns the requests of a pod: the sum of its containers and sidecars, or that of its init containers if
// it is larger; its overhead; one slot.
func requestOf(spec *corev1.PodSpec) amounts {
	total, sidecars, start := amounts{}, amounts{}, amounts{}
	for i := range spec.Containers {
		total.add(containerRequest(&spec.Containers[i]))
	}
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		now := maps.Clone(sidecars)
		now.add(containerRequest(c))
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecars = now
		}
		for name, n := range now {
			start[name] = max(start[name], n)
		}
	}
	total.add(sidecars)
	for name, n := range start {
		total[name] = max(total[name], n)
	}
	total.add(amountsOf(spec.Overhead))
	total[corev1.ResourcePods] = 1000
	return total
}

func containerRequest(c *corev1.Container) amounts {
	a := amountsOf(c.Resources.Limits)
	maps.Copy(a, amountsOf(c.Resources.Requests))
	return a
}

// wellKnown are labels that every node has, or that only the provider sets.
var wellKnown = []string{
	workload.LabelType, workload.LabelArch, workload.LabelOS, workload.LabelZone, workload.LabelCapacity, workload.LabelPool,
	"topology.kubernetes.io/region", "node.kubernetes.io/windows-build",
}
