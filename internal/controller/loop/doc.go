// Package loop contains the two main loops, and a small third one for static pools (static.go). Each tick consists
// of: wait, snapshot, decide, check and execute, record.
//
//	channel: a pod is pending --batch--> Provision.Tick             channel, timer --> Disrupt.Tick
//	                                       Snapshot                                      Snapshot
//	                                       plan.Ahead, Schedule (placement)              plan.Resume, disruption.Propose
//	                                       Writer.Provision                              Writer.Advance, repeatedly
//	                                       nominations, events                           orphaned taints, events
//	                                       History                                       History
//
// The loops keep no state that a restart would lose: plans can be computed again, and commands in progress are stored
// on the claims. Memory only saves work, such as which pods were seen before and how far each command has advanced.
//
// Nominations. Pods that are planned onto a managed node get its name in status.nominatedNodeName, so that
// kube-scheduler binds them there. For a node that is being launched, this happens in NominateFor, which the
// nodeclaim controller calls after the node has registered and before it removes the taint that keeps pods off the
// node. The next tick clears this controller's nominations that no longer match the plan.
//
// The package makes no decisions about pods or nodes itself and writes only through its Writer. It must not depend on
// any provider.
package loop

import (
	"context"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// Writer executes the decisions of the loops. It is the executor, or a simulated cluster.
type Writer interface {
	Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) execute.Provisioned
	Advance(ctx context.Context, newest func() *model.Snapshot, commands []plan.Command) []execute.Advanced
	Do(ctx context.Context, actions []plan.Action) []execute.Outcome
}

var _ Writer = (*execute.Executor)(nil)
