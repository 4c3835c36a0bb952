package static

import (
	"errors"

	"github.com/go-logr/logr"

	"github.com/karpenter-go/karpenter/internal/engine/disruption"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/execute"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Reporter tells what the loop decides and does, in the log and in events on pools. It decides nothing. Set the
// exported fields before the loop starts.
type Reporter struct {
	// Why describes in words why a pool does not get its nodes.
	Why      func(*model.Snapshot, plan.Verdict) string
	Recorder *telemetry.Recorder
	Log      logr.Logger
}

// executed logs what was done.
func (r *Reporter) executed(outcomes []execute.Outcome) {
	execute.LogCreated(r.Log, outcomes, execute.PodsOf)
	for _, o := range outcomes {
		var notNow *execute.NotNowError
		switch a := o.Action.(type) {
		case plan.CreateClaim:
			if o.Err == nil {
				continue
			}
		case plan.DeleteClaim:
			if o.Err == nil {
				r.Log.Info("deleted a claim that its static pool does not need", "nodeClaim", a.Claim, "reason", telemetry.DeletedSurplus)
				continue
			}
		}
		switch {
		case o.Err == nil:
			r.Log.Info("keeping the number of nodes of a static pool", "action", o.Action.String())
		case errors.As(o.Err, &notNow):
			r.Log.Info("launches of a static pool are delayed", "reason", o.Err.Error())
		default:
			r.Log.Error(o.Err, "keeping the number of nodes of a static pool")
		}
	}
}

// short reports pools that do not get all their nodes.
func (r *Reporter) short(snap *model.Snapshot, list []disruption.Short) {
	for _, s := range list {
		pool := snap.Pool(s.Pool)
		r.Recorder.Emit(telemetry.StaticPoolShort(telemetry.PoolObject(pool.Name, pool.UID), s.Missing, r.Why(snap, s.Verdict)))
	}
}

// ignored reports static pools while the feature gate is off.
func (r *Reporter) ignored(snap *model.Snapshot) {
	for _, pool := range snap.Pools {
		if pool.Static && !(pool.Blocked != nil && pool.Blocked.Silent) {
			r.Recorder.Emit(telemetry.StaticPoolIgnored(telemetry.PoolObject(pool.Name, pool.UID)))
		}
	}
}
