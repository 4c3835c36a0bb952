package sim

import (
	"slices"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestNotReadyNodesTakeNoPods checks that nodes that are not ready for a while carry the taint of the condition: the
// controller, which plans by the taint, launches a node for a pod that waits meanwhile. The taint is removed with the
// condition.
func TestNotReadyNodesTakeNoPods(t *testing.T) {
	w := quietWorld()
	run := func(d time.Duration) {
		for until := w.now.Add(d); w.failure == nil && w.next(until); {
		}
	}
	run(5 * time.Minute)
	nodes, launched := w.api.nodes(), len(w.cloud.ledger)
	for range w.api.nodes() {
		w.sicken(Disturbance{Much: 95})
	}
	run(10 * time.Second)
	w.deletePod(w.api.pods()[slices.IndexFunc(w.api.pods(), func(p *pod) bool { return !p.daemon })])
	run(70 * time.Second)
	if more := len(w.cloud.ledger) - launched; more != 1 {
		t.Errorf("%d machines are launched for a pod beside nodes that are not ready, want 1", more)
	}
	for _, n := range nodes {
		if n = w.api.node(n.name); n.ready || len(n.taints) != 1 {
			t.Errorf("%s is ready: %t, its taints are %v, want the taint of the condition", n.name, n.ready, n.taints)
		}
	}
	run(time.Minute)
	for _, n := range w.api.nodes() {
		if !n.ready || len(n.taints) > 0 {
			t.Errorf("%s is ready: %t, its taints are %v, want a ready node without taints", n.name, n.ready, n.taints)
		}
	}
	if w.failure != nil {
		t.Error(w.failure)
	}
}

// TestNodesWithoutMachineAreUnreachable checks the same for nodes without a machine.
func TestNodesWithoutMachineAreUnreachable(t *testing.T) {
	w := quietWorld()
	for w.failure == nil && w.next(epoch.Add(5*time.Minute)) {
	}
	n := w.api.nodes()[0]
	w.cloud.end(w.cloud.machine(n.provider))
	for w.failure == nil && w.next(epoch.Add(5*time.Minute+10*time.Second)) {
	}
	switch n = w.api.node(n.name); {
	case n.ready:
		t.Errorf("ready: n.ready is true")
	case !slices.Equal(n.taints, []model.Taint{unreachableTaint}):
		t.Errorf("ready: n.taints is %v, want %v", n.taints, []model.Taint{unreachableTaint})
	case w.failure != nil:
		t.Errorf("ready: w.failure is %v, want nil", w.failure)
	}
}
