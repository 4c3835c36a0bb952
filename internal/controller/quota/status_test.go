package quota_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/controller/quota"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/quantity"
)

// TestWritten: the status has the usage of the nodes that the selector selects; the condition of an invalid quota names
// the field, and it has no usage.
func TestWritten(t *testing.T) {
	v := convert.NewVocabulary(cloud.Declared{})
	for name, c := range map[string]struct {
		selector *metav1.LabelSelector
		limit    string
		used     int64
		problem  string
	}{
		"everything":     {nil, "2", 3, ""},
		"some":           {&metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}, "2", 2, ""},
		"but some":       {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"a"}}}}, "2", 1, ""},
		"a bad operator": {&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: "Near"}}}, "2", 0, "spec.selector: "},
		"negative":       {nil, "-1", 0, "spec.limits.resources: nodes: "},
	} {
		object := &autoscalingv1beta1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", Generation: 3}}
		object.Spec.Selector = c.selector
		object.Spec.Limits.Resources = map[corev1.ResourceName]resource.Quantity{"nodes": resource.MustParse(c.limit), "cpu": resource.MustParse("9")}
		b := model.NewBuilder()
		for node, team := range map[string]string{"a1": "a", "a2": "a", "b1": "b"} {
			b.UpsertNode(model.NodeSpec{Name: node, Stage: model.Initialized, Labels: map[string]string{"team": team}, Capacity: []quantity.Amount{{Name: "cpu", Value: 1500}}})
		}
		spec, invalid := convert.Quota(object, v)
		if invalid == nil {
			b.UpsertQuota(spec)
		}
		status := quota.Written(object, b.Snapshot(time.Unix(0, 0)), invalid).Status
		valid := meta.FindStatusCondition(status.Conditions, autoscalingv1beta1.ConditionValid)
		if c.problem != "" {
			b.UpsertQuota(model.QuotaSpec{Name: "q"})
			before := quota.Written(object, b.Snapshot(time.Unix(0, 0)), invalid).Status.Conditions
			for conditions, effect := range map[*[]metav1.Condition]string{&status.Conditions: "has no effect", &before: "stays in effect"} {
				if c := meta.FindStatusCondition(*conditions, autoscalingv1beta1.ConditionReconciled); !strings.Contains(c.Message, effect) {
					t.Errorf("%s: Reconciled says %q, want %q", name, c.Message, effect)
				}
			}
			if valid.Status != metav1.ConditionFalse || !strings.HasPrefix(valid.Message, c.problem) || status.Used != nil {
				t.Errorf("%s: got %+v, want a message that begins with %q", name, status, c.problem)
			}
			continue
		}
		nodes, cpu := status.Used.Resources["nodes"], status.Used.Resources["cpu"]
		if valid.Status != metav1.ConditionTrue || status.ObservedGeneration != 3 || nodes.Value() != c.used || cpu.MilliValue() != 1500*c.used {
			t.Errorf("%s: got %+v, want %d nodes", name, status, c.used)
		}
	}
}
