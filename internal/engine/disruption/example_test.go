package disruption_test

import (
	"fmt"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// A node without pods is removed after consolidateAfter. The node with a pod is kept: its NodePool has the policy
// WhenEmpty.
func ExamplePropose() {
	cluster := plantest.New(nil, 2)
	cluster.Bind("web", "n1")

	proposal := disruption.Propose(cluster.Snapshot(), disruption.Options{})

	for _, command := range proposal.Commands {
		fmt.Println(command.Reason, command.Candidates[0].Node)
	}
	// Output:
	// Empty n0
}
