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

// Four nodes with a pod each become two: nothing is bought, and the pods run again.
func TestConsolidationByDeletion(t *testing.T) {
	s := onShared(t, "shrink")
	s.scale("app", 12)
	await(t, patience, "the pods to run", s.running("app", 12))
	s.keepOneOnEach("app")
	s.scale("app", 4)
	await(t, patience, "two nodes to be left", s.nodesReady(2))
	await(t, patience, "the pods to run on them", s.running("app", 4))
	if c := s.ledger.count("shrink"); c.claimsEver != 4 || c.machinesEver != 4 {
		t.Errorf("%d claims and %d machines were made ever, want the first four", c.claimsEver, c.machinesEver)
	}
	if left := s.leftFor("shrink"); left["Underutilized"] == 0 || left["Underutilized"]+left["Empty"] != 2 {
		t.Errorf("nodes left as %v, want two, and one of them at least as underutilised", left)
	}
}

// keepOneOnEach makes the ReplicaSet keep a pod on every node when it has to let some go. Which pods it lets go is decided from what
// the controller manager has seen of them, and it may be told to before it has seen the cost. So the pods are labelled in the same
// step and counted by a PodDisruptionBudget: its status is written from the same cache.
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
	seen.Spec.MinAvailable = new(intstr.FromInt32(0)) // with a number, pods are counted, not the replicas that their owner wants
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

// Three small nodes become one of the size of two: it is bought first, and the small ones go when it is ready.
func TestConsolidationByReplacement(t *testing.T) {
	s := onShared(t, "merge")
	s.merge()
	claims := s.ledger.claimsOf("merge")
	if len(claims) != 4 {
		t.Fatalf("%d claims were made ever, want three and the one in their place", len(claims))
	}
	bought := claims[3].object
	if by := bought.Annotations[karpv1.AnnotationBoughtBy]; by != "underutilized" {
		t.Errorf("claim %s was bought by %q, want underutilized", bought.Name, by)
	}
	ready := bought.DeepCopy().Condition(karpv1.ConditionInitialized)
	for _, e := range claims[:3] {
		if e.object.DeletionTimestamp.Time.Before(ready.LastTransitionTime.Truncate(time.Second)) {
			t.Errorf("claim %s was deleted at %s, before the one in its place was ready, %s", e.object.Name, e.object.DeletionTimestamp, ready.LastTransitionTime)
		}
	}
	if left := s.leftFor("merge"); left["Underutilized"] != 3 {
		t.Errorf("nodes left as %v, want three as underutilised", left)
	}
}

// merge brings three small nodes about while the budget is 0, opens it, and waits until the seven pods run on one.
func (s *stage) merge() {
	s.t.Helper()
	for _, pods := range []int{3, 6, 7} {
		s.scale("app", pods)
		await(s.t, patience, fmt.Sprintf("%d pods to run", pods), s.running("app", pods))
	}
	if c := s.ledger.count(s.name); c.nodes != 3 {
		s.t.Fatalf("seven pods that came in three lots are on %d nodes, want 3", c.nodes)
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

// leftFor counts the claims of a case that were deleted by the reason that stands on them, "" for none.
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

// A spot node that is too large is replaced by a small spot node, where the feature gate allows it.
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

// Of two pools that differ in their policy alone, the one that weighs the saving against the disruption keeps a node whose
// pod is dear to evict; when the pod no longer is, the node goes.
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
		t.Errorf("the dear pod of the pool that weighs was moved")
	}
	s.patch(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "weighed", Name: dear.Name}}, `{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":null}}}`)
	await(t, patience, "the pool that weighs to let its node go, too", s.nodesReady(4))
	await(t, patience, "its pod to run", s.running("balanced-dear", 1))
	if c := s.ledger.count("weighed"); c.claimsEver != 6 {
		t.Errorf("%d claims were made ever, want the first six", c.claimsEver)
	}
}
