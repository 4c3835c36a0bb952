// Package disrupt contains the loop that removes and replaces nodes. Each tick consists of: wait, snapshot, decide,
// check and execute. The steps are numbered in Tick (disrupt.go). The Reporter (report.go, kept.go) tells what
// they decide and do.
//
//	channel, timer --> Loop.Tick
//	                     Snapshot
//	                     guard.Resume, disruption.Propose
//	                     Writer.Advance, repeatedly
//	                     orphaned taints, expected pods
//	                       | decision, step
//	                       v
//	                     Reporter: metrics, events, log
//
// The loop keeps no state that a restart would lose: commands in progress are stored on the claims. Memory only saves
// work, such as how far each command has advanced.
//
// The package makes no decisions about pods or nodes itself and writes only through its Writer. It must not depend on
// any provider, nor on the other loops.
package disrupt

import (
	"context"

	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// Writer executes the decisions of the loop. It is the executor, or a simulated cluster.
type Writer interface {
	Advance(ctx context.Context, newest func() *model.Snapshot, commands []plan.Command) []execute.Advanced
	Do(ctx context.Context, actions []plan.Action) []execute.Outcome
}

var _ Writer = (*execute.Executor)(nil)
