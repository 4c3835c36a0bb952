package disruption_test

import (
	"testing"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// A node that was bought for the very pods that move has the name that its replacement would have, here that of the other
// node, which leaves, too.
func TestReplacementsHaveNamesOfTheirOwn(t *testing.T) {
	b := model.NewBuilder()
	b.UpsertPool(pool(t, "p", map[string]string{"after": "0s", "budget": ",100%"}))
	pods := []model.PodSpec{pod("pod", "a", map[string]string{"node": "n1"}), pod("pod", "b", map[string]string{"node": "n2"})}
	for i, name := range []string{"n1", "n2"} {
		n := node(t, name, map[string]string{"pool": "p"})
		n.Claim = plan.ClaimName("p", "uid-p", []*model.Pod{{UID: pods[1-i].UID}}, func(string) bool { return false })
		n.Drifted, n.DriftedSince = "NodePoolDrifted", noon
		b.UpsertNode(n)
	}
	for _, p := range pods {
		b.UpsertPod(p)
	}
	snap := b.Snapshot(noon)
	proposal := disruption.Propose(snap, disruption.Options{})
	replaced := 0
	for _, c := range proposal.Commands {
		for i := range c.Replacements {
			replaced++
			if n := snap.Claim(c.Replacements[i].Name); n != nil {
				t.Errorf("node %s is to be replaced by %s, which is there", c.Candidates[0].Node, n.Name)
			}
		}
	}
	if replaced != 2 {
		t.Errorf("%d nodes are replaced, want 2: %s", replaced, say(proposal))
	}
}
