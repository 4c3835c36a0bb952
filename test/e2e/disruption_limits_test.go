package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// TestDriftWithinBudget checks that all nodes drift when the pool's labels change. They are replaced, a tenth of them
// at a time, and each pod has a node to move to before its own is removed.
func TestDriftWithinBudget(t *testing.T) {
	nodes := effort(20, 50, 50)
	s := onShared(t, "renewed")
	s.scale("app", nodes)
	await(t, 2*patience, "the pods to run", s.running("app", nodes))
	await(t, patience, "one node for each", s.nodesReady(nodes))
	old, before := s.uids(), s.ledger.count("renewed").claimsEver
	s.patch(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "renewed"}}, `{"spec":{"template":{"metadata":{"labels":{"e2e.example.org/version":"2"}}}}}`)
	await(t, 4*patience, "every node to be replaced", func(ctx context.Context) error {
		there := 0
		for _, e := range s.ledger.claimsOf("renewed") {
			if old[e.object.UID] && !e.gone {
				there++
			}
		}
		if there > 0 {
			return fmt.Errorf("%d of %d are still there", there, nodes)
		}
		return s.running("app", nodes)(ctx)
	})
	// The percentage is of all existing nodes, including replacements, and rounded up.
	peak := s.ledger.peak("renewed")
	if most := (nodes + peak + 9) / 10; peak > most || peak == 0 {
		t.Errorf("%d nodes were leaving at the same time, want 1 to %d", peak, most)
	}
	if c := s.ledger.count("renewed"); c.claimsEver-before != nodes {
		t.Errorf("%d claims were created to replace %d", c.claimsEver-before, nodes)
	}
	for _, e := range s.ledger.claimsOf("renewed") {
		if e.gone || old[e.object.UID] {
			continue
		}
		if by := e.object.Annotations[karpv1.AnnotationBoughtBy]; by != "drifted" {
			t.Errorf("claim %s was launched by %q, want drifted", e.object.Name, by)
		}
	}
}

// uids returns the UIDs of the case's existing claims.
func (s *stage) uids() map[types.UID]bool {
	out := map[types.UID]bool{}
	for _, e := range s.ledger.claimsOf(s.name) {
		if !e.gone {
			out[e.object.UID] = true
		}
	}
	return out
}

// TestBornTogether checks that nodes of the same age are renewed, most of them before their expiry, and that none
// lives for much longer than expireAfter.
func TestBornTogether(t *testing.T) {
	const nodes, life = 8, 100 * time.Second
	s := onShared(t, "together")
	s.scale("app", nodes)
	await(t, patience, "the pods to run", s.running("app", nodes))
	old := s.uids()
	await(t, life+patience, "every node to be replaced", func(ctx context.Context) error {
		for _, e := range s.ledger.claimsOf("together") {
			if old[e.object.UID] && !e.gone {
				return fmt.Errorf("claim %s is still there", e.object.Name)
			}
		}
		return s.running("app", nodes)(ctx)
	})
	graceful := 0
	for _, e := range s.ledger.claimsOf("together") {
		if claim := e.object; !old[claim.UID] && claim.Annotations[karpv1.AnnotationBoughtBy] == "expired" {
			graceful++
		}
	}
	if graceful < nodes/2 {
		t.Errorf("%d of %d nodes were renewed before their end, want most", graceful, nodes)
	}
}

// TestBudgetWithSchedule checks that a budget that allows nothing for some minutes ends by its schedule, and empty
// nodes are then removed.
func TestBudgetWithSchedule(t *testing.T) {
	s := onShared(t, "hours")
	s.scale("app", 6)
	await(t, patience, "the pods to run", s.running("app", 6))
	began := time.Now().UTC().Truncate(time.Minute)
	closed := time.Minute
	if time.Since(began) > 35*time.Second {
		closed = 2 * time.Minute
	}
	s.budgets("hours", fmt.Sprintf(`{"nodes":"0","schedule":"%d %d * * *","duration":"%dm"},{"nodes":"100%%"}`, began.Minute(), began.Hour(), int(closed.Minutes())))
	s.scale("app", 0)
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "hours"}}
	await(t, patience, "the pool to say that its budget forbids", func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(pool), pool); err != nil {
			return err
		}
		return s.says(pool, "DisruptionBlocked", "budget")(ctx)
	})
	await(t, closed+patience, "the nodes to leave", s.empty)
	opened := began.Add(closed)
	for _, e := range s.ledger.claimsOf("hours") {
		if early := opened.Sub(e.object.DeletionTimestamp.Time); early > 0 {
			t.Errorf("claim %s was deleted %s before the budget opened", e.object.Name, early)
		}
	}
}

// TestDisruptionBudgetThatOpens checks that a disruption that a PodDisruptionBudget would block is not started, and
// that the node reports it. When the budget allows an eviction, the nodes are removed.
func TestDisruptionBudgetThatOpens(t *testing.T) {
	s := onShared(t, "guarded")
	s.scale("app", 12)
	await(t, patience, "the pods to run", s.running("app", 12))
	s.keepOneOnEach("app")
	s.scale("app", 4)
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "guarded", Name: "app"}}
	await(t, patience, "the PodDisruptionBudget to allow nothing", func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(budget), budget); err != nil {
			return err
		}
		if budget.Status.ExpectedPods != 4 || budget.Status.DisruptionsAllowed != 0 || budget.Status.ObservedGeneration != budget.Generation {
			return fmt.Errorf("its status is %+v", budget.Status)
		}
		return nil
	})
	s.budgets("guarded", `{"nodes":"100%","reasons":["Underutilized"]},{"nodes":"0","reasons":["Empty"]}`)
	for _, pod := range s.pods("app") {
		await(t, patience, "the node to name the PodDisruptionBudget", s.says(s.node(pod), "DisruptionBlocked", "guarded/app"))
	}
	for _, e := range s.ledger.claimsOf("guarded") {
		const why = "though no pod may be evicted"
		switch {
		case e.gone:
			t.Errorf("claim %s was removed, %s", e.object.Name, why)
		case e.object.DeletionTimestamp != nil:
			t.Errorf("claim %s is being removed since %s, %s", e.object.Name, e.object.DeletionTimestamp, why)
		case e.object.Annotations[karpv1.AnnotationCommand] != "":
			t.Errorf("claim %s has the command %s, %s", e.object.Name, e.object.Annotations[karpv1.AnnotationCommand], why)
		}
	}
	s.patch(budget, `{"spec":{"minAvailable":3}}`)
	await(t, patience, "the pods to be on two nodes", func(ctx context.Context) error {
		if err := s.running("app", 4)(ctx); err != nil {
			return err
		}
		on := map[string]bool{}
		for _, pod := range s.pods("app") {
			on[pod.Spec.NodeName] = true
		}
		if len(on) != 2 {
			return fmt.Errorf("they are on %d nodes", len(on))
		}
		return s.settled(ctx)
	})
	if left := s.leftFor("guarded"); left["Underutilized"] == 0 {
		t.Errorf("nodes were removed as %v, want some as underutilized", left)
	}
}
