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
