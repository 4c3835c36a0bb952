// Package loop holds the two loops, and a small third for static pools (static.go). Each tick reads: wait, snapshot,
// decide, check and do, record; nothing else.
//
//	bell: a pod is pending --batch--> Provision.Tick                bell, timer --> Disrupt.Tick
//	                                    Snapshot                                     Snapshot
//	                                    plan.Ahead, Schedule (placement)             plan.Resume, disruption.Propose
//	                                    Writer.Provision                             Writer.Advance ... until nothing is left to do
//	                                    nominations, events                          orphaned taints, events
//	                                    History                                      History
//
// The loops keep nothing that a restart would miss: what is planned can be planned again, what is under way stands on
// the claims. Memory only saves work: which pods were seen before, which command has come how far.
//
// Nomination. Pods that are planned onto a node of ours get its name in status.nominatedNodeName, so that
// kube-scheduler puts them where they were planned. For a node that is still to come this happens in NominateFor, which
// the nodeclaim controller calls when the node has registered and before the taint that keeps pods off is removed.
// Nominations of ours that no longer agree with the plan are taken back in the next tick.
//
// The package decides nothing about pods or nodes itself and writes nothing but through its Writer. It must not know
// any provider.
package loop

import (
	"context"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// Writer carries out what the loops decide: the executor, or a simulated world.
type Writer interface {
	Provision(ctx context.Context, newest func() *model.Snapshot, p *plan.Provision) execute.Provisioned
	Advance(ctx context.Context, newest func() *model.Snapshot, commands []plan.Command) []execute.Advanced
	Do(ctx context.Context, actions []plan.Action) []execute.Outcome
}

var _ Writer = (*execute.Executor)(nil)
