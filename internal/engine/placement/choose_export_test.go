package placement

import (
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
)

// ScheduleScanning is Schedule with the slow choice of domains: every pod examines all of them.
func ScheduleScanning(snap *model.Snapshot, opts Options) *plan.Provision {
	opts.Provisioning = true
	s := newScheduler(snap, &opts, nil)
	s.assigner.admission.scan = true
	return s.schedule()
}
