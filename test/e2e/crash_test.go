package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

func keyOf(object client.Object) types.NamespacedName { return client.ObjectKeyFromObject(object) }

// moment is a state of the ledger at which the controller is killed.
type moment struct {
	name    string
	reached func(before, now census, s *stage) bool
}

var growing = []moment{
	{"a claim is there", func(before, now census, _ *stage) bool { return now.claimsEver > before.claimsEver }},
	{"a machine is bought", func(before, now census, _ *stage) bool { return now.machinesEver > before.machinesEver }},
	{"a node is there", func(before, now census, _ *stage) bool { return now.nodesEver > before.nodesEver }},
}

var shrinking = []moment{
	{"a node is cordoned", func(_, _ census, s *stage) bool {
		for _, node := range s.ledger.nodesOf(s.name) {
			if tainted(node) {
				return true
			}
		}
		return false
	}},
	{"a claim is deleted", func(_, _ census, s *stage) bool {
		for _, e := range s.ledger.claimsOf(s.name) {
			if !e.gone && e.object.DeletionTimestamp != nil {
				return true
			}
		}
		return false
	}},
	{"a machine is gone", func(_, now census, _ *stage) bool { return now.machines < now.claims || now.machines < 4 }},
}

// crashFlags let a new controller lead 2 s after the old one was killed, and shorten the removal of empty nodes.
var crashFlags = []string{"--leader-election-lease=2s", "--timers=disruption-poll=500ms,drain-min=1s,command-retry=200ms,collection=3s,leak=20s"}

// TestKilledController checks that, whenever the controller is killed while it launches or removes nodes, the next
// one finishes the work: no pod is stuck, no machine leaks or is launched twice, and no taint remains.
func TestKilledController(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	s := newStage(t, c, "crash")
	log := filepath.Join(artifacts, "crash.log")
	const pods, nodes = 12, 4 // three pods on each node
	for round := range effort(1, 2, 10) {
		for i := range growing {
			c.runController(t, log, crashFlags...)
			before := s.ledger.count("crash")
			s.scale("app", pods)
			s.killWhen(growing[i], before)
			c.runController(t, log, crashFlags...)
			await(t, patience, fmt.Sprintf("all pods to run, round %d, killed when %s", round, growing[i].name), s.running("app", pods))
			s.checkBought(growing[i].name, before, nodes)

			s.scale("app", 0)
			s.killWhen(shrinking[i], before)
			c.runController(t, log, crashFlags...)
			await(t, patience, fmt.Sprintf("all nodes to leave, round %d, killed when %s", round, shrinking[i].name), s.empty)
			s.checkBought(shrinking[i].name, before, nodes)
			if err := c.controller.stop(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestKilledControllerAndPodsComeBack checks that pods that are created again while the controller is stopped, with
// its nodes half removed, run again, and that no kept node keeps the taint or the command.
func TestKilledControllerAndPodsComeBack(t *testing.T) {
	t.Parallel()
	c := ownCluster(t)
	s := newStage(t, c, "crash")
	log := filepath.Join(artifacts, "comeback.log")
	c.runController(t, log, crashFlags...)
	for round := range effort(1, 3, 10) {
		s.scale("app", 12)
		await(t, patience, "all pods to run", s.running("app", 12))
		before := s.ledger.count("crash")
		s.scale("app", 0)
		s.killWhen(shrinking[round%len(shrinking)], before)
		s.scale("app", 12)
		c.runController(t, log, crashFlags...)
		await(t, patience, "all pods to run again", s.running("app", 12))
		await(t, patience, "what stays to be untouched, and what goes to be gone", s.settled)
	}
}

// settled fails while a node is being removed or is marked for it, or claims, nodes and machines do not match.
func (s *stage) settled(context.Context) error {
	for _, e := range s.ledger.claimsOf(s.name) {
		switch _, commanded := e.object.Annotations[karpv1.AnnotationCommand]; {
		case e.gone:
		case e.object.DeletionTimestamp != nil:
			return fmt.Errorf("claim %s is leaving", e.object.Name)
		case commanded:
			return fmt.Errorf("claim %s still has a command", e.object.Name)
		}
	}
	for _, node := range s.ledger.nodesOf(s.name) {
		if tainted(node) {
			return fmt.Errorf("node %s is tainted", node.Name)
		}
	}
	if c := s.ledger.count(s.name); c.claims != c.nodes || c.claims != c.machines {
		return fmt.Errorf("%d claims, %d nodes and %d machines are there", c.claims, c.nodes, c.machines)
	}
	return nil
}

// killWhen kills the controller at the moment.
func (s *stage) killWhen(m moment, before census) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), time.Millisecond, patience, true, func(context.Context) (bool, error) {
		return m.reached(before, s.ledger.count(s.name), s), nil
	})
	if err != nil {
		s.t.Fatalf("waited %s for the moment when %s", patience, m.name)
	}
	s.controller.kill()
	s.t.Logf("killed when %s: %+v", m.name, s.ledger.count(s.name))
}

// checkBought fails if more or less was launched than needed.
func (s *stage) checkBought(when string, before census, nodes int) {
	s.t.Helper()
	now := s.ledger.count(s.name)
	claims, machines := now.claimsEver-before.claimsEver, now.machinesEver-before.machinesEver
	if claims != nodes || machines != nodes {
		s.t.Errorf("killed when %s: %d claims were created and %d machines launched, want %d of each", when, claims, machines, nodes)
	}
	for _, node := range s.ledger.nodesOf(s.name) {
		if tainted(node) {
			s.t.Errorf("killed when %s: node %s kept the taint", when, node.Name)
		}
	}
}
