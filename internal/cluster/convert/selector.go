package convert

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/engine/label"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// alternatives returns the node selector merged with each required node affinity term, nil if the pod has neither. It
// omits terms without expressions and fields, which select no node (Kubernetes API, NodeSelectorTerm).
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
		all = append(all, append(slices.Clone(selector), v.term(&terms[i])...))
	}
	if len(all) > manyTerms {
		if all = label.Union(all); len(all) == 1 && len(all[0]) == 0 {
			return nil // any node matches
		}
	}
	if len(all) == 0 {
		all = [][]label.Requirement{{matchesNothing(model.LabelHostname)}}
	}
	return all
}

// manyTerms is the number of node affinity terms up to which they are kept unchanged. If there are more, those that
// differ in one requirement are merged.
const manyTerms = 16

// term returns all requirements of a node selector term.
func (v *Vocabulary) term(t *corev1.NodeSelectorTerm) []label.Requirement {
	reqs := make([]label.Requirement, 0, len(t.MatchExpressions)+len(t.MatchFields))
	for _, e := range t.MatchExpressions {
		reqs = append(reqs, v.expression(e))
	}
	for _, f := range t.MatchFields {
		reqs = append(reqs, fieldRequirement(f))
	}
	return reqs
}

// fieldRequirement returns a requirement on a field of the node. The only such field is its name.
func fieldRequirement(f corev1.NodeSelectorRequirement) label.Requirement {
	operator, ok := label.ParseOperator(string(f.Operator))
	if f.Key != metav1.ObjectNameField || !ok || operator != label.In && operator != label.NotIn {
		return matchesNothing(model.FieldName)
	}
	return label.Requirement{Key: model.FieldName, Operator: operator, Values: slices.Clone(f.Values)}
}

// matchesNothing returns a requirement that no node satisfies.
func matchesNothing(key string) label.Requirement {
	return label.Requirement{Key: key, Operator: label.In}
}

func (v *Vocabulary) expression(e corev1.NodeSelectorRequirement) label.Requirement {
	req, ok := v.requirement(e.Key, string(e.Operator), e.Values)
	if !ok {
		return matchesNothing(req.Key)
	}
	return req
}

// requiredTerms returns the required node affinity terms, and whether there is such an affinity.
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

// optOut reports whether every alternative requires that the node is in no pool.
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

// refuseSelector returns the reason for which no new node can satisfy the node selector, or any term of the required
// node affinity, whatever the pools are; nil if there is none. A term that no new node satisfies does not matter beside
// another one.
func refuseSelector(pod *corev1.Pod, v *Vocabulary) *model.Rejection {
	for _, key := range sortedKeys(pod.Spec.NodeSelector) {
		path := field.NewPath("spec", "nodeSelector").Key(key)
		e := corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{pod.Spec.NodeSelector[key]}}
		if errs := v.refused(path, e); len(errs) > 0 {
			return &model.Rejection{Field: path.String(), Reason: errs[0].ErrorBody()}
		}
	}
	terms, _ := requiredTerms(&pod.Spec)
	var first *model.Rejection
	empty := 0
	for i := range terms {
		if len(terms[i].MatchExpressions)+len(terms[i].MatchFields) == 0 {
			empty++
			continue
		}
		refused := v.refuseTerm(termPath(i), &terms[i])
		if refused == nil {
			return nil
		}
		if first == nil {
			first = refused
		}
	}
	if first == nil && empty > 0 {
		return &model.Rejection{
			Field:  termPath(0).String(),
			Reason: "a term without expressions selects no node; give it matchExpressions or remove it",
		}
	}
	return first
}

// refuseTerm returns the reason for which no new node can satisfy the term. A term with the name of a node cannot help:
// kube-scheduler has found no room there, and a new node cannot have such a name.
func (v *Vocabulary) refuseTerm(path *field.Path, term *corev1.NodeSelectorTerm) *model.Rejection {
	for i, e := range term.MatchExpressions {
		if errs := v.refused(path.Child("matchExpressions").Index(i), e); len(errs) > 0 {
			return &model.Rejection{Field: errs[0].Field, Reason: errs[0].ErrorBody()}
		}
	}
	for _, f := range term.MatchFields {
		if fieldRequirement(f).Operator == label.In {
			return &model.Rejection{
				Field:  path.Child("matchFields").String(),
				Reason: "selects nodes that exist by name, and no new node can have that name; use matchExpressions on labels",
			}
		}
	}
	return nil
}

// refused returns why no new node can satisfy the requirement: it is invalid, or requires a label that pools must not
// set. New nodes do not have such labels, so that requirements for their absence, or against a value, are satisfied.
func (v *Vocabulary) refused(path *field.Path, e corev1.NodeSelectorRequirement) field.ErrorList {
	key := v.Rules.Key(e.Key)
	if v.plain(key, e.Operator, e.Values...) || model.OnEveryNode(key) && key != model.LabelHostname {
		return nil
	}
	if v.Rules.Restriction(key) != "" {
		switch e.Operator {
		case corev1.NodeSelectorOpNotIn, corev1.NodeSelectorOpDoesNotExist:
			return nil
		case corev1.NodeSelectorOpExists:
			if key == model.LabelHostname {
				return nil
			}
		}
	}
	errs := karpv1.ValidateRequirements(path, []karpv1.Requirement{karpv1.RequirementOf(e)}, v.Rules)
	for _, err := range errs {
		err.Field = strings.Replace(err.Field, path.String()+"[0]", path.String(), 1)
	}
	return errs
}

func termPath(i int) *field.Path {
	return field.NewPath("spec", "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution", "nodeSelectorTerms").Index(i)
}

// at returns the path of an element of a list.
func at(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
