package state

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// TestQuotaThatBecomesInvalid verifies that a mistake in a quota does not lift its limit: the last valid version stays in
// effect until the quota is corrected or deleted. One that was never valid has no effect.
func TestQuotaThatBecomesInvalid(t *testing.T) {
	s := newState(Config{})
	version := 0
	quota := func(nodes string, operator metav1.LabelSelectorOperator) *autoscalingv1beta1.CapacityQuota {
		version++
		q := &autoscalingv1beta1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "q", UID: "q", ResourceVersion: strconv.Itoa(version)}}
		q.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "team", Operator: operator}}}
		q.Spec.Limits.Resources = map[corev1.ResourceName]resource.Quantity{"nodes": resource.MustParse(nodes)}
		return q
	}
	limit := func() int64 {
		snap := s.Snapshot(time.Unix(0, 0))
		if len(snap.Quotas) == 0 {
			return -1
		}
		return snap.Ledger.Nodes(snap.Ledger.AccountOf(snap.Quotas[0])).Limit
	}
	for _, step := range []struct {
		name string
		see  *autoscalingv1beta1.CapacityQuota
		want int64
	}{
		{"never valid", quota("9", "Near"), -1},
		{"valid", quota("5", metav1.LabelSelectorOpExists), 5},
		{"edited into an invalid one", quota("7", "Near"), 5},
		{"corrected", quota("7", metav1.LabelSelectorOpExists), 7},
	} {
		s.Saw(step.see)
		if got := limit(); got != step.want {
			t.Errorf("%s: the limit is %d, want %d (-1: none)", step.name, got, step.want)
		}
	}
	lost(s, quota("7", metav1.LabelSelectorOpExists))
	if got := limit(); got != -1 {
		t.Errorf("of a deleted quota: the limit is %d", got)
	}
}
