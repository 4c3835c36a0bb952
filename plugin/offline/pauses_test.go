package offline

import (
	"strings"
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
)

// TestExplainPauses checks that the explanation contains the active pauses of a pool, each with its reason and with
// the command that ends it.
func TestExplainPauses(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	pool := &model.Pool{PoolSpec: &model.PoolSpec{Name: "p", Pauses: pause.List{
		{Name: "launches for ReplicaSet default/web", Failures: 4, Until: now.Add(time.Minute), Why: "a: its node never registered"},
		{Name: "launches for ReplicaSet default/past", Failures: 4, Until: now.Add(-time.Minute)},
	}}}
	o := &PoolOutcome{NodePool: "p", Budgets: []BudgetOutcome{{}}, pausesOutcome: pausesOf(pool, now)}
	o.RemovalsPaused = "fleet"
	text := o.Text()
	for _, want := range []string{
		"launches for ReplicaSet default/web are paused until 2026-01-01T12:01:00Z, after 4 failures in a row: a: its node never registered\n",
		"kubectl annotate nodepool p karpenter-go.github.io/pauses-\n",
		"involuntary removals are paused by the limit of the fleet",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "past") {
		t.Errorf("a pause that is over is in\n%s", text)
	}
	removal := pause.Pause{Key: pause.Key{Reason: pause.Removal, Scope: "p"}, Failures: 4, Until: now.Add(time.Minute)}
	if got := pausesOf(&model.Pool{PoolSpec: &model.PoolSpec{Name: "p", Pauses: pause.List{removal}}}, now); len(got.Pauses) > 0 {
		t.Errorf("the pause of removals is among those to be tried again at once: %v", got.Pauses)
	}
	node := (&NodeOutcome{Node: "a", NodePool: "p", Outcome: "Kept", RemovalsPaused: "nodepool", Disputed: "The cloud does not find machine m"}).Text()
	if !strings.Contains(node, "  The cloud does not find machine m\n") || !strings.Contains(node, "kubectl describe nodepool p\n") {
		t.Errorf("neither dispute nor pause in\n%s", node)
	}
}
