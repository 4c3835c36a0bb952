package builtin

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// positive is the message of the API server about numbers that must not be 0.
const positive = "must be greater than zero"

// spread checks topology spread constraints.
func spread(constraints []corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	policies := []corev1.NodeInclusionPolicy{corev1.NodeInclusionPolicyHonor, corev1.NodeInclusionPolicyIgnore}
	for i := range constraints {
		c, at := &constraints[i], path.Index(i)
		if c.MaxSkew <= 0 {
			wrong = append(wrong, field.Invalid(at.Child("maxSkew"), c.MaxSkew, positive))
		}
		if c.TopologyKey == "" {
			wrong = append(wrong, field.Required(at.Child("topologyKey"), "can not be empty"))
		}
		wrong = append(wrong, oneOf(c.WhenUnsatisfiable, []corev1.UnsatisfiableConstraintAction{corev1.DoNotSchedule, corev1.ScheduleAnyway},
			at.Child("whenUnsatisfiable"))...)
		for _, other := range constraints[i+1:] {
			if other.TopologyKey == c.TopologyKey && other.WhenUnsatisfiable == c.WhenUnsatisfiable {
				wrong = append(wrong, field.Duplicate(at.Child("{topologyKey, whenUnsatisfiable}"), fmt.Sprintf("{%s, %s}", c.TopologyKey,
					c.WhenUnsatisfiable)))
				break
			}
		}
		wrong = append(wrong, minDomains(c, at.Child("minDomains"))...)
		if c.NodeAffinityPolicy != nil {
			wrong = append(wrong, oneOf(*c.NodeAffinityPolicy, policies, at.Child("nodeAffinityPolicy"))...)
		}
		if c.NodeTaintsPolicy != nil {
			wrong = append(wrong, oneOf(*c.NodeTaintsPolicy, policies, at.Child("nodeTaintsPolicy"))...)
		}
		wrong = append(wrong, labelSelector(c.LabelSelector, at.Child("labelSelector"))...)
	}
	return wrong
}

func minDomains(c *corev1.TopologySpreadConstraint, path *field.Path) field.ErrorList {
	if c.MinDomains == nil {
		return nil
	}
	var wrong field.ErrorList
	if *c.MinDomains <= 0 {
		wrong = append(wrong, field.Invalid(path, *c.MinDomains, positive))
	}
	if c.WhenUnsatisfiable != corev1.DoNotSchedule {
		wrong = append(wrong, field.Invalid(path, *c.MinDomains, fmt.Sprintf("can only use minDomains if whenUnsatisfiable=%s, not %s",
			corev1.DoNotSchedule, c.WhenUnsatisfiable)))
	}
	return wrong
}

func tolerations(list []corev1.Toleration, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	for i := range list {
		t, at := &list[i], path.Index(i)
		if t.Key != "" {
			wrong = append(wrong, metav1validation.ValidateLabelName(t.Key, at.Child("key"))...)
		} else if t.Operator != corev1.TolerationOpExists {
			wrong = append(wrong, field.Invalid(at.Child("operator"), t.Operator,
				"operator must be Exists when `key` is empty, which means \"match all values and all keys\""))
		}
		if t.TolerationSeconds != nil && t.Effect != corev1.TaintEffectNoExecute {
			wrong = append(wrong, field.Invalid(at.Child("effect"), t.Effect, "effect must be 'NoExecute' when `tolerationSeconds` is set"))
		}
		switch messages := utilvalidation.IsValidLabelValue(t.Value); {
		case (t.Operator == corev1.TolerationOpEqual || t.Operator == "") && len(messages) > 0:
			wrong = append(wrong, field.Invalid(at.Child("operator"), t.Value, strings.Join(messages, ";")))
		case t.Operator == corev1.TolerationOpExists && t.Value != "":
			wrong = append(wrong, field.Invalid(at.Child("operator"), t.Value, "value must be empty when `operator` is 'Exists'"))
		}
		if t.Effect != "" {
			wrong = append(wrong, oneOf(t.Effect, []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule,
				corev1.TaintEffectNoExecute}, at.Child("effect"))...)
		}
	}
	return wrong
}

func affinity(a *corev1.Affinity, path *field.Path) field.ErrorList {
	if a == nil {
		return nil
	}
	var wrong field.ErrorList
	if a.NodeAffinity != nil {
		wrong = append(wrong, nodeAffinity(a.NodeAffinity, path.Child("nodeAffinity"))...)
	}
	if p := a.PodAffinity; p != nil {
		wrong = append(wrong, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution,
			path.Child("podAffinity"))...)
	}
	if p := a.PodAntiAffinity; p != nil {
		wrong = append(wrong, podTerms(p.RequiredDuringSchedulingIgnoredDuringExecution, p.PreferredDuringSchedulingIgnoredDuringExecution,
			path.Child("podAntiAffinity"))...)
	}
	return wrong
}

const (
	required  = "requiredDuringSchedulingIgnoredDuringExecution"
	preferred = "preferredDuringSchedulingIgnoredDuringExecution"
)

func nodeAffinity(a *corev1.NodeAffinity, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	if selector := a.RequiredDuringSchedulingIgnoredDuringExecution; selector != nil {
		wrong = nodeTerms(selector, path.Child(required, "nodeSelectorTerms"))
	}
	for i := range a.PreferredDuringSchedulingIgnoredDuringExecution {
		term, at := &a.PreferredDuringSchedulingIgnoredDuringExecution[i], path.Child(preferred).Index(i)
		wrong = append(append(wrong, weight(term.Weight, at)...), nodeTerm(&term.Preference, at.Child("preference"))...)
	}
	return wrong
}

func nodeTerms(selector *corev1.NodeSelector, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	if len(selector.NodeSelectorTerms) == 0 {
		wrong = append(wrong, field.Required(path, "must have at least one node selector term"))
	}
	for i := range selector.NodeSelectorTerms {
		wrong = append(wrong, nodeTerm(&selector.NodeSelectorTerms[i], path.Index(i))...)
	}
	return wrong
}

func weight(w int32, path *field.Path) field.ErrorList {
	if w >= 1 && w <= 100 {
		return nil
	}
	return field.ErrorList{field.Invalid(path.Child("weight"), w, "must be in the range 1-100")}
}

func nodeTerm(term *corev1.NodeSelectorTerm, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	for i := range term.MatchExpressions {
		e, at := &term.MatchExpressions[i], path.Child("matchExpressions").Index(i)
		values := at.Child("values")
		switch e.Operator {
		case corev1.NodeSelectorOpIn, corev1.NodeSelectorOpNotIn:
			if len(e.Values) == 0 {
				wrong = append(wrong, field.Required(values, "must be specified when `operator` is 'In' or 'NotIn'"))
			}
		case corev1.NodeSelectorOpExists, corev1.NodeSelectorOpDoesNotExist:
			if len(e.Values) > 0 {
				wrong = append(wrong, field.Forbidden(values, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"))
			}
		case corev1.NodeSelectorOpGt, corev1.NodeSelectorOpLt:
			if len(e.Values) != 1 {
				wrong = append(wrong, field.Required(values, "must be specified single value when `operator` is 'Lt' or 'Gt'"))
			}
		default:
			wrong = append(wrong, field.Invalid(at.Child("operator"), e.Operator, "not a valid selector operator"))
		}
		wrong = append(wrong, metav1validation.ValidateLabelName(e.Key, at.Child("key"))...)
	}
	return wrong
}

func podTerms(terms []corev1.PodAffinityTerm, weighted []corev1.WeightedPodAffinityTerm, path *field.Path) field.ErrorList {
	var wrong field.ErrorList
	for i := range terms {
		wrong = append(wrong, podTerm(&terms[i], path.Child(required).Index(i))...)
	}
	for i := range weighted {
		at := path.Child(preferred).Index(i)
		wrong = append(append(wrong, weight(weighted[i].Weight, at)...), podTerm(&weighted[i].PodAffinityTerm, at.Child("podAffinityTerm"))...)
	}
	return wrong
}

func podTerm(term *corev1.PodAffinityTerm, path *field.Path) field.ErrorList {
	wrong := append(labelSelector(term.LabelSelector, path.Child("labelSelector")), labelSelector(term.NamespaceSelector,
		path.Child("namespaceSelector"))...)
	for _, name := range term.Namespaces {
		wrong = append(wrong, names(name, validation.ValidateNamespaceName, path.Child("namespace"))...)
	}
	if term.TopologyKey == "" {
		wrong = append(wrong, field.Required(path.Child("topologyKey"), "can not be empty"))
	}
	return append(wrong, metav1validation.ValidateLabelName(term.TopologyKey, path.Child("topologyKey"))...)
}
