package controller

import (
	"errors"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// NoteTerminationFailed sets a condition on the claim, in memory, that the provider refuses to terminate the machine,
// and returns the reason. The condition keeps the first message per reason: the messages of a cloud differ in their
// request IDs, and each write starts another reconcile. A termination that was accepted before stays accepted.
func NoteTerminationFailed(claim *karpv1.NodeClaim, err error) string {
	reason := karpv1.ReasonTerminationFailed
	if refused := (*cloud.TerminateError)(nil); errors.As(err, &refused) {
		reason = refused.Reason
	}
	conditions := claim.StatusConditions()
	c := conditions.Get(karpv1.ConditionInstanceTerminating)
	if !c.IsTrue() && (c == nil || c.Reason != reason) {
		conditions.SetUnknownWithReason(karpv1.ConditionInstanceTerminating, reason, telemetry.Truncate(err.Error()))
	}
	return reason
}

// TerminationWaits reports whether the provider refuses a termination for a time, such as during a zonal shift, which is
// no failure: it is neither logged as an error nor an event, and is asked for again after Timers.RetryMax.
func TerminationWaits(err error) bool {
	refused := (*cloud.TerminateError)(nil)
	return errors.As(err, &refused) && refused.Reason == cloud.ReasonZoneShifted
}
