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

// Actor takes a decision on the newest snapshot and carries it out, before anybody else decides: the executor.
type Actor interface {
	Act(ctx context.Context, newest func() *model.Snapshot, decide func(*model.Snapshot) []plan.Action) []execute.Outcome
}

var _ Actor = (*execute.Executor)(nil)

// Static keeps the number of nodes of static pools: the third loop, for pools that do not follow pods. Its pass has no
// separate check, because deciding is so cheap that it is done where others check. Set the exported fields before Start.
//
// A claim that dies young (its launch was refused, say) leaves its name behind, which the next claim of the pool would
// have. It is not made again for Timers.StaticRetry, so that a pool whose nodes cannot be had is not hammered.
type Static struct {
	Snapshot func() *model.Snapshot
	Actor    Actor
	// On is the feature gate StaticCapacity. Without it pools with replicas are left alone, and told so.
	On bool
	// Why says in words why a pool does not get its nodes.
	Why func(*model.Snapshot, plan.Verdict) string
	// Changed rings when pools or nodes changed; may be nil, then the timer alone decides.
	Changed <-chan struct{}

	Timers   controller.Timers
	Clock    clock.WithTicker
	Recorder *telemetry.Recorder
	Log      logr.Logger

	// made is when claims were last created, by name.
	made map[string]time.Time
	// short: the last pass left something to be tried again.
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

// Tick is one pass.
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

// spared leaves out the claims that were made a moment ago and are gone again, and notes the others as made now.
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

// ignore tells of static pools while the feature gate is off.
func (s *Static) ignore() {
	for _, pool := range s.Snapshot().Pools {
		if pool.Static && !(pool.Blocked != nil && pool.Blocked.Silent) {
			s.Recorder.Emit(telemetry.StaticPoolIgnored(poolReference(pool)))
		}
	}
}

// poolReference is as much of a pool as an event about it needs.
func poolReference(pool *model.Pool) *karpv1.NodePool {
	return &karpv1.NodePool{
		TypeMeta:   metav1.TypeMeta{APIVersion: karpv1.GroupVersion.String(), Kind: "NodePool"},
		ObjectMeta: metav1.ObjectMeta{Name: pool.Name, UID: types.UID(pool.UID)},
	}
}
