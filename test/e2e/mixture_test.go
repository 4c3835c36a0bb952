package e2e

import (
	"fmt"
	"testing"
)

// TestMixtureTakesOnePlan creates pods that are spread over zones, pods with anti-affinity by host, pods of a job and
// a DaemonSet at the same time, and kube-scheduler binds them as the nodes open. The launched nodes are those of one
// plan, without surplus. A surplus node would be launched if a pod took room on the first nodes that is reserved for
// pods whose spread constraints exclude other nodes, so the nodes open in an order.
func TestMixtureTakesOnePlan(t *testing.T) {
	s := onShared(t, "mixture")
	// Nodes open in an order only where pods can be nominated (docs/compatibility.md).
	if minor := s.minor(t); minor < 35 {
		t.Skipf("on Kubernetes 1.%d pods are not nominated", minor)
	}
	apps := map[string]int{"web": 12, "db": 3, "job": 2}
	for app, pods := range apps {
		s.scale(app, pods)
	}
	for app, pods := range apps {
		await(t, patience, fmt.Sprintf("%d pods of %s to run", pods, app), s.running(app, pods))
	}
	const nodes = 6 // of the plan that kubectl karpenter simulate shows for these pods
	if c := s.ledger.count("mixture"); c.claimsEver > nodes {
		t.Errorf("%d nodes were launched, want the %d of one plan", c.claimsEver, nodes)
	}
	s.checkClaimsUsed()
}
