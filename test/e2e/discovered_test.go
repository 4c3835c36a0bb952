package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestLabelsThatNodesGetLater has a DaemonSet that selects a label which nodes get when they join. Its pods take room on
// nodes that were planned without them. Afterwards plans expect them: consolidation comes to an end, and buys nothing for
// what it removes.
func TestLabelsThatNodesGetLater(t *testing.T) {
	policy := mutatingPolicy(t)
	s := onShared(t, "discovered")
	t.Cleanup(s.removeClusterScoped(policy.GroupVersion().WithKind(policy.Kind+"Binding"), policy))
	await(t, patience, "admission to label nodes", func(ctx context.Context) error {
		probe := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "discovered-probe", Labels: map[string]string{karpv1.LabelNodePool: s.name}}}
		if err := s.Create(ctx, probe, client.DryRunAll); err != nil {
			return err
		}
		if probe.Labels["feature.example.org/present"] == "" {
			return fmt.Errorf("a node has the labels %v", probe.Labels)
		}
		return nil
	})
	s.scale("app", 14)
	await(t, patience, "all pods to run", s.running("app", 14))
	// The fleet is at rest when no claim was created or removed for half a minute.
	last, since := s.ledger.count("discovered"), time.Now()
	await(t, patience, "the fleet to rest", func(context.Context) error {
		if now := s.ledger.count("discovered"); now != last {
			last, since = now, time.Now()
		}
		if rests := time.Since(since); rests < 30*time.Second {
			return fmt.Errorf("%d claims were created, the last change was %s ago", last.claimsEver, rests)
		}
		return nil
	})
	if last.claimsEver > 8 {
		t.Errorf("%d claims were created, want three, one or two for the pods that found no room, and a few replacements", last.claimsEver)
	}
}
