package main

import (
	"strings"
	"testing"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestExplainPauses checks that the explanation contains the active pauses of a pool, each with its reason and with
// the command that ends it.
func TestExplainPauses(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	annotations := map[string]string{
		karpv1.AnnotationRemovalsPaused: "fleet",
		karpv1.AnnotationBackoff:        convert.WithBackoff("", "Drifted", &model.Backoff{Reason: "Drifted", Failures: 2, At: now, Why: "claim c is gone: no capacity"}),
	}
	pool := &model.Pool{PoolSpec: &model.PoolSpec{Name: "p", Backoffs: convert.Backoffs(annotations[karpv1.AnnotationBackoff]), Holds: []model.LaunchHold{
		{Owner: "u", Name: "ReplicaSet default/web", Failures: 4, Until: now.Add(time.Minute), Why: "a: its node never registered"},
		{Owner: "v", Name: "ReplicaSet default/past", Failures: 4, Until: now.Add(-time.Minute)},
	}}}
	o := &poolOutcome{NodePool: "p", Budgets: []budgetOutcome{{}}, pausesOutcome: pausesOf(pool, annotations, now)}
	text := o.text()
	for _, want := range []string{
		"launches no node for pods of ReplicaSet default/web until 2026-01-01T12:01:00Z, after 4 launches without effect: a: its node never registered\n",
		"kubectl annotate nodepool p karpenter-go.github.io/launch-backoff-\n",
		"replacements (Drifted) failed 2 times in a row: claim c is gone: no capacity\n",
		"kubectl annotate nodepool p karpenter-go.github.io/disruption-backoff-\n",
		"involuntary removals are paused by the count of the fleet",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "past") {
		t.Errorf("a pause that is over is in\n%s", text)
	}
	node := (&nodeOutcome{Node: "a", NodePool: "p", Outcome: "Kept", RemovalsPaused: "nodepool", Disputed: "The cloud does not find machine m"}).text()
	if !strings.Contains(node, "  The cloud does not find machine m\n") || !strings.Contains(node, "kubectl describe nodepool p\n") {
		t.Errorf("neither dispute nor pause in\n%s", node)
	}
}

// TestExplainDispute checks that a recent event about a dispute is found by the name of the claim.
func TestExplainDispute(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	event := func(name, claim, at string) string {
		return "metadata: {name: " + name + ", namespace: default, creationTimestamp: \"" + at + "\"}\nreason: MachineDisputed\nmessage: about " + claim +
			"\ninvolvedObject: {kind: NodeClaim, name: " + claim + "}\n---\n"
	}
	var e explanation
	e.live.kubeconfig = served(t, map[string]string{"/api/v1/namespaces/default/events": event("e1", "new", "2026-01-01T11:50:00Z") + event("e2", "old", "2026-01-01T11:00:00Z")})
	for claim, want := range map[string]string{"new": "about new", "old": "", "other": ""} {
		if got := e.dispute(t.Context(), claim, now); got != want {
			t.Errorf("claim %s: %q, want %q", claim, got, want)
		}
	}
}
