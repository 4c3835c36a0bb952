package e2e

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// TestBuffer checks that a node is launched for the room of a CapacityBuffer, that a pod is bound to that room at once and
// the room is made again, and that the nodes are removed as empty when the buffer is deleted.
func TestBuffer(t *testing.T) {
	s := onShared(t, "buffer")
	buffer := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "buffer", Name: "spare"}}
	fits := func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(buffer), buffer); err != nil {
			return err
		}
		c := meta.FindStatusCondition(buffer.Status.Conditions, v1beta1.ConditionProvisioning)
		if c == nil || c.Status != metav1.ConditionTrue || buffer.Status.ReadyReplicas == nil || *buffer.Status.ReadyReplicas != 1 {
			return fmt.Errorf("the status is %+v", buffer.Status)
		}
		return nil
	}
	await(t, patience, "a node with the room", s.nodesReady(1))
	await(t, patience, "the buffer to say so", fits)
	room := s.ledger.nodesOf("buffer")[0].Name

	s.scale("app", 1)
	await(t, patience, "the pod to run", s.running("app", 1))
	if node := s.pods("app")[0].Spec.NodeName; node != room {
		t.Errorf("the pod runs on %s, and the room was on %s", node, room)
	}
	await(t, patience, "another node with the room", s.nodesReady(2))
	await(t, patience, "the buffer to say so again", fits)
	if c := s.ledger.count("buffer"); c.claimsEver != 2 {
		t.Errorf("%d claims were created, want two: none for the pod", c.claimsEver)
	}

	s.remove(buffer)
	await(t, patience, "the node without pods to be removed", s.nodesReady(1))
	s.scale("app", 0)
	await(t, patience, "no node to be left", s.empty)
	if c := s.ledger.count("buffer"); c.claimsEver != 2 {
		t.Errorf("%d claims were created ever, want two", c.claimsEver)
	}
}
