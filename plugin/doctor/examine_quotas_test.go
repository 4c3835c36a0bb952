package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestQuotas verifies that a quota is a finding if it is invalid, if its selector matches no node and no pool, or if
// nodes use more than it allows.
func TestQuotas(t *testing.T) {
	pool := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	pool.Spec.Template.ObjectMeta.Labels = map[string]string{"team": "shop"}
	pool.Spec.Template.Spec.Requirements = []karpv1.Requirement{
		{Key: "gpu", Operator: karpv1.OperatorIn, Values: []string{"a", "b"}}}
	node := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"rack": "1"}}}
	exists := func(key string, operator metav1.LabelSelectorOperator) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: operator}}}
	}
	has := func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	for name, c := range map[string]struct {
		selector    *metav1.LabelSelector
		used, limit string
		valid       metav1.ConditionStatus
		want        []string
	}{
		"of all nodes":                  {nil, "1", "2", metav1.ConditionTrue, nil},
		"used up":                       {nil, "2", "2", metav1.ConditionTrue, nil},
		"exceeded":                      {nil, "3", "2", metav1.ConditionTrue, []string{"QuotaExceeded capacityquota/q"}},
		"without a status":              {nil, "", "2", "", nil},
		"of a node":                     {has("rack", "1"), "", "2", "", nil},
		"of another rack":               {has("rack", "2"), "", "2", "", nil},
		"of a pool":                     {has("karpenter.sh/nodepool", "p"), "", "2", "", nil},
		"of a pool that does not exist": {has("karpenter.sh/nodepool", "q"), "", "2", "", []string{"QuotaWithoutEffect capacityquota/q"}},
		"of a label of the template":    {has("team", "shop"), "", "2", "", nil},
		"of another value":              {has("team", "web"), "", "2", "", []string{"QuotaWithoutEffect capacityquota/q"}},
		"of a requirement":              {has("gpu", "b"), "", "2", "", nil},
		"of a value that is excluded":   {has("gpu", "c"), "", "2", "", []string{"QuotaWithoutEffect capacityquota/q"}},
		"of a zone":                     {has("topology.kubernetes.io/zone", "z"), "", "2", "", nil},
		"of a label that none has": {exists("taem", metav1.LabelSelectorOpExists), "", "2", "",
			[]string{"QuotaWithoutEffect capacityquota/q"}},
		"of nodes without a label": {exists("rack", metav1.LabelSelectorOpDoesNotExist), "", "2", "", nil},
		"with an invalid selector": {exists("rack", "Perhaps"), "", "2", "", []string{"QuotaWithoutEffect capacityquota/q"}},
		"invalid":                  {nil, "", "2", metav1.ConditionFalse, []string{"QuotaWithoutEffect capacityquota/q"}},
	} {
		list := func(amount string) autoscalingv1beta1.CapacityQuotaLimits {
			return autoscalingv1beta1.CapacityQuotaLimits{Resources: map[corev1.ResourceName]resource.Quantity{"nodes": resource.MustParse(amount)}}
		}
		q := autoscalingv1beta1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "q"},
			Spec: autoscalingv1beta1.CapacityQuotaSpec{Selector: c.selector, Limits: list(c.limit)}}
		if c.used != "" {
			used := list(c.used)
			q.Status.Used = &used
		}
		if c.valid != "" {
			q.Status.Conditions = []metav1.Condition{{Type: autoscalingv1beta1.ConditionValid, Status: c.valid}}
		}
		f := &Facts{Now: now, NoElection: true, Pools: []karpv1.NodePool{pool}, Nodes: []corev1.Node{node},
			Quotas: []autoscalingv1beta1.CapacityQuota{q}}
		got := slices.DeleteFunc(codes(f), func(code string) bool { return !strings.HasPrefix(code, "Quota") })
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
}
