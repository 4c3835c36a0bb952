// Package provision contains the loop that launches nodes for pending pods. Each tick consists of: wait, snapshot,
// decide, check and execute. The steps are numbered in Tick (provision.go). The Reporter (report.go) reports what
// they decide and do.
//
//	channel: a pod is pending --batch--> Loop.Tick
//	                                       Snapshot
//	                                       reserve.Ahead, Schedule (placement)
//	                                       futile.Launches takes out claims that have to wait
//	                                       Writer.Provision
//	                                       nominations
//	                                         | pass: input, decisions, results
//	                                         v
//	                                       Reporter: metrics, events, log, room of CapacityBuffers
//
// Virtual pods are part of the plan. The claims for them are created after those for pods, and the room of CapacityBuffers
// is reported after that. Virtual pods lose their room when a pod is bound, so the loop also waits for that while there are
// some. At rest, when all of them have room and nothing changes, it does not plan.
//
// The loop keeps no state that a restart would lose: plans can be computed again. Memory only saves work, such as
// which pods were seen before. The last plan is also where the node of a virtual pod is known: no API object has it.
//
// Nominations. Pods that are planned onto a managed node get its name in status.nominatedNodeName, so that
// kube-scheduler binds them there. For a node that is being launched, this happens in NominateFor, which the
// nodeclaim controller calls after the node has registered and before it removes the taint that keeps pods off the
// node. The next tick clears this controller's nominations that no longer match the plan.
//
// The package makes no decisions about pods or nodes itself and writes only through its Writer. It must not depend on
// any provider, nor on the other loops.
package provision

import (
	"context"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// Writer executes the decisions of the loop. It is the executor, or a simulated cluster.
type Writer interface {
	Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) execute.Provisioned
	Do(ctx context.Context, actions []plan.Action) []execute.Outcome
}

var _ Writer = (*execute.Executor)(nil)
