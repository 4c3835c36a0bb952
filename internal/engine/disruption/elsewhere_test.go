package disruption_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/placement"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestRenewalOfPodsOfAnotherController checks that a node is replaced whose pods would be another controller's if they
// were pending: the pool that comes first for them is its.
func TestRenewalOfPodsOfAnotherController(t *testing.T) {
	of := func(p model.PodSpec) *model.Snapshot {
		b := model.NewBuilder()
		b.UpsertPool(pool(t, "p", map[string]string{"after": ",0s", "budget": ",100%"}))
		other := pool(t, "other", map[string]string{"after": ",0s", "budget": ",100%"})
		other.Weight, other.Elsewhere, other.Blocked = 10, true, &model.Rejection{Silent: true, Reason: "is another controller's"}
		b.UpsertPool(other)
		drifted := node(t, "a", map[string]string{"pool": ",p", "type": ",small"})
		drifted.Drifted, drifted.DriftedSince = "NodePoolDrifted", noon
		b.UpsertNode(drifted)
		b.UpsertPod(p)
		return b.Snapshot(noon)
	}
	pending := placement.Schedule(of(pod("pending", "x", nil)), placement.Options{})
	if len(pending.Claims)+len(pending.Placed)+len(pending.Refused) > 0 {
		t.Errorf("the pending pod has a result: %+v; otherwise this test is void", pending)
	}
	proposal := disruption.Propose(of(pod("pod", "x", map[string]string{"node": ",a"})), disruption.Options{})
	if len(proposal.Commands) != 1 || proposal.Commands[0].Decision() != "replace" {
		t.Fatalf("%d commands, kept %+v; want one that replaces the node", len(proposal.Commands), proposal.Kept)
	}
	if c := proposal.Commands[0]; c.Reason != plan.Drifted || len(c.Replacements) != 1 || c.Replacements[0].Pool != "p" {
		t.Errorf("command %+v, want a replacement of pool p because of drift", c)
	}
}
