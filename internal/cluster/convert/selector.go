package convert

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// alternatives are the node selector merged with each required node affinity term, nil when the pod asks for nothing.
// A term without expressions selects no node (Kubernetes API, NodeSelectorTerm) and is left out. matchFields are not
// looked at: refuseFields is about them.
func alternatives(spec *corev1.PodSpec, v *Vocabulary) [][]label.Requirement {
	terms, required := requiredTerms(spec)
	if !required && len(spec.NodeSelector) == 0 {
		return nil
	}
	selector := v.labels(spec.NodeSelector)
	if !required {
		return [][]label.Requirement{selector}
	}
	var all [][]label.Requirement
	for i := range terms {
		if len(terms[i].MatchExpressions) == 0 && len(terms[i].MatchFields) == 0 {
			continue
		}
		reqs := slices.Clone(selector)
		for _, e := range terms[i].MatchExpressions {
			reqs = append(reqs, v.expression(e))
		}
		all = append(all, reqs)
	}
	if len(all) == 0 {
		all = [][]label.Requirement{{nowhere(model.LabelHostname)}}
	}
	return all
}

// nowhere is a requirement that no node satisfies.
func nowhere(key string) label.Requirement { return label.Requirement{Key: key, Operator: label.In} }

func (v *Vocabulary) expression(e corev1.NodeSelectorRequirement) label.Requirement {
	req, ok := v.requirement(e.Key, string(e.Operator), e.Values)
	if !ok {
		return nowhere(req.Key)
	}
	return req
}

// requiredTerms returns the required node affinity terms, and whether there is such an affinity at all.
func requiredTerms(spec *corev1.PodSpec) ([]corev1.NodeSelectorTerm, bool) {
	if spec.Affinity == nil || spec.Affinity.NodeAffinity == nil {
		return nil, false
	}
	selector := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	if selector == nil {
		return nil, false
	}
	return selector.NodeSelectorTerms, true
}

// optOut is true when every alternative requires that the node is in no pool.
func optOut(alternatives [][]label.Requirement) bool {
	refuses := func(r label.Requirement) bool {
		return r.Key == karpv1.LabelNodePool && r.Operator == label.DoesNotExist
	}
	for _, reqs := range alternatives {
		if !slices.ContainsFunc(reqs, refuses) {
			return false
		}
	}
	return len(alternatives) > 0
}

// refuseSelector applies the rules of core specification 1.7 to the node selector and the required node affinity.
func refuseSelector(pod *corev1.Pod, v *Vocabulary) *model.Rejection {
	at := field.NewPath("spec", "nodeSelector")
	for _, key := range sortedKeys(pod.Spec.NodeSelector) {
		one := []karpv1.Requirement{{Key: key, Operator: karpv1.OperatorIn, Values: []string{pod.Spec.NodeSelector[key]}}}
		if errs := karpv1.ValidateRequirements(at.Key(key), one, v.Rules); len(errs) > 0 {
			return &model.Rejection{Field: at.Key(key).String(), Reason: errs[0].ErrorBody()}
		}
	}
	terms, _ := requiredTerms(&pod.Spec)
	for i := range terms {
		if errs := karpv1.ValidateRequirements(termPath(i).Child("matchExpressions"), expressions(terms[i]), v.Rules); len(errs) > 0 {
			return &model.Rejection{Field: errs[0].Field, Reason: errs[0].ErrorBody()}
		}
	}
	return refuseEmptyTerms(terms)
}

func expressions(term corev1.NodeSelectorTerm) []karpv1.Requirement {
	reqs := make([]karpv1.Requirement, 0, len(term.MatchExpressions))
	for _, e := range term.MatchExpressions {
		reqs = append(reqs, karpv1.RequirementOf(e))
	}
	return reqs
}

func refuseEmptyTerms(terms []corev1.NodeSelectorTerm) *model.Rejection {
	for i := range terms {
		if len(terms[i].MatchExpressions) > 0 {
			return nil
		}
	}
	if len(terms) == 0 {
		return nil
	}
	return &model.Rejection{
		Field:  termPath(0).String(),
		Reason: "a term without expressions selects no node; give it matchExpressions or remove it",
	}
}

// refuseFields refuses matchFields, which select nodes by name.
func refuseFields(pod *corev1.Pod) *model.Rejection {
	terms, _ := requiredTerms(&pod.Spec)
	for i := range terms {
		if len(terms[i].MatchFields) > 0 {
			return &model.Rejection{
				Field:  termPath(i).Child("matchFields").String(),
				Reason: "selects nodes that exist by name, and no new node can have that name; use matchExpressions on labels",
			}
		}
	}
	return nil
}

func termPath(i int) *field.Path {
	return field.NewPath("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i)
}

// at names an element of a list.
func at(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
