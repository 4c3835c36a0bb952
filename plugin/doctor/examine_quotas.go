package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// quotas returns findings about CapacityQuotas that limit nothing by mistake, and about those of which nodes use more than
// is allowed: with one of these, no node is launched.
func quotas(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Quotas {
		q := &f.Quotas[i]
		object, edit := "capacityquota/"+q.Name, "kubectl edit capacityquota "+q.Name
		selector, err := metav1.LabelSelectorAsSelector(q.Spec.Selector)
		valid := meta.FindStatusCondition(q.Status.Conditions, autoscalingv1beta1.ConditionValid)
		switch {
		case q.DeletionTimestamp != nil:
		case err != nil:
			list = append(list, found(QuotaWithoutEffect, object, "it is invalid: spec.selector: "+err.Error(), "correct it: "+edit))
		case valid != nil && valid.Status == metav1.ConditionFalse:
			list = append(list, found(QuotaWithoutEffect, object, "it is invalid, and the controller keeps its last valid version, if it has seen one: "+valid.Message, "correct it: "+edit))
		case q.Spec.Selector != nil && !f.mayCount(selector):
			list = append(list, found(QuotaWithoutEffect, object,
				fmt.Sprintf("its selector %s matches no node, and as far as is known no new node of any NodePool", selector),
				"correct the selector, or set the labels in the template of a NodePool: "+edit))
		default:
			if over := exceeded(q); over != "" {
				list = append(list, found(QuotaExceeded, object, "its nodes use "+over+"; no further node is launched in it, and none is removed",
					"kubectl karpenter explain quota "+q.Name+" lists the nodes and the pods that wait; to raise it: "+edit))
			}
		}
	}
	return list
}

// exceeded returns the limits of which nodes use more, by the status; "" for none.
func exceeded(q *autoscalingv1beta1.CapacityQuota) string {
	if q.Status.Used == nil {
		return ""
	}
	var over []string
	for _, name := range slices.Sorted(maps.Keys(q.Spec.Limits.Resources)) {
		limit, used := q.Spec.Limits.Resources[name], q.Status.Used.Resources[name]
		if used.Cmp(limit) > 0 {
			over = append(over, fmt.Sprintf("%s of the limit of %s %s", used.String(), limit.String(), name))
		}
	}
	return strings.Join(over, ", ")
}

// mayCount reports whether the selector matches a node, or a node that some pool may launch.
func (f *Facts) mayCount(selector labels.Selector) bool {
	known := labels.Set{}
	for i := range f.Nodes {
		if selector.Matches(labels.Set(f.Nodes[i].Labels)) {
			return true
		}
		maps.Copy(known, f.Nodes[i].Labels)
	}
	requirements, _ := selector.Requirements()
	return slices.ContainsFunc(f.Pools, func(p karpv1.NodePool) bool {
		return !slices.ContainsFunc(requirements, func(r labels.Requirement) bool { return !mayHave(&p, &r, known) })
	})
}

// mayHave reports whether nodes of the pool may have a label as required. Types may have labels of Kubernetes, of this API
// and of clouds, and those that some node has.
func mayHave(pool *karpv1.NodePool, r *labels.Requirement, known labels.Set) bool {
	set := maps.Clone(pool.Spec.Template.ObjectMeta.Labels)
	if set == nil {
		set = map[string]string{}
	}
	set[karpv1.LabelNodePool] = pool.Name
	if _, fixed := set[r.Key()]; fixed {
		return r.Matches(labels.Set(set))
	}
	open := false
	for _, of := range pool.Spec.Template.Spec.Requirements {
		if of.Key != r.Key() {
			continue
		}
		if open = true; of.Operator == karpv1.OperatorIn &&
			!slices.ContainsFunc(of.Values, func(v string) bool { return r.Matches(labels.Set{of.Key: v}) }) {
			return false
		}
	}
	domain, _, _ := strings.Cut(r.Key(), "/")
	providers := slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws"}, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
	return open || providers || known.Has(r.Key()) || r.Matches(labels.Set{})
}
