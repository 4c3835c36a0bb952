package loop

import (
	"context"
	"errors"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Actor decides on the newest snapshot and executes the decision before any other decision. It is the executor.
type Actor interface {
	Act(ctx context.Context, newest func() *model.Snapshot, decide func(*model.Snapshot) []plan.Action) []execute.Outcome
}

var _ Actor = (*execute.Executor)(nil)

// Static maintains the number of nodes of static pools. It is the third loop, for pools that do not follow pods. Its
// pass has no separate check, because a decision is so cheap that it is made where the other loops check. Set the
// exported fields before Start.
//
// A claim that fails early (its launch was refused, for example) frees its name, and the next claim of the pool would
// get the same name. It is not created again for Timers.StaticRetry, so that a pool without available nodes does not
// cause constant launches.
type Static struct {
	Snapshot func() *model.Snapshot
	Actor    Actor
	// On is the feature gate StaticCapacity. Without it, pools with replicas are not managed, and an event reports
	// it.
	On bool
	// Why describes in words why a pool does not get its nodes.
	Why func(*model.Snapshot, plan.Verdict) string
	// Changed receives when pools or nodes changed. It may be nil: then only the timer triggers a pass.
	Changed <-chan struct{}

	Timers   controller.Timers
	Clock    clock.WithTicker
	Recorder *telemetry.Recorder
	Log      logr.Logger

	// made records when claims were last created, by name.
	made map[string]time.Time
	// short reports that the last pass has to be repeated soon.
	short bool
}

// Start runs the loop until the context ends.
func (s *Static) Start(ctx context.Context) error {
	for {
		s.Tick(ctx)
		rang, ok := wait(ctx, s.Clock, s.pause(), s.Changed, nil)
		if rang != nil {
			ok = batch(ctx, s.Clock, s.Changed, window{idle: s.Timers.BatchIdle, longest: s.Timers.BatchIdle})
		}
		if !ok {
			return nil
		}
	}
}

func (s *Static) pause() time.Duration {
	if s.short {
		return min(s.Timers.StaticRetry, s.Timers.StaticResync)
	}
	return s.Timers.StaticResync
}

// Tick runs one pass.
func (s *Static) Tick(ctx context.Context) {
	if !s.On {
		s.ignore()
		return
	}
	var snap *model.Snapshot
	var decided disruption.Standing
	outcomes := s.Actor.Act(ctx, s.Snapshot, func(newest *model.Snapshot) []plan.Action {
		snap, decided = newest, disruption.Static(newest)
		s.short = len(decided.Short) > 0
		decided.Create = s.spared(decided.Create)
		return decided.Actions()
	})
	s.report(outcomes)
	for _, short := range decided.Short {
		s.Recorder.Emit(telemetry.StaticPoolShort(poolReference(snap.Pool(short.Pool)), short.Missing, s.Why(snap, short.Verdict)))
	}
}

// spared returns the claims without those that were created recently and are gone again, and records the returned
// ones as created now.
func (s *Static) spared(claims []plan.NewClaim) []plan.NewClaim {
	now := s.Clock.Now()
	for name, at := range s.made {
		if now.Sub(at) >= s.Timers.StaticRetry {
			delete(s.made, name)
		}
	}
	if s.made == nil {
		s.made = map[string]time.Time{}
	}
	var create []plan.NewClaim
	for _, c := range claims {
		if _, just := s.made[c.Name]; just {
			s.short = true
			continue
		}
		s.made[c.Name] = now
		create = append(create, c)
	}
	return create
}

func (s *Static) report(outcomes []execute.Outcome) {
	for _, o := range outcomes {
		var notNow *execute.NotNowError
		switch {
		case o.Err == nil:
			s.Log.Info("keeping the number of nodes of a static pool", "action", o.Action.String())
		case errors.As(o.Err, &notNow):
			s.short = true
			s.Log.Info("a static pool has to wait", "reason", o.Err.Error())
		default:
			s.short = true
			s.Log.Error(o.Err, "keeping the number of nodes of a static pool")
		}
	}
}

// ignore reports static pools while the feature gate is off.
func (s *Static) ignore() {
	for _, pool := range s.Snapshot().Pools {
		if pool.Static && !(pool.Blocked != nil && pool.Blocked.Silent) {
			s.Recorder.Emit(telemetry.StaticPoolIgnored(poolReference(pool)))
		}
	}
}

// poolReference returns the fields of a pool that an event about it needs.
func poolReference(pool *model.Pool) *karpv1.NodePool {
	return &karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: pool.Name, UID: types.UID(pool.UID)},
	}
}
