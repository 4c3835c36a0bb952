package disruption_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// TestRenewalKeepsOffNodesThatAreAwaited covers a node that was launched for the pods of another node, some of which
// have been evicted and not recreated yet. It is not available for the pods of a third node.
func TestRenewalKeepsOffNodesThatAreAwaited(t *testing.T) {
	command := plan.NewCommand(noon, plan.Drifted, "", []plan.Candidate{{Claim: "claim-old", ClaimUID: "uid-claim-old", Node: "old", NodeUID: "uid-old", Pool: "p"}})
	command.Phase, command.Replacements = plan.Draining, []plan.NewClaim{{Name: "claim-new", Pool: "p", PoolUID: "uid-p"}}
	for _, c := range []struct {
		name  string
		there bool
		want  string
	}{
		{"while the old node is there", true, "replace"},
		{"when it is gone", false, "delete"},
	} {
		b := model.NewBuilder()
		b.UpsertPool(pool(t, "p", map[string]string{"after": "0s", "budget": ",100%"}))
		b.UpsertNode(node(t, "new", map[string]string{"pool": "p"}))
		drifted := node(t, "drifted", map[string]string{"pool": "p"})
		drifted.Drifted, drifted.DriftedSince = "NodePoolDrifted", noon
		b.UpsertNode(drifted)
		b.UpsertPod(pod("pod", "a", map[string]string{"node": "drifted"}))
		b.UpsertPod(pod("pod", "b", map[string]string{"node": "new"})) // otherwise it would be removed
		if c.there {
			old := node(t, "old", map[string]string{"pool": "p", "deleting": ""})
			old.Command = command.Encode()
			b.UpsertNode(old)
		}
		snap := b.Snapshot(noon)
		proposal := disruption.Propose(snap, disruption.Options{})
		got := ""
		for i := range proposal.Commands {
			if proposal.Commands[i].Candidates[0].Node == "drifted" {
				got += proposal.Commands[i].Decision()
			}
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q\n%s", c.name, got, c.want, say(proposal))
		}
	}
}
