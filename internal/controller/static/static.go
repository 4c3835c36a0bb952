// Package static contains the loop that keeps the number of nodes of static pools. Each tick consists of: decide on
// the newest snapshot and execute at once, report, wait.
//
//	channel, timer --> Loop.Tick --Writer.Act--> disruption.Static --> plan.Action --> claims
//	                     | outcomes
//	                     v
//	                   Reporter: events, log (report.go)
//
// It makes no decisions itself. It must not depend on any provider.
package static

import (
	"context"
	"time"

	"k8s.io/utils/clock"

	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/controller/batch"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
)

// Writer decides on the newest snapshot and executes the decision before any other decision. It is the executor.
type Writer interface {
	Act(ctx context.Context, newest func() *model.Snapshot, decide func(*model.Snapshot) []plan.Action) []execute.Outcome
}

var _ Writer = (*execute.Executor)(nil)

// Loop maintains the number of nodes of static pools. It is the third loop, for pools that do not follow pods. Its
// pass has no separate check, because a decision is so cheap that it is made where the other loops check. Set the
// exported fields before Start.
//
// A claim that has failed is not created again at once: see disruption.Creations.
type Loop struct {
	Snapshot func() *model.Snapshot
	Writer   Writer
	// On is the feature gate StaticCapacity. Without it, pools with replicas are not managed, and an event reports
	// it.
	On bool
	// Changed receives when pools or nodes changed. It may be nil: then only the timer triggers a pass.
	Changed <-chan struct{}

	Timers controller.Timers
	Clock  clock.WithTicker
	// Report tells what is decided and done.
	Report Reporter

	// made holds the recent creations.
	made disruption.Creations
	// short reports that the last pass has to be repeated soon.
	short bool
}

// Start runs the loop until the context ends.
func (s *Loop) Start(ctx context.Context) error {
	for {
		s.Tick(ctx)
		received, ok := batch.Wait(ctx, s.Clock, s.Pause(), s.Changed, nil, nil)
		if received != nil {
			ok = batch.End(ctx, s.Clock, s.Changed, nil, batch.Window{Idle: s.Timers.BatchIdle, Longest: s.Timers.BatchIdle})
		}
		if !ok {
			return nil
		}
	}
}

// Pause returns how long the loop waits for a change before its next pass.
func (s *Loop) Pause() time.Duration {
	if s.short {
		return min(s.Timers.StaticRetry, s.Timers.StaticResync)
	}
	return s.Timers.StaticResync
}

// Tick runs one pass.
func (s *Loop) Tick(ctx context.Context) {
	if !s.On {
		s.Report.ignored(s.Snapshot())
		return
	}
	// 1. Decide on the newest snapshot, and execute.
	var snap *model.Snapshot
	var decided disruption.Standing
	outcomes := s.Writer.Act(ctx, s.Snapshot, func(newest *model.Snapshot) []plan.Action {
		snap, decided = newest, disruption.Static(newest)
		s.short = len(decided.Short) > 0
		missing := len(decided.Create)
		pauses := s.made.Admit(newest, &decided)
		s.short = s.short || len(decided.Create) < missing
		return append(decided.Actions(), pauses...)
	})
	// 2. Decide when to continue.
	s.short = s.short || len(execute.Failures(outcomes)) > 0
	// 3. Tell.
	s.Report.executed(outcomes)
	s.Report.short(snap, decided.Short)
}
