package guard_test

import (
	"fmt"

	"github.com/karpenter-go/karpenter/internal/engine/guard"
	"github.com/karpenter-go/karpenter/internal/testing/plantest"
)

// The first step of a command stores it on the claim. Later steps, each on a newer snapshot, taint the node, look at its
// pods again, and delete the claim.
func ExampleGuard_Step() {
	cluster := plantest.New(nil, 1)
	command := cluster.Command("c0") // removes the empty node n0

	command, actions := guard.New(cluster.Snapshot()).Step(command)

	fmt.Println(command.Phase, len(actions))
	fmt.Println(actions[0].String()[:len("write command")])
	// Output:
	// proposed 1
	// write command
}
