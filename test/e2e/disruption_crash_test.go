package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud/kwok"
)

// replacing are the phases of a command that replaces a node, each at the moment when it first becomes visible.
var replacing = []moment{
	{"the command is written", func(_, _ census, s *stage) bool {
		return s.leavingClaim(func(c *karpv1.NodeClaim) bool { return c.Annotations[karpv1.AnnotationCommand] != "" })
	}},
	{"the replacement is there", func(before, now census, _ *stage) bool { return now.claimsEver > before.claimsEver }},
	{"the claim is deleted", func(_, _ census, s *stage) bool {
		return s.leavingClaim(func(c *karpv1.NodeClaim) bool { return c.DeletionTimestamp != nil })
	}},
	{"the node is cordoned", func(_, _ census, s *stage) bool {
		for _, node := range s.ledger.nodesOf(s.name) {
			if tainted(node) {
				return true
			}
		}
		return false
	}},
	{"the replacement is ready", func(before, now census, s *stage) bool {
		claims := s.ledger.claimsOf(s.name)
		return now.claimsEver > before.claimsEver && claims[len(claims)-1].object.DeepCopy().Condition(karpv1.ConditionInitialized).IsTrue()
	}},
	{"the machine is gone", func(before, now census, _ *stage) bool {
		return now.machinesEver > before.machinesEver && now.machines == 1
	}},
}

// leavingClaim reports whether an existing claim of the case satisfies like.
func (s *stage) leavingClaim(like func(*karpv1.NodeClaim) bool) bool {
	for _, e := range s.ledger.claimsOf(s.name) {
		if !e.gone && like(e.object) {
			return true
		}
	}
	return false
}

// replaceFlags are crashFlags with a short validation and a short timeout for nodes that do not register.
var replaceFlags = []string{"--leader-election-lease=2s", "--timers=disruption-poll=500ms,drain-min=1s,command-retry=200ms,collection=3s,leak=20s,validation=1s,registration=15s"}

// TestKilledWhileReplacing checks that, whenever the controller is killed while it replaces a node by a smaller one,
// the next one finishes the work: one node is launched, one is removed, no pod is stuck, and no taint and no command
// remains. A replacement that never becomes ready is abandoned, and the node returns to its previous state. (The
// feature gate SpotToSpotConsolidation is off here.)
func TestKilledWhileReplacing(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	log := filepath.Join(artifacts, "replace.log")
	c.runController(t, log, replaceFlags...)
	t.Run("phases", func(t *testing.T) {
		s := newStage(t, c, "phases")
		for round := range effort(1, 1, 5) {
			for _, m := range replacing[:effort(3, len(replacing), len(replacing))] {
				s.killWhileReplacing(log, m, round)
			}
		}
	})
	t.Run("rollback", func(t *testing.T) { playRollback(newStage(t, c, "dud")) })
	t.Run("gate", func(t *testing.T) { playClosedGate(newStage(t, c, "spot")) })
}

// playClosedGate checks that without the feature gate a spot node is not replaced by another, and that the reason is
// reported.
func playClosedGate(s *stage) {
	s.scale("large", 1)
	s.scale("small", 1)
	await(s.t, patience, "the large pod to run", s.running("large", 1))
	await(s.t, patience, "the small pod to run", s.running("small", 1))
	small := s.pods("small")[0]
	s.scale("large", 0)
	await(s.t, patience, "the node to say that spot is not replaced by spot", s.says(s.node(small), "Unconsolidatable", "SpotForbidden"))
	if now := s.pods("small"); len(now) != 1 || now[0].UID != small.UID {
		s.t.Errorf("the small pod was moved")
	}
}

func (s *stage) killWhileReplacing(log string, m moment, round int) {
	s.t.Helper()
	const all, few = 7, 3
	s.scale("app", all)
	await(s.t, patience, "all pods to run", s.running("app", all))
	await(s.t, patience, "nothing to be left of the round before", s.settled)
	before := s.ledger.count(s.name)
	s.scale("app", few)
	s.killWhen(m, before)
	s.runController(s.t, log, replaceFlags...)
	await(s.t, patience, fmt.Sprintf("a small node to be left, round %d, killed when %s", round, m.name), func(ctx context.Context) error {
		if err := s.running("app", few)(ctx); err != nil {
			return err
		}
		if err := s.nodesReady(1)(ctx); err != nil {
			return err
		}
		if cpu := s.ledger.nodesOf(s.name)[0].Labels[kwok.LabelCPU]; cpu != "4" {
			return fmt.Errorf("the node has %s CPUs", cpu)
		}
		return s.settled(ctx)
	})
	s.checkBought(m.name, before, 1)
	s.scale("app", 0)
	await(s.t, patience, "the node to leave", s.empty)
}

// playRollback launches a replacement that never becomes a node.
func playRollback(s *stage) {
	s.scale("app", 7)
	await(s.t, patience, "the pods to run", s.running("app", 7))
	// The class is changed before any replacement can be launched.
	class := &kwokClass{ObjectMeta: metav1.ObjectMeta{Name: "dud"}}
	s.patch(class, `{"spec":{"nodeRegistrationDelay":"1h"}}`)
	await(s.t, patience, "the controller to have seen what became of the class", func(ctx context.Context) error {
		pool := &karpv1.NodePool{}
		if err := s.Get(ctx, client.ObjectKey{Name: "dud"}, pool); err != nil {
			return err
		}
		if seen := pool.Status.NodeClassObservedGeneration; seen != class.Generation {
			return fmt.Errorf("it has seen generation %d of the class, which has %d", seen, class.Generation)
		}
		return nil
	})
	s.scale("app", 3)
	await(s.t, patience, "three pods to be left", s.running("app", 3))
	pods := s.pods("app")
	s.budgets("dud", `{"nodes":"100%"}`)
	await(s.t, patience, "the node to be marked, and a replacement to be bought", func(context.Context) error {
		if c := s.ledger.count("dud"); c.claims != 2 || !tainted(s.node(pods[0])) {
			return fmt.Errorf("%d claims, taints %v", c.claims, s.node(pods[0]).Spec.Taints)
		}
		return nil
	})
	s.budgets("dud", `{"nodes":"0"}`)
	await(s.t, patience, "the replacement to be given up", func(ctx context.Context) error {
		if c := s.ledger.count("dud"); c.claims != 1 {
			return fmt.Errorf("%d claims are there", c.claims)
		}
		return s.settled(ctx)
	})
	if reason := reasonOf(s.ledger.claimsOf("dud")[0].object); reason != "" {
		s.t.Errorf("the claim is still marked as disrupted, as %s", reason)
	}
	for _, was := range pods {
		stayed := false
		for _, now := range s.pods("app") {
			stayed = stayed || now.UID == was.UID
		}
		if !stayed {
			s.t.Errorf("pod %s was moved, and there was no place to go", was.Name)
		}
	}
	s.patch(class, `{"spec":{"nodeRegistrationDelay":null}}`)
	s.budgets("dud", `{"nodes":"100%"}`)
	await(s.t, patience, "the node to be replaced at last", func(ctx context.Context) error {
		if err := s.nodesReady(1)(ctx); err != nil {
			return err
		}
		if cpu := s.ledger.nodesOf("dud")[0].Labels[kwok.LabelCPU]; cpu != "4" {
			return fmt.Errorf("the node has %s CPUs", cpu)
		}
		return s.running("app", 3)(ctx)
	})
}
