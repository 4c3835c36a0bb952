package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// TestQuota checks that a CapacityQuota stops launches, that the pod without a node has an event that names it, and that
// launches continue when it is raised.
func TestQuota(t *testing.T) {
	s := onShared(t, "quota")
	quota := &v1beta1.CapacityQuota{ObjectMeta: metav1.ObjectMeta{Name: "e2e-quota"}}
	quota.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{caseLabel: "quota"}}
	quota.Spec.Limits.Resources = map[corev1.ResourceName]resource.Quantity{"nodes": resource.MustParse("1")}
	s.create(quota)
	t.Cleanup(func() { _ = s.Delete(context.Background(), quota) })
	await(t, patience, "the quota to be read", func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(quota), quota); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(quota.Status.Conditions, v1beta1.ConditionReconciled) {
			return fmt.Errorf("the status is %+v", quota.Status)
		}
		return nil
	})
	s.scale("app", 2)
	await(t, patience, "one pod to run, and the other one to be refused", func(ctx context.Context) error {
		pods := s.pods("app")
		if len(pods) != 2 {
			return fmt.Errorf("there are %d pods", len(pods))
		}
		waiting := pods[0]
		if waiting.Spec.NodeName != "" {
			waiting = pods[1]
		}
		return s.says(waiting, "FailedScheduling", "CapacityQuota e2e-quota has 0 of nodes left")(ctx)
	})
	await(t, patience, "one node", s.nodesReady(1))
	if c := s.ledger.count("quota"); c.claimsEver != 1 {
		t.Errorf("%d claims were created beside a quota of one node", c.claimsEver)
	}
	s.patch(quota, `{"spec":{"limits":{"resources":{"nodes":2}}}}`)
	await(t, patience, "both pods to run", s.running("app", 2))
	if c := s.ledger.count("quota"); c.claimsEver != 2 {
		t.Errorf("%d claims were created ever, want two", c.claimsEver)
	}
	s.scale("app", 0)
	await(t, patience, "no node to be left", s.empty)
}
