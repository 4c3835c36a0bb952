package bound

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plain reports whether a selector contains only labels and their values.
func plain(s *metav1.LabelSelector) bool { return s != nil && len(s.MatchExpressions) == 0 }

func nodeTerms(spec *corev1.PodSpec) []corev1.NodeSelectorTerm {
	if a := spec.Affinity; a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		return a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	return nil
}

// admits reports whether a pod may use an offer. A PreferNoSchedule taint excludes no pod.
func admits(spec *corev1.PodSpec, o *offer) bool {
	for key, value := range spec.NodeSelector {
		if have, ok := o.labels[key]; !ok || have != value {
			return false
		}
	}
	for _, taint := range o.taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule &&
			!slices.ContainsFunc(spec.Tolerations, func(t corev1.Toleration) bool { return tolerated(t, taint) }) {
			return false
		}
	}
	terms := nodeTerms(spec)
	return len(terms) == 0 || slices.ContainsFunc(terms, func(t corev1.NodeSelectorTerm) bool {
		return !slices.ContainsFunc(t.MatchExpressions, func(e corev1.NodeSelectorRequirement) bool {
			value, has := o.labels[e.Key]
			return !meets(string(e.Operator), e.Values, value, has)
		})
	})
}

func tolerated(by corev1.Toleration, taint corev1.Taint) bool {
	if by.Effect != "" && by.Effect != taint.Effect {
		return false
	}
	if by.Operator == corev1.TolerationOpExists {
		return by.Key == "" || by.Key == taint.Key
	}
	return by.Key == taint.Key && by.Value == taint.Value
}

// meets returns true when in doubt: requirements that are not understood exclude no offer, so that the bound remains
// valid.
func meets(operator string, values []string, value string, has bool) bool {
	switch operator {
	case "In":
		return has && slices.Contains(values, value)
	case "NotIn":
		return !has || !slices.Contains(values, value)
	case "Exists":
		return has
	case "DoesNotExist":
		return !has
	case "Gt", "Lt", "Gte", "Lte":
		if !has {
			return false
		}
		n, err := strconv.Atoi(value)
		bound, boundErr := strconv.Atoi(values[0])
		return err == nil && boundErr == nil &&
			(operator == "Gt" && n > bound || operator == "Lt" && n < bound || operator == "Gte" && n >= bound || operator == "Lte" && n <= bound)
	}
	return true
}
