package e2e

import (
	"context"
	"errors"
	"testing"
)

// TestOldNames checks that pods whose selectors have names of versions before v1 get nodes and run on them, that an
// event on their owner names the current names once, and that pods that exclude Karpenter's nodes by the old name are
// not bound to them.
func TestOldNames(t *testing.T) {
	s := onShared(t, "oldnames")
	s.scale("app", 4)
	await(t, patience, "the pods to run", s.running("app", 4))
	pods := s.pods("app")
	for _, pod := range pods {
		labels := s.node(pod).Labels
		for old, today := range map[string]string{
			"karpenter.sh/provisioner-name": "karpenter.sh/nodepool", "node.k8s.aws/capacity-type": "karpenter.sh/capacity-type",
		} {
			if labels[old] == "" || labels[old] != labels[today] {
				t.Errorf("node %s has %s=%q and %s=%q", pod.Spec.NodeName, old, labels[old], today, labels[today])
			}
		}
	}
	await(t, patience, "one pod to be told today's names", func(ctx context.Context) error {
		missing := []error{}
		for _, pod := range pods {
			err := s.says(pod, "OldName", "karpenter.sh/provisioner-name, which is now karpenter.sh/nodepool", "node.k8s.aws/capacity-type")(ctx)
			if err == nil {
				return nil
			}
			missing = append(missing, err)
		}
		return errors.Join(missing...)
	})
	// All nodes have the label by now. Another node with room is launched for the other pods meanwhile.
	s.scale("away", 1)
	s.scale("app", 6)
	await(t, patience, "all pods to run", s.running("app", 6))
	if away := s.pods("away"); len(away) != 1 || away[0].Spec.NodeName != "" {
		t.Errorf("pods that exclude Karpenter's nodes: %d pods, the first on node %q", len(away), away[0].Spec.NodeName)
	}
	// do-not-evict does not keep empty nodes.
	s.scale("app", 0)
	await(t, patience, "the nodes to leave", s.empty)
}
