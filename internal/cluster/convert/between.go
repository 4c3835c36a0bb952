package convert

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Constraints between pods: topology spread, pod affinity and anti-affinity, and host ports.

// Around holds the context of a pod's conversion besides its own manifest. With the zero value no namespace has
// labels and no claim exists.
type Around struct {
	// Namespaces holds the labels of the namespaces, by name.
	Namespaces map[string]map[string]string
	// Volumes looks up the claims of pods; nil if there are none.
	Volumes Volumes
	// Users returns the pods that use a claim, possibly including the pod that is converted. If it is nil, every
	// claim that several pods may use counts as shared. ReadWriteOncePod claims require it.
	Users func(namespace, claim string) []*corev1.Pod
	// Host reports whether there is a node with the hostname label; nil if there is none. Volumes on the disk of a
	// node require it.
	Host func(hostname string) bool
	// Everywhere reports whether volumes of the CSI driver can be used on every node that runs it: some node runs it, and
	// none reports topology keys. It is nil if nothing is known about drivers.
	Everywhere func(driver string) bool
	// DefaultSpread returns the constraints of a pod without constraints of its own; nil for none.
	DefaultSpread func(pod *corev1.Pod) []corev1.TopologySpreadConstraint
	// Admission applies to pods that are not created yet; nil if nothing is added to them.
	Admission Admission

	siblings siblings
}

// spreads converts the topology spread constraints (Kubernetes API, TopologySpreadConstraint).
func spreads(pod *corev1.Pod, v *Vocabulary, around *Around) []model.Spread {
	constraints := pod.Spec.TopologySpreadConstraints
	if len(constraints) == 0 && around.DefaultSpread != nil {
		constraints = around.DefaultSpread(pod)
	}
	if len(constraints) == 0 {
		return nil
	}
	if list := around.siblings.spreads(pod, constraints); list != nil {
		return list
	}
	list := make([]model.Spread, 0, len(constraints))
	for i := range constraints {
		c := &constraints[i]
		s := model.Spread{
			Key: v.Rules.Key(c.TopologyKey), MaxSkew: int(c.MaxSkew),
			Soft:           c.WhenUnsatisfiable == corev1.ScheduleAnyway,
			IgnoreAffinity: c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore,
			HonorTaints:    c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor,
			Selector:       selector(c.LabelSelector, []string{pod.Namespace}),
		}
		if c.MinDomains != nil {
			s.MinDomains = int(*c.MinDomains)
		}
		if c.LabelSelector != nil {
			s.Selector.Requirements = append(s.Selector.Requirements, ownValues(pod, c.MatchLabelKeys, label.In)...)
		}
		list = append(list, s)
	}
	around.siblings.remember(pod, constraints, list)
	return list
}

// ownValues returns requirements for the label values of the pod itself. It omits keys that the pod lacks (KEP-3243).
func ownValues(pod *corev1.Pod, keys []string, operator label.Operator) []label.Requirement {
	var reqs []label.Requirement
	for _, key := range slices.Sorted(slices.Values(keys)) {
		if value, has := pod.Labels[key]; has {
			reqs = append(reqs, label.Requirement{Key: key, Operator: operator, Values: []string{value}})
		}
	}
	return reqs
}

// terms converts pod affinity and anti-affinity.
func terms(pod *corev1.Pod, v *Vocabulary, around *Around) []model.Term {
	a := pod.Spec.Affinity
	if a == nil {
		return nil
	}
	var list []model.Term
	// A weight below 1, which only files can contain, becomes the lowest weight: 0 means required.
	const required = 0
	add := func(term *corev1.PodAffinityTerm, anti bool, weight int32) {
		list = append(list, model.Term{
			Key: v.Rules.Key(term.TopologyKey), Anti: anti, Weight: int(weight), Selector: termSelector(pod, term, around),
		})
	}
	if a.PodAffinity != nil {
		for i := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			add(&a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i], false, required)
		}
		for i := range a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
			add(&w.PodAffinityTerm, false, max(1, w.Weight))
		}
	}
	if a.PodAntiAffinity != nil {
		for i := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			add(&a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[i], true, required)
		}
		for i := range a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
			w := &a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
			add(&w.PodAffinityTerm, true, max(1, w.Weight))
		}
	}
	return list
}

// termSelector returns the selector of a term. The API server merges matchLabelKeys and mismatchLabelKeys into the
// selector when a pod is created (KEP-3633). Pods from files have not been merged, and merging twice changes nothing.
func termSelector(pod *corev1.Pod, term *corev1.PodAffinityTerm, around *Around) model.Selector {
	s := selector(term.LabelSelector, namespacesOf(pod, term, around))
	if term.NamespaceSelector != nil && isEmpty(term.NamespaceSelector) {
		s.AllNamespaces, s.Namespaces = true, nil
	}
	if term.LabelSelector != nil {
		s.Requirements = append(s.Requirements, ownValues(pod, term.MatchLabelKeys, label.In)...)
		s.Requirements = append(s.Requirements, ownValues(pod, term.MismatchLabelKeys, label.NotIn)...)
	}
	return s
}

func isEmpty(s *metav1.LabelSelector) bool { return len(s.MatchLabels)+len(s.MatchExpressions) == 0 }

// SelectsNamespaces reports whether the pod's affinity selects namespaces by labels.
func SelectsNamespaces(pod *corev1.Pod) bool {
	a := pod.Spec.Affinity
	if a == nil {
		return false
	}
	selects := func(term corev1.PodAffinityTerm) bool {
		return term.NamespaceSelector != nil && !isEmpty(term.NamespaceSelector)
	}
	weighted := func(term corev1.WeightedPodAffinityTerm) bool { return selects(term.PodAffinityTerm) }
	return a.PodAffinity != nil && (slices.ContainsFunc(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, selects) ||
		slices.ContainsFunc(a.PodAffinity.PreferredDuringSchedulingIgnoredDuringExecution, weighted)) ||
		a.PodAntiAffinity != nil && (slices.ContainsFunc(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution, selects) ||
			slices.ContainsFunc(a.PodAntiAffinity.PreferredDuringSchedulingIgnoredDuringExecution, weighted))
}

// namespacesOf returns the pod's own namespace if the term names none, else the listed and the selected ones.
func namespacesOf(pod *corev1.Pod, term *corev1.PodAffinityTerm, around *Around) []string {
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		return []string{pod.Namespace}
	}
	names := slices.Clone(term.Namespaces)
	if term.NamespaceSelector != nil && !isEmpty(term.NamespaceSelector) {
		wanted := selector(term.NamespaceSelector, nil)
		wanted.AllNamespaces = true
		for _, name := range slices.Sorted(maps.Keys(around.Namespaces)) {
			if wanted.Selects("", around.Namespaces[name]) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// selector converts a label selector. A null selector selects nothing, an empty one everything.
func selector(s *metav1.LabelSelector, namespaces []string) model.Selector {
	if s == nil {
		return model.Selector{Nothing: true}
	}
	out := model.Selector{Namespaces: namespaces}
	if n := len(s.MatchLabels) + len(s.MatchExpressions); n > 0 {
		out.Requirements = make([]label.Requirement, 0, n)
	}
	for _, key := range sortedKeys(s.MatchLabels) {
		out.Requirements = append(out.Requirements, label.Requirement{Key: key, Operator: label.In, Values: []string{s.MatchLabels[key]}})
	}
	for _, e := range s.MatchExpressions {
		operator, ok := label.ParseOperator(string(e.Operator))
		if !ok {
			return model.Selector{Nothing: true}
		}
		out.Requirements = append(out.Requirements, label.Requirement{Key: e.Key, Operator: operator, Values: slices.Sorted(slices.Values(e.Values))})
	}
	return out
}

// preferred converts the preferred node affinity terms. It omits terms without expressions, which match no node, and
// terms by name, which match no new node.
func preferred(pod *corev1.Pod, v *Vocabulary) []model.Preference {
	a := pod.Spec.Affinity
	if a == nil || a.NodeAffinity == nil {
		return nil
	}
	var list []model.Preference
	for i := range a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		p := &a.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution[i]
		byName := func(f corev1.NodeSelectorRequirement) bool { return fieldRequirement(f).Operator == label.In }
		if len(p.Preference.MatchExpressions)+len(p.Preference.MatchFields) == 0 || slices.ContainsFunc(p.Preference.MatchFields, byName) {
			continue
		}
		list = append(list, model.Preference{Weight: int(p.Weight), Requirements: v.term(&p.Preference)})
	}
	return list
}

// hostPorts returns the ports that the pod uses on its node; in the host network these are all of its ports. Init
// containers are ignored, because they end before the other containers start, except sidecars.
func hostPorts(pod *corev1.Pod) []model.HostPort {
	var list []model.HostPort
	add := func(c *corev1.Container) {
		for _, p := range c.Ports {
			if p.HostPort == 0 && pod.Spec.HostNetwork {
				p.HostPort = p.ContainerPort // the API server's default; pods from files lack it
			}
			if p.HostPort > 0 {
				port := model.HostPort{IP: p.HostIP, Protocol: string(p.Protocol), Port: p.HostPort}
				if port.Protocol == "" {
					port.Protocol = string(corev1.ProtocolTCP)
				}
				list = append(list, port)
			}
		}
	}
	for i := range pod.Spec.Containers {
		add(&pod.Spec.Containers[i])
	}
	for i := range pod.Spec.InitContainers {
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			add(&pod.Spec.InitContainers[i])
		}
	}
	return list
}
