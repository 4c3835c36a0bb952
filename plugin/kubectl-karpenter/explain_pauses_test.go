package main

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/karpenter-go/karpenter/plugin/offline"
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

// TestExplainRefusals checks that the newest event of a pod is returned while it is current, if it is the controller's
// and says why the pod is unschedulable.
func TestExplainRefusals(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	n := 0
	event := func(pod, at, reason, message string) string {
		n++
		return fmt.Sprintf("metadata: {name: e%d, namespace: app, creationTimestamp: \"2026-01-01T%sZ\"}\nreason: %s\nmessage: %q\n"+
			"involvedObject: {kind: Pod, namespace: app, name: %s}\n---\n", n, at, reason, message, pod)
	}
	var live offline.Cluster
	live.Kubeconfig = served(t, map[string]string{"/api/v1/namespaces/app/events": event("short", "11:58:00", "FailedScheduling",
		"Failed to schedule pod, no capacity") +
		event("short", "11:57:00", "Nominated", "Pod should schedule on: nodeclaim/a") +
		event("short", "11:59:00", "FailedScheduling", "0/3 nodes are available") +
		event("launched", "11:58:00", "FailedScheduling", "Failed to schedule pod, no capacity") +
		event("launched", "11:59:00", "Nominated", "Pod should schedule on: nodeclaim/a") +
		event("old", "11:50:00", "FailedScheduling", "Failed to schedule pod, no capacity")})
	want := map[string]string{"app/short": "no capacity, at 2026-01-01T11:58:00Z"}
	if diff := cmp.Diff(want, live.Refusals(t.Context(), "app", "", now)); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}
