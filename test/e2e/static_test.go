package e2e

import (
	"context"
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestStaticPool checks that a static pool has the specified number of nodes: none is launched twice when scaling up,
// pods are bound to them, a limit applies and is reported, and empty nodes are removed when scaling down.
func TestStaticPool(t *testing.T) {
	s := onShared(t, "static")
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
	await(t, patience, "two nodes", s.nodesReady(2))
	s.scale("app", 1)
	await(t, patience, "a pod to run on one of them", s.running("app", 1))
	s.patch(pool, `{"spec":{"replicas":4}}`)
	await(t, patience, "a third node, and word of the limit", func(ctx context.Context) error {
		if err := s.nodesReady(3)(ctx); err != nil {
			return err
		}
		if err := s.Get(ctx, keyOf(pool), pool); err != nil {
			return err
		}
		return s.says(pool, "StaticPoolShort", "limit")(ctx)
	})
	if c := s.ledger.count("static"); c.claimsEver != 3 || c.machinesEver != 3 {
		t.Errorf("%d claims and %d machines were created for three nodes", c.claimsEver, c.machinesEver)
	}
	pod := s.pods("app")[0]
	s.patch(pool, `{"spec":{"replicas":1}}`)
	await(t, patience, "one node to be left", s.nodesReady(1))
	if now := s.pods("app"); len(now) != 1 || now[0].UID != pod.UID {
		t.Errorf("the pod was moved, though two nodes were empty")
	}
	s.patch(pool, `{"spec":{"replicas":0}}`)
	await(t, patience, "no node to be left", s.empty)
	if c := s.ledger.count("static"); c.claimsEver != 3 {
		t.Errorf("%d claims were created ever, want three", c.claimsEver)
	}
}

// TestStaticPoolAtItsLimit checks that a static pool whose nodes all drift while it grows never has more claims than its
// limit allows, those that are being deleted included, that all nodes are replaced, and that no claim gets the name of
// another. Finalizers keep claims, as machines do that take long to end.
func TestStaticPoolAtItsLimit(t *testing.T) {
	const limit = 5
	s := onShared(t, "standing")
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "standing"}}
	await(t, patience, "three nodes", s.nodesReady(3))
	old := s.uids()
	await(t, patience, "the claims to be kept", s.finalizers(controllerutil.AddFinalizer, old))
	t.Cleanup(func() { _ = s.finalizers(controllerutil.RemoveFinalizer, old)(context.Background()) })
	s.patch(pool, `{"spec":{"replicas":4,"template":{"metadata":{"labels":{"e2e.example.org/version":"2"}}}}}`)
	await(t, patience, "a claim to be deleted", func(context.Context) error {
		for _, e := range s.ledger.claimsOf("standing") {
			if e.object.DeletionTimestamp != nil {
				return nil
			}
		}
		return fmt.Errorf("none is")
	})
	s.patch(pool, `{"spec":{"replicas":5}}`)
	await(t, patience, "word of the limit", s.says(pool, "StaticPoolShort", "limit"))
	s.patch(pool, `{"spec":{"replicas":4}}`)
	await(t, patience, "the claims to be let go", s.finalizers(controllerutil.RemoveFinalizer, old))
	await(t, 2*patience, "all nodes to be replaced and one to be added", func(ctx context.Context) error {
		for _, e := range s.ledger.claimsOf("standing") {
			if old[e.object.UID] && !e.gone {
				return fmt.Errorf("claim %s is still there", e.object.Name)
			}
		}
		return s.nodesReady(4)(ctx)
	})
	if most := s.ledger.mostOf("standing"); most > limit {
		t.Errorf("%d claims existed at the same time, the limit is %d", most, limit)
	}
	// One more if the end of the kept claim was seen before spec.replicas was 4 again.
	if c := s.ledger.count("standing"); c.claimsEver < 7 || c.claimsEver > 8 {
		t.Errorf("%d claims were created for four nodes and the replacement of three", c.claimsEver)
	}
	names := map[string]bool{}
	for _, e := range s.ledger.claimsOf("standing") {
		if names[e.object.Name] {
			t.Errorf("two claims had the name %s", e.object.Name)
		}
		names[e.object.Name] = true
	}
}

// finalizers adds a finalizer of the test to the claims, or removes it.
func (s *stage) finalizers(change func(client.Object, string) bool, claims map[types.UID]bool) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, e := range s.ledger.claimsOf(s.name) {
			claim := e.object.DeepCopy()
			if !claims[claim.UID] || s.Get(ctx, keyOf(claim), claim) != nil || !claims[claim.UID] || !change(claim, "e2e.example.org/machine") {
				continue
			}
			if err := s.Update(ctx, claim); err != nil {
				return err
			}
		}
		return nil
	}
}

// nodesReady waits for exactly n nodes of the case, all initialized.
func (s *stage) nodesReady(n int) func(context.Context) error {
	return func(context.Context) error {
		nodes := s.ledger.nodesOf(s.name)
		for _, node := range nodes {
			if node.Labels[karpv1.LabelInitialized] != "true" {
				return fmt.Errorf("node %s is not initialized", node.Name)
			}
		}
		if c := s.ledger.count(s.name); len(nodes) != n || c.claims != n {
			return fmt.Errorf("%d nodes and %d claims", len(nodes), c.claims)
		}
		return nil
	}
}

// TestCapacityBeforeItIsMissed checks that the replacement of a deleted node is launched at once, while the pods
// still run on the old one, here because a PodDisruptionBudget protects them. After their eviction, the pods that
// replace them are bound to the new node.
func TestCapacityBeforeItIsMissed(t *testing.T) {
	s := onShared(t, "ahead")
	s.scale("app", 2)
	await(t, patience, "the pods to run", s.running("app", 2))
	before := s.pods("app")
	s.remove(s.ledger.claimsOf("ahead")[0].object)
	await(t, patience, "another node, while the pods stay", func(context.Context) error {
		for _, was := range before {
			stays := false
			for _, now := range s.pods("app") {
				stays = stays || now.UID == was.UID && now.DeletionTimestamp == nil
			}
			if !stays {
				t.Fatalf("pod %s was deleted before there is a node for it", was.Name)
			}
		}
		ready := 0
		for _, node := range s.ledger.nodesOf("ahead") {
			if node.Name != before[0].Spec.NodeName && node.Labels[karpv1.LabelInitialized] == "true" {
				ready++
			}
		}
		if ready == 0 {
			return fmt.Errorf("no node is ready but the one that leaves")
		}
		return nil
	})
	s.remove(&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ahead", Name: "app"}})
	await(t, patience, "one node to be left", s.nodesReady(1))
	await(t, patience, "the pods to run on it", s.running("app", 2))
	if c := s.ledger.count("ahead"); c.claimsEver != 2 {
		t.Errorf("%d claims were created, want the first and its successor", c.claimsEver)
	}
}
