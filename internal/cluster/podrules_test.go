package cluster

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// planned returns how many pods are planned for.
func planned(s *Store) (count int) {
	for _, g := range s.Snapshot(time.Now()).Groups {
		count += len(g.Pods)
	}
	return count
}

// TestPodDelay verifies (PD-1) that a pod within its delay is not planned for, and never if it is bound meanwhile; and
// that subscribers learn when the delay is over.
func TestPodDelay(t *testing.T) {
	s := newStore(t, Config{Pods: convert.PodRules{Delay: 2 * time.Second}})
	pending := s.Subscribe(PodsPending)
	created := metav1.Now()
	first := podAt(t, "first", "u1", "1", "")
	first.CreationTimestamp = created
	s.Saw(first)
	bound := first.DeepCopy()
	bound.ResourceVersion, bound.Spec.NodeName = "2", "n"
	s.Saw(bound)
	later := podAt(t, "later", "u2", "1", "")
	later.CreationTimestamp, later.Annotations = created, map[string]string{karpv1.AnnotationPodScaleUpDelay: "1h"}
	s.Saw(later)
	late := podAt(t, "late", "u3", "1", "")
	late.CreationTimestamp = created
	s.Saw(late)
	changed := late.DeepCopy()
	changed.ResourceVersion, changed.Annotations = "3", map[string]string{karpv1.AnnotationProvisionAfter: "1s"} // less than that of all
	s.Saw(changed)
	select {
	case <-pending:
		if time.Since(created.Time) < 2*time.Second {
			t.Error("a pod that waits counts as pending")
		}
	case <-time.After(time.Minute):
		t.Fatal("no pod is pending after the delay")
	}
	if n := planned(s); n != 1 {
		t.Errorf("%d pods are planned for after the delay, want one: of the others one is bound, and one waits for longer", n)
	}
}

// TestExpendablePods verifies (EP-1) that pods with a priority below the cutoff are not planned for, and that on a node they
// need no other place; and that the virtual pods of buffers are never expendable.
func TestExpendablePods(t *testing.T) {
	cutoff := int32(-10)
	s := newStore(t, Config{Pods: convert.PodRules{PriorityCutoff: &cutoff}})
	see := func(name string, priority *int32, node, owner string) {
		pod := podAt(t, name, name, "1", node)
		pod.Spec.Priority = priority
		if owner != "" {
			pod.OwnerReferences = []metav1.OwnerReference{{Kind: owner, UID: "o", Controller: new(bool)}}
		}
		s.Saw(pod)
	}
	low, lower := int32(-10), int32(-11)
	see("default", nil, "", "")
	see("low", &low, "", "")
	see("lower", &lower, "", "")
	see("room", &lower, "", "CapacityBuffer")
	if n := planned(s); n != 3 {
		t.Errorf("%d pods are planned for, want those from -10 on and that of the buffer", n)
	}
	s.Saw(nodeAt(t, "n", "n", "1", "id", ""))
	see("kept", &low, "n", "")
	see("left", &lower, "n", "")
	node := s.Snapshot(time.Now()).Node("n")
	if node == nil || len(node.Pods) != 2 || node.Reschedulable() != 1 {
		t.Fatalf("the node is %+v, want two pods, of which one needs another place", node)
	}
	if i := indexOf(node, "left"); node.Pods[i].Reschedulable || node.Pods[1-i].Priority != low {
		t.Errorf("pods are %+v, want that below the cutoff to need no other place", node.Pods)
	}
}

func indexOf(n *model.Node, pod string) int {
	for i, p := range n.Pods {
		if p.Name == pod {
			return i
		}
	}
	return 0
}
