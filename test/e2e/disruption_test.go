package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestConsolidationByDeletion checks that four nodes with a pod each become two: nothing is launched, and the pods
// run again.
func TestConsolidationByDeletion(t *testing.T) {
	s := onShared(t, "shrink")
	s.scale("app", 12)
	await(t, patience, "the pods to run", s.running("app", 12))
	s.keepOneOnEach("app")
	s.scale("app", 4)
	await(t, patience, "the pods to be four", s.running("app", 4))
	s.budgets("shrink", `{"nodes":"100%"}`) // now: in the middle of the scale-down, other plans are right
	await(t, patience, "two nodes to be left", s.nodesReady(2))
	await(t, patience, "the pods to run on them", s.running("app", 4))
	if c := s.ledger.count("shrink"); c.claimsEver != 4 || c.machinesEver != 4 {
		t.Errorf("%d claims and %d machines were ever created, want the first four", c.claimsEver, c.machinesEver)
	}
	if left := s.leftFor("shrink"); left["Underutilized"] == 0 || left["Underutilized"]+left["Empty"] != 2 {
		t.Errorf("nodes were removed as %v, want two, and one of them at least as underutilized", left)
	}
}

// keepOneOnEach makes the ReplicaSet keep a pod on every node when it is scaled down. The controller manager selects
// the pods to delete from its cache, and may be scaled before it has seen the deletion cost. So the pods are labeled
// in the same step and counted by a PodDisruptionBudget, whose status is written from the same cache.
func (s *stage) keepOneOnEach(app string) {
	s.t.Helper()
	kept := map[string]bool{}
	for _, pod := range s.pods(app) {
		if !kept[pod.Spec.NodeName] {
			kept[pod.Spec.NodeName] = true
			s.patch(pod, `{"metadata":{"labels":{"kept":"true"},"annotations":{"controller.kubernetes.io/pod-deletion-cost":"100"}}}`)
		}
	}
	seen := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: "kept"}}
	seen.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"kept": "true"}}
	seen.Spec.MinAvailable = new(intstr.FromInt32(0)) // with a number, pods are counted, not their owner's replicas
	s.create(seen)
	await(s.t, patience, "the controller manager to know the pods that are kept", func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(seen), seen); err != nil {
			return err
		}
		if seen.Status.ExpectedPods != int32(len(kept)) {
			return fmt.Errorf("it knows %d of %d", seen.Status.ExpectedPods, len(kept))
		}
		return nil
	})
	s.remove(seen)
}

// TestConsolidationByReplacement checks that three small nodes become one of the size of two: it is launched first,
// and the small ones are removed when it is ready.
func TestConsolidationByReplacement(t *testing.T) {
	s := onShared(t, "merge")
	s.merge()
	claims := s.ledger.claimsOf("merge")
	if len(claims) != 4 {
		t.Fatalf("%d claims were ever created, want three and their replacement", len(claims))
	}
	bought := claims[3].object
	if by := bought.Annotations[karpv1.AnnotationBoughtBy]; by != "underutilized" {
		t.Errorf("claim %s was launched by %q, want underutilized", bought.Name, by)
	}
	ready := bought.DeepCopy().Condition(karpv1.ConditionInitialized)
	for _, e := range claims[:3] {
		if e.object.DeletionTimestamp.Time.Before(ready.LastTransitionTime.Truncate(time.Second)) {
			t.Errorf("claim %s was deleted at %s, before its replacement was ready, %s", e.object.Name, e.object.DeletionTimestamp, ready.LastTransitionTime)
		}
	}
	if left := s.leftFor("merge"); left["Underutilized"] != 3 {
		t.Errorf("nodes were removed as %v, want three as underutilized", left)
	}
}

// merge creates three small nodes while the budget is 0, opens it, and waits until the seven pods run on one.
func (s *stage) merge() {
	s.t.Helper()
	for _, pods := range []int{3, 6, 7} {
		s.scale("app", pods)
		await(s.t, patience, fmt.Sprintf("%d pods to run", pods), s.running("app", pods))
	}
	if c := s.ledger.count(s.name); c.nodes != 3 {
		s.t.Fatalf("seven pods that were created in three groups are on %d nodes, want 3", c.nodes)
	}
	s.budgets(s.name, `{"nodes":"100%"}`)
	await(s.t, patience, "one node to be left", s.nodesReady(1))
	await(s.t, patience, "the pods to run on it", s.running("app", 7))
}

// budgets sets the budgets of a pool.
func (s *stage) budgets(pool, budgets string) {
	s.t.Helper()
	s.patch(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: pool}}, `{"spec":{"disruption":{"budgets":[`+budgets+`]}}}`)
}

// leftFor counts the deleted claims of a case by their disruption reason, "" for none.
func (s *stage) leftFor(name string) map[string]int {
	out := map[string]int{}
	for _, e := range s.ledger.claimsOf(name) {
		if e.gone || e.object.DeletionTimestamp != nil {
			out[reasonOf(e.object)]++
		}
	}
	return out
}

func reasonOf(claim *karpv1.NodeClaim) string {
	if c := claim.DeepCopy().Condition(karpv1.ConditionDisruptionReason); c.IsTrue() {
		return c.Reason
	}
	return ""
}

// TestSpotToSpot checks that a spot node that is too large is replaced by a small spot node if the feature gate is
// on.
func TestSpotToSpot(t *testing.T) {
	s := onShared(t, "spot")
	s.scale("large", 1)
	s.scale("small", 1)
	await(t, patience, "the large pod to run", s.running("large", 1))
	await(t, patience, "the small pod to run", s.running("small", 1))
	s.scale("large", 0)
	await(t, patience, "the small pod to run on a small spot node", func(ctx context.Context) error {
		if err := s.running("small", 1)(ctx); err != nil {
			return err
		}
		if err := s.nodesReady(1)(ctx); err != nil {
			return err
		}
		node := s.ledger.nodesOf("spot")[0]
		if cpu := node.Status.Capacity.Cpu().Value(); cpu > 1 {
			return fmt.Errorf("node %s has %d CPUs", node.Name, cpu)
		}
		return nil
	})
	if kind := s.ledger.nodesOf("spot")[0].Labels[karpv1.LabelCapacityType]; kind != karpv1.CapacityTypeSpot {
		t.Errorf("the node is %s, want spot", kind)
	}
}

// TestBalanced checks that, of two pools that differ only in their policy, the one with the policy Balanced keeps a
// node whose pod has a high eviction cost. When the pod's cost is removed, the node is removed too.
func TestBalanced(t *testing.T) {
	s := onShared(t, "weighed")
	pools := []string{"plain", "balanced"}
	each := func(app string, replicas int) {
		for _, pool := range pools {
			s.scale(pool+"-"+app, replicas)
		}
		for _, pool := range pools {
			await(t, patience, app+" to run", s.running(pool+"-"+app, replicas))
		}
	}
	each("dear", 1)
	each("filler", 1)
	each("held", 2)
	each("filler", 0)
	if c := s.ledger.count("weighed"); c.nodes != 6 {
		t.Fatalf("%d nodes, want three of each pool", c.nodes)
	}
	dear := s.pods("balanced-dear")[0]
	s.budgets("weighed-balanced", `{"nodes":"100%"}`)
	s.budgets("weighed-plain", `{"nodes":"100%"}`)
	await(t, patience, "the pool that does not weigh to let a node go", s.nodesReady(5))
	await(t, patience, "its pod to run", s.running("plain-dear", 1))
	await(t, patience, "the node that is kept to say why", s.says(s.node(dear), "Unconsolidatable", "ScoreTooLow", "Balanced"))
	if now := s.pods("balanced-dear"); len(now) != 1 || now[0].UID != dear.UID {
		t.Errorf("the expensive pod of the pool with the policy Balanced was moved")
	}
	s.patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "weighed", Name: dear.Name}}, `{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":null}}}`)
	await(t, patience, "the pool that weighs to let its node go, too", s.nodesReady(4))
	await(t, patience, "its pod to run", s.running("balanced-dear", 1))
	if c := s.ledger.count("weighed"); c.claimsEver != 6 {
		t.Errorf("%d claims were ever created, want the first six", c.claimsEver)
	}
}
