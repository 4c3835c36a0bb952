package convert

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// Default topology spread: the constraints that the cluster's kube-scheduler is configured to apply to pods without
// constraints of their own. The built-in soft defaults of kube-scheduler are ignored: they would turn a preference
// that no user configured into nodes. See "Cluster-level default constraints" in
// https://kubernetes.io/docs/concepts/scheduling-eviction/topology-spread-constraints/.

// ParseSchedulerConfig parses the value of --scheduler-config, YAML or JSON:
//
//	podTopologySpread:
//	  defaultConstraints:
//	  - {maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule}
//
// Unknown fields are errors, and so are selectors: they follow from the owners of the pod. Empty text is no
// configuration.
func ParseSchedulerConfig(text string) ([]corev1.TopologySpreadConstraint, error) {
	var config struct {
		PodTopologySpread struct {
			DefaultConstraints []corev1.TopologySpreadConstraint `json:"defaultConstraints"`
		} `json:"podTopologySpread"`
	}
	if err := yaml.UnmarshalStrict([]byte(text), &config); err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	constraints := config.PodTopologySpread.DefaultConstraints
	for i := range constraints {
		if err := checkDefault(constraints, i); err != nil {
			return nil, fmt.Errorf("podTopologySpread.defaultConstraints[%d]%w", i, err)
		}
	}
	return constraints, nil
}

func checkDefault(all []corev1.TopologySpreadConstraint, i int) error {
	c := &all[i]
	same := func(o corev1.TopologySpreadConstraint) bool {
		return o.TopologyKey == c.TopologyKey && o.WhenUnsatisfiable == c.WhenUnsatisfiable
	}
	badPolicy := func(p *corev1.NodeInclusionPolicy) bool {
		return p != nil && *p != corev1.NodeInclusionPolicyHonor && *p != corev1.NodeInclusionPolicyIgnore
	}
	switch {
	case c.MaxSkew <= 0:
		return fmt.Errorf(".maxSkew: is %d, want at least 1", c.MaxSkew)
	case len(validation.IsQualifiedName(c.TopologyKey)) > 0:
		return fmt.Errorf(".topologyKey: is %q, want a label key", c.TopologyKey)
	case c.WhenUnsatisfiable != corev1.DoNotSchedule && c.WhenUnsatisfiable != corev1.ScheduleAnyway:
		return fmt.Errorf(".whenUnsatisfiable: is %q, want DoNotSchedule or ScheduleAnyway", c.WhenUnsatisfiable)
	case c.MinDomains != nil && *c.MinDomains <= 0:
		return fmt.Errorf(".minDomains: is %d, want at least 1", *c.MinDomains)
	case c.MinDomains != nil && c.WhenUnsatisfiable != corev1.DoNotSchedule:
		return fmt.Errorf(".minDomains: is set with %s, want DoNotSchedule", c.WhenUnsatisfiable)
	case badPolicy(c.NodeAffinityPolicy) || badPolicy(c.NodeTaintsPolicy):
		return fmt.Errorf(": nodeAffinityPolicy and nodeTaintsPolicy are Honor or Ignore")
	case c.LabelSelector != nil || len(c.MatchLabelKeys) > 0:
		return fmt.Errorf(": has labelSelector or matchLabelKeys; leave them out, they follow from what owns the pod")
	case slices.ContainsFunc(all[:i], same):
		return fmt.Errorf(": repeats topologyKey %s with %s", c.TopologyKey, c.WhenUnsatisfiable)
	}
	return nil
}

// Owners looks up the objects that select a pod. The methods return nil if there is no such object.
type Owners interface {
	// Services returns those of the namespace, in any order.
	Services(namespace string) []*corev1.Service
	// Selector returns that of the pod's controller if it is a ReplicationController, ReplicaSet or StatefulSet.
	Selector(namespace string, owner metav1.OwnerReference) *metav1.LabelSelector
}

// DefaultSpread returns Around.DefaultSpread for the constraints of a scheduler configuration. Pods that no object
// selects get no constraints.
func DefaultSpread(constraints []corev1.TopologySpreadConstraint, owners Owners) func(*corev1.Pod) []corev1.TopologySpreadConstraint {
	if len(constraints) == 0 {
		return nil
	}
	return func(pod *corev1.Pod) []corev1.TopologySpreadConstraint {
		selector := selectorOf(pod, owners)
		if isEmpty(selector) {
			return nil
		}
		all := slices.Clone(constraints)
		for i := range all {
			all[i].LabelSelector = selector
		}
		return all
	}
}

// selectorOf merges the selectors of the Services that select the pod, the later by name taking precedence, and that
// of its controller: the labels of a ReplicationController take precedence, those of others are added
// (kube-scheduler, helper.DefaultSelector).
func selectorOf(pod *corev1.Pod, owners Owners) *metav1.LabelSelector {
	merged := &metav1.LabelSelector{MatchLabels: map[string]string{}}
	services := slices.Clone(owners.Services(pod.Namespace))
	slices.SortFunc(services, func(a, b *corev1.Service) int { return cmp.Compare(a.Name, b.Name) })
	for _, service := range services {
		if Selected(service, pod) {
			maps.Copy(merged.MatchLabels, service.Spec.Selector)
		}
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return merged
	}
	own := owners.Selector(pod.Namespace, *owner)
	switch {
	case own == nil:
	case owner.Kind == "ReplicationController":
		maps.Copy(merged.MatchLabels, own.MatchLabels)
	default:
		for _, key := range sortedKeys(own.MatchLabels) {
			merged.MatchExpressions = append(merged.MatchExpressions, metav1.LabelSelectorRequirement{
				Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{own.MatchLabels[key]}})
		}
		merged.MatchExpressions = append(merged.MatchExpressions, own.MatchExpressions...)
	}
	return merged
}

// Selected reports whether the Service selects the pod. A Service without a selector selects none.
func Selected(service *corev1.Service, pod *corev1.Pod) bool {
	if service.Spec.Selector == nil {
		return false
	}
	for key, value := range service.Spec.Selector {
		if has, ok := pod.Labels[key]; !ok || has != value {
			return false
		}
	}
	return true
}
