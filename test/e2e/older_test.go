package e2e

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// TestProvisioners checks that Provisioners of two versions, applied unchanged, launch nodes as their versions
// specify, that empty nodes are removed, and that the nodes of a deleted Provisioner are removed with it.
func TestProvisioners(t *testing.T) {
	s := onShared(t, "older")
	for _, app := range []string{"five", "three"} {
		s.scale(app, 2)
	}
	for _, step := range []struct {
		app, pool string
		labels    map[string]string
	}{
		{"five", "older", map[string]string{karpv1.LabelCapacityType: "spot", corev1.LabelArchStable: "amd64", corev1.LabelOSStable: "linux"}},
		{"three", "older-three", map[string]string{karpv1.LabelCapacityType: "on-demand", corev1.LabelArchStable: "arm64", corev1.LabelTopologyZone: "test-zone-b"}},
	} {
		await(t, patience, step.app+" to run", s.running(step.app, 2))
		for _, pod := range s.pods(step.app) {
			node := s.node(pod)
			if got := node.Labels[karpv1.LabelNodePool]; got != step.pool {
				t.Errorf("pod %s is in pool %s, want %s", pod.Name, got, step.pool)
			}
			for key, want := range step.labels {
				if got := node.Labels[key]; got != want {
					t.Errorf("node %s has %s=%s, want %s", node.Name, key, got, want)
				}
			}
		}
		await(t, patience, step.pool+" to tell what it has become", s.becamePool(step.pool))
	}
	s.scale("five", 0)
	s.scale("three", 0)
	await(t, patience, "empty nodes to leave", s.empty)

	s.scale("five", 1)
	await(t, patience, "a pod to run", s.running("five", 1))
	s.remove(&karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "older"}})
	await(t, patience, "what the deleted Provisioner has bought to leave", s.empty)
	await(t, patience, "its pool to be gone", func(ctx context.Context) error {
		err := s.Get(ctx, client.ObjectKey{Name: "older"}, &karpv1.NodePool{})
		if err == nil {
			return fmt.Errorf("NodePool older is there")
		}
		return client.IgnoreNotFound(err)
	})
}

// becamePool fails until a Provisioner is ready and names its pool.
func (s *stage) becamePool(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		p := &karpv1alpha5.Provisioner{}
		if err := s.Get(ctx, client.ObjectKey{Name: name}, p); err != nil {
			return err
		}
		if !p.StatusConditions().Root().IsTrue() || p.Status.NodePool != name || p.Status.NodeClass != "KWOKNodeClass/"+name {
			return fmt.Errorf("status is %+v", p.Status)
		}
		return nil
	}
}
