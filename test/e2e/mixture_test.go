package e2e

import (
	"fmt"
	"testing"
)

// Pods spread over zones, pods apart by host, pods of a job and a DaemonSet come at once, and kube-scheduler binds them as the
// nodes open: what is launched is one plan, and no node beside it. A node is launched beside the plan when a pod takes room
// that was left open on the first nodes for pods which the spread forbids elsewhere, so the nodes open in an order.
func TestMixtureTakesOnePlan(t *testing.T) {
	s := onShared(t, "mixture")
	apps := map[string]int{"web": 12, "db": 3, "job": 2}
	for app, pods := range apps {
		s.scale(app, pods)
	}
	for app, pods := range apps {
		await(t, patience, fmt.Sprintf("%d pods of %s to run", pods, app), s.running(app, pods))
	}
	const nodes = 6 // of the plan that karpenter simulate shows for these pods
	if c := s.ledger.count("mixture"); c.claimsEver > nodes {
		t.Errorf("%d nodes were launched, want the %d of one plan", c.claimsEver, nodes)
	}
	s.checkClaimsUsed()
}
