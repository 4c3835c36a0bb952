package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// zones counts the pods of a Deployment by the zone of their node.
func (s *stage) zones(app string) map[string]int {
	s.t.Helper()
	out := map[string]int{}
	for _, pod := range s.pods(app) {
		out[s.node(pod).Labels[corev1.LabelTopologyZone]]++
	}
	return out
}

// TestZoneSpread checks that thirty pods with a spread constraint over zones are spread in one round. The zone of a
// single pod is not tested: kube-scheduler uses its own order, and a pod whose planned zone is one ahead at its turn
// swaps places with another.
func TestZoneSpread(t *testing.T) {
	s := onShared(t, "zones")
	s.scale("app", 30)
	await(t, patience, "30 pods to run", s.running("app", 30))
	zones := s.zones("app")
	least, most := 30, 0
	for _, n := range zones {
		least, most = min(least, n), max(most, n)
	}
	if len(zones) < 2 || most-least > 1 {
		t.Errorf("pods by zone: %v, want at most one more in one than in another", zones)
	}
	s.checkClaimsUsed()
}

// TestLateZone checks that kube-scheduler, which spreads pods over the zones that have nodes, does not leave a zone
// empty whose node is late while others have room. Pods that set the number of zones (minDomains) wait for it, and no
// more nodes are launched for them.
func TestLateZone(t *testing.T) {
	s := onShared(t, "late")
	s.scale("app", 6)
	await(t, patience, "the pods to run", s.running("app", 6))
	zones := s.zones("app")
	for _, zone := range []string{"test-zone-a", "test-zone-b", "test-zone-c"} {
		if zones[zone] != 2 {
			t.Errorf("%d pods are in %s, want 2: %v", zones[zone], zone, zones)
		}
	}
	if c := s.ledger.count("late"); c.claimsEver != 3 {
		t.Errorf("%d nodes were launched, want one in each zone", c.claimsEver)
	}
}

// TestHostnameAntiAffinity checks that pods with anti-affinity to each other get a node each, and that no surplus
// node is launched.
func TestHostnameAntiAffinity(t *testing.T) {
	s := onShared(t, "apart")
	const pods = 6
	s.scale("app", pods)
	await(t, patience, "the pods to run", s.running("app", pods))
	on := map[string]bool{}
	for _, pod := range s.pods("app") {
		on[pod.Spec.NodeName] = true
	}
	if c := s.ledger.count("apart"); len(on) != pods || c.claimsEver != pods {
		t.Errorf("%d pods are on %d nodes of %d claims, want a node each", pods, len(on), c.claimsEver)
	}
}

// TestRequiredAffinity checks that pods are placed in the zone of other pods, also if both are created at once.
func TestRequiredAffinity(t *testing.T) {
	s := onShared(t, "near")
	s.scale("follower", 4)
	s.scale("leader", 1)
	await(t, patience, "the leader to run", s.running("leader", 1))
	await(t, patience, "the followers to run", s.running("follower", 4))
	if zones := s.zones("follower"); zones["test-zone-c"] != 4 {
		t.Errorf("followers by zone: %v, want all in the leader's test-zone-c", zones)
	}
	s.checkClaimsUsed()
}
