package e2e

import (
	"fmt"
	"testing"
)

// TestMixtureTakesOnePlan creates pods that are spread over zones, pods with anti-affinity by host, pods of a job and
// a DaemonSet at the same time, and kube-scheduler binds them as the nodes join. The launched nodes are those of one
// plan, and at most one more: a pod may take room on the first nodes that is planned for spread pods.
func TestMixtureTakesOnePlan(t *testing.T) {
	s := onShared(t, "mixture")
	// Before that, pods are not nominated (docs/compatibility.md).
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
	c := s.ledger.count("mixture")
	t.Logf("%d nodes were launched, %d are planned", c.claimsEver, nodes)
	if c.claimsEver > nodes+1 {
		t.Errorf("%d nodes were launched, want the %d of one plan and at most one more", c.claimsEver, nodes)
	}
}
