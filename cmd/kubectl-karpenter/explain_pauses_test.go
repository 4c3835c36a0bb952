package main

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/offline"
)

// TestExplainDispute checks that a recent event about a dispute is found by the name of the claim.
func TestExplainDispute(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(name, claim, at string) string {
		return "metadata: {name: " + name + ", namespace: default, creationTimestamp: \"" + at + "\"}\nreason: MachineDisputed\nmessage: about " + claim +
			"\ninvolvedObject: {kind: NodeClaim, name: " + claim + "}\n---\n"
	}
	var live offline.Cluster
	live.Kubeconfig = served(t, map[string]string{"/api/v1/namespaces/default/events": event("e1", "new", "2026-01-01T11:50:00Z") + event("e2", "old", "2026-01-01T11:00:00Z")})
	for claim, want := range map[string]string{"new": "about new", "old": "", "other": ""} {
		if got := live.Dispute(t.Context(), claim, now); got != want {
			t.Errorf("claim %s: %q, want %q", claim, got, want)
		}
	}
}
