package state

import (
	"reflect"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	"github.com/karpenter-go/karpenter/internal/cluster/convert"
)

// applyQuota updates the quota in the builder. An invalid quota has no effect; one that was valid before remains in effect as
// it was, because a mistake in a selector must not lift a limit.
func (s *State) applyQuota(name string, e *entry) {
	object, _ := e.object.(*autoscalingv1beta1.CapacityQuota)
	before, known := s.quotas[name]
	switch {
	case object != nil:
		spec, err := convert.Quota(object, s.vocabulary)
		if err != nil {
			break
		}
		if known && reflect.DeepEqual(before, spec) {
			return
		}
		s.quotas[name] = spec
		s.builder.UpsertQuota(spec)
	case known:
		delete(s.quotas, name)
		s.builder.DeleteQuota(name)
	}
	s.notify(PoolsChanged) // the conditions of an invalid quota are written then
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
