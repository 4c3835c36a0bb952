package disrupt

import (
	"fmt"
	"strings"
	"time"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
	"github.com/karpenter-go/karpenter/internal/engine/plan"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// BackingOff returns the reasons for which nodes of the pool are temporarily not replaced, because replacements
// failed, or "" if there are none. The text stays the same until the next failure or success.
func BackingOff(pool *karpv1.NodePool, now time.Time) string {
	spec := &model.PoolSpec{Name: pool.Name, Backoffs: convert.Backoffs(pool.Annotations[karpv1.AnnotationBackoff])}
	var all []string
	for _, b := range spec.Backoffs {
		if _, until, failing := plan.BackoffOf(spec, plan.Reason(b.Reason), now); failing {
			text := fmt.Sprintf("%s: replacements failed %s; after %s one replacement at a time is tried", b.Reason, telemetry.InARow(b.Failures), until.UTC().Format(time.RFC3339))
			if b.Why != "" {
				text += " (the last: " + b.Why + ")"
			}
			all = append(all, text)
		}
	}
	if len(all) == 0 {
		return ""
	}
	return strings.Join(all, "; ") + ". Until one is initialized, the other nodes are kept and accept pods"
}
