package state

import (
	"reflect"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// quotas holds the valid CapacityQuotas.
type quotas struct {
	*base
	specs map[string]model.QuotaSpec
}

// apply updates the quota in the builder. An invalid quota has no effect; one that was valid before remains in effect as
// it was, because a mistake in a selector must not lift a limit.
func (q *quotas) apply(name string, e *entry) {
	object, _ := e.object.(*autoscalingv1beta1.CapacityQuota)
	before, known := q.specs[name]
	switch {
	case object != nil:
		spec, err := convert.Quota(object, q.vocabulary)
		if err != nil {
			break
		}
		if known && reflect.DeepEqual(before, spec) {
			return
		}
		q.specs[name] = spec
		q.builder.UpsertQuota(spec)
	case known:
		delete(q.specs, name)
		q.builder.DeleteQuota(name)
	}
	q.notify(PoolsChanged) // the conditions of an invalid quota are written then
}

// QuotaProblem returns what makes a CapacityQuota invalid, nil for none.
func (v *View) QuotaProblem(name string) error {
	quota := read[*autoscalingv1beta1.CapacityQuota](v, named(CapacityQuotas, name))
	if quota == nil {
		return nil
	}
	_, err := convert.Quota(quota, v.vocabulary)
	return err
}
