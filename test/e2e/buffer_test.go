package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// TestBuffer checks that a node is launched for the room of a CapacityBuffer, that a pod is bound to that room at once and
// the room is made again, and that the nodes are removed as empty when the buffer is deleted.
func TestBuffer(t *testing.T) {
	s := onShared(t, "buffer")
	buffer := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "buffer", Name: "spare"}}
	fits := s.provisioning(buffer, v1beta1.ReasonFitsExistingCapacity, 1)
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

// TestRoomOnTaintedNodes checks a buffer of two pods for which each node gets a taint when it joins: after the first round
// its launches wait, and the buffer says so. The nodes are removed as empty, and one is tried after each pause.
func TestRoomOnTaintedNodes(t *testing.T) {
	policy := mutatingPolicy(t)
	s := onShared(t, "tainted")
	t.Cleanup(s.removeClusterScoped(policy.GroupVersion().WithKind(policy.Kind+"Binding"), policy))
	await(t, patience, "admission to taint nodes", s.taintsNodes)
	buffer := s.room("spare", 2)
	buffer.Spec.PodTemplateRef.Name = "room"
	s.create(buffer)
	await(t, patience, "the buffer to say that launches wait", func(ctx context.Context) error {
		if err := s.provisioning(buffer, v1beta1.ReasonPaused, 0)(ctx); err != nil {
			return err
		}
		c := meta.FindStatusCondition(buffer.Status.Conditions, v1beta1.ConditionProvisioning)
		for _, part := range []string{"launches for CapacityBuffer tainted/spare are paused until",
			"has the taint example.org/surprise:NoSchedule"} {
			if !strings.Contains(c.Message, part) {
				return fmt.Errorf("the condition is %q", c.Message)
			}
		}
		return nil
	})
	await(t, patience, "an event of the buffer", s.says(buffer, "NotTriggerScaleUp", "are paused until", "example.org/surprise:NoSchedule"))
	await(t, patience, "the useless nodes to be removed", s.empty)
	await(t, patience, "one node to be tried after the pause, and to fail", func(ctx context.Context) error {
		if err := s.provisioning(buffer, v1beta1.ReasonPaused, 0)(ctx); err != nil {
			return err
		}
		// The second failure of the buffer is the third node of the pool with the taint: either pause may be named.
		c := meta.FindStatusCondition(buffer.Status.Conditions, v1beta1.ConditionProvisioning)
		if !strings.Contains(c.Message, "after 2 failures") && !strings.Contains(c.Message, "launches from NodePool tainted for pods "+
			"that do not tolerate the taint example.org/surprise:NoSchedule are paused") {
			return fmt.Errorf("the condition is %q", c.Message)
		}
		return nil
	})
	if c := s.ledger.count("tainted"); c.claimsEver > 3 {
		t.Errorf("%d claims were created, want one or two for the room, and one after the pause", c.claimsEver)
	}
}

// provisioning fails until the condition Provisioning of a buffer has the reason, and so many virtual pods have room.
func (s *stage) provisioning(buffer *v1beta1.CapacityBuffer, reason string, ready int32) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(buffer), buffer); err != nil {
			return err
		}
		c := meta.FindStatusCondition(buffer.Status.Conditions, v1beta1.ConditionProvisioning)
		if c == nil || c.Reason != reason || buffer.Status.ReadyReplicas == nil || *buffer.Status.ReadyReplicas != ready {
			return fmt.Errorf("the status is %+v, want %s and %d virtual pods with room", buffer.Status, reason, ready)
		}
		return nil
	}
}

// room returns a buffer for pods of the template job.
func (s *stage) room(name string, replicas int32) *v1beta1.CapacityBuffer {
	buffer := &v1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}}
	buffer.Spec.PodTemplateRef = &v1beta1.LocalObjectRef{Name: "job"}
	buffer.Spec.Replicas = &replicas
	return buffer
}

// TestAdmissionByBuffer does what Kueue plans to do (its KEP-5133): it makes room for a gated job by a buffer, deletes the
// buffer once it is provisioned, and admits the job at that moment. The pods run on the nodes of the room, none of which is
// removed though empty nodes are removed at once, and nothing more is launched. Kueue 0.17 creates no CapacityBuffer, so a
// client of this test does. Afterwards a buffer that is created and deleted quickly again and again leaves no node (CB-11).
func TestAdmissionByBuffer(t *testing.T) {
	s := onShared(t, "admission")
	buffer := s.room("job-room", 3)
	s.create(buffer)
	await(t, patience, "room for the job", s.provisioning(buffer, v1beta1.ReasonFitsExistingCapacity, 3))
	room, pods := s.ledger.count("admission"), s.pods("job")
	if len(pods) != 3 {
		t.Fatalf("the job has %d pods, want 3", len(pods))
	}
	s.remove(buffer)
	for _, pod := range pods {
		s.patch(pod, `{"spec":{"schedulingGates":null}}`)
	}
	await(t, patience, "the pods of the job to run", func(context.Context) error {
		for _, pod := range s.pods("job") {
			if pod.Status.Phase == corev1.PodPending {
				return fmt.Errorf("pod %s, bound to %q, is pending", pod.Name, pod.Spec.NodeName)
			}
		}
		return nil
	})
	if c := s.ledger.count("admission"); c.claimsEver != room.claimsEver || c.nodes != room.nodes {
		t.Errorf("%d nodes of %d claims, want the %d nodes of %d claims that the buffer had", c.nodes, c.claimsEver, room.nodes, room.claimsEver)
	}
	nowhere := s.room("nowhere", 1)
	template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "nowhere"}}
	template.Template.Spec = corev1.PodSpec{NodeSelector: map[string]string{"e2e.example.org/case": "none"},
		Containers: []corev1.Container{{Name: "pause", Image: "pause:3.10"}}}
	s.create(template)
	nowhere.Spec.PodTemplateRef.Name = template.Name
	s.create(nowhere)
	await(t, patience, "the buffer without a possible node to say so", s.provisioning(nowhere, v1beta1.ReasonInfeasible, 0))
	s.remove(nowhere)

	job := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "job"}}
	if err := s.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		again := s.room("again", 2)
		s.create(again)
		await(t, patience, "the buffer to be seen", func(ctx context.Context) error {
			if err := s.Get(ctx, keyOf(again), again); err != nil || len(again.Status.Conditions) == 0 {
				return fmt.Errorf("it has no condition (%v)", err)
			}
			return nil
		})
		s.remove(again)
	}
	await(t, patience, "no node to be left", s.empty)
}
