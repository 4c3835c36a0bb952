package convert

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// Quota converts a CapacityQuota. The error names the field that makes it invalid.
func Quota(q *autoscalingv1beta1.CapacityQuota, v *Vocabulary) (model.QuotaSpec, error) {
	spec := model.QuotaSpec{Name: q.Name}
	if s := q.Spec.Selector; s != nil {
		if _, err := metav1.LabelSelectorAsSelector(s); err != nil {
			return spec, fmt.Errorf("spec.selector: %w", err)
		}
		for _, r := range selector(s, nil).Requirements {
			canonical, ok := v.requirement(r.Key, r.Operator.String(), r.Values)
			if !ok {
				return spec, fmt.Errorf("spec.selector: %s: the label or the operator is invalid", r.Key)
			}
			spec.Selector = append(spec.Selector, canonical)
		}
	}
	list := corev1.ResourceList(q.Spec.Limits.Resources)
	for name := range list {
		if problems := validation.IsQualifiedName(string(name)); len(problems) > 0 {
			return spec, fmt.Errorf("spec.limits.resources: %q: %s", name, problems[0])
		}
	}
	if name, is := beyond(list); is {
		return spec, fmt.Errorf("spec.limits.resources: %s: the amount is negative, too large or too small", name)
	}
	spec.Limits = limits(list)
	return spec, nil
}

// QuotaAmount returns an amount of the engine as a quantity.
func QuotaAmount(name string, value int64) resource.Quantity {
	switch name {
	case "cpu":
		return *resource.NewMilliQuantity(value, resource.DecimalSI)
	case "memory", "ephemeral-storage":
		return *resource.NewQuantity(value, resource.BinarySI)
	case model.ResourceUSD:
		return *resource.NewScaledQuantity(value, resource.Nano)
	}
	return *resource.NewQuantity(value, resource.DecimalSI)
}
