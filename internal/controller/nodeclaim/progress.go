package nodeclaim

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Each step of a claim's lifecycle is reported by one line of the log at level info and one event on the claim. Both
// follow the write of the condition for the step, so that each step is reported once.
//
//	launched nodeclaim --> registered nodeclaim --> initialized nodeclaim --> (disrupting nodes) --> deleted nodeclaim
//
// The lines of the log have the keys that docs/log.md lists; plugin/history reads them.

// manuallyCreated is the reason of a claim that the controller did not create.
const manuallyCreated = "manual"

// reportProgress reports the steps that the written status shows and the one before did not.
func (r *Reconciler) reportProgress(ctx context.Context, claim *karpv1.NodeClaim, before *karpv1.NodeClaimStatus) {
	past := &karpv1.NodeClaim{Status: *before.DeepCopy()}
	news := func(condition string) bool {
		return claim.Condition(condition).IsTrue() && !past.Condition(condition).IsTrue()
	}
	log, age := logOf(ctx, claim), r.Clock.Now().Sub(claim.CreationTimestamp.Time)
	if news(karpv1.ConditionLaunched) {
		r.trace(claim, "launch", "")
		i, reason, pods := r.instanceOf(claim), cmp.Or(claim.Annotations[karpv1.AnnotationBoughtBy], manuallyCreated),
			len(strings.Fields(claim.Annotations[karpv1.AnnotationPods]))
		log.Info("launched nodeclaim", "instanceType", i.Type, "zone", i.Zone, "capacityType", i.CapacityType,
			"instanceID", i.ID, "providerID", claim.Status.ProviderID, "pricePerHour", i.Price, "reason", reason, "pods", pods)
		r.Recorder.Emit(telemetry.Launched(claim, i, reason, pods))
	}
	if news(karpv1.ConditionRegistered) {
		r.trace(claim, "register", karpv1.ConditionLaunched)
		log.Info("registered nodeclaim", "node", claim.Status.NodeName, "providerID", claim.Status.ProviderID, "after", seconds(age))
		r.Recorder.Emit(telemetry.Registered(claim, age))
	}
	if news(karpv1.ConditionInitialized) {
		r.trace(claim, "initialize", karpv1.ConditionRegistered)
		log.Info("initialized nodeclaim", "node", claim.Status.NodeName, "providerID", claim.Status.ProviderID, "after", seconds(age))
		r.Recorder.Emit(telemetry.Initialized(claim, age))
	}
}

// trace sends the span of a step that has ended just now. before is the condition for the step before, "" for none.
func (r *Reconciler) trace(claim *karpv1.NodeClaim, step, before string) {
	since := claim.CreationTimestamp.Time
	if c := claim.Condition(before); before != "" && c.IsTrue() {
		since = c.LastTransitionTime.Time
	}
	r.Metrics.Traces.Step(telemetry.Step{Claim: claim.Name, Pool: claim.Labels[karpv1.LabelNodePool], Node: claim.Status.NodeName, Name: step,
		Before: since, End: r.Clock.Now(), Last: step == "initialize"})
}

// logOf returns the log for lines about the claim.
func logOf(ctx context.Context, claim *karpv1.NodeClaim) logr.Logger {
	return ctrl.LoggerFrom(ctx).WithValues("nodeClaim", claim.Name, "nodePool", claim.Labels[karpv1.LabelNodePool])
}

// reportDeleted reports that the claim is gone.
func (r *Reconciler) reportDeleted(ctx context.Context, claim *karpv1.NodeClaim) {
	i, now, reason := r.instanceOf(claim), r.Clock.Now(), "deleted"
	if c := claim.Condition(karpv1.ConditionDisruptionReason); c.IsTrue() {
		reason = strings.ToLower(c.Reason)
	}
	elapsed := now.Sub(claim.DeletionTimestamp.Time)
	logOf(ctx, claim).Info("deleted nodeclaim", "node", claim.Status.NodeName, "instanceType", i.Type, "zone", i.Zone, "capacityType",
		i.CapacityType, "instanceID", i.ID,
		"providerID", claim.Status.ProviderID, "pricePerHour", i.Price, "reason", reason, "after", seconds(elapsed), "lifetime",
		seconds(now.Sub(claim.CreationTimestamp.Time)))
	r.Metrics.Traces.Gone(claim.Name, now, reason)
	r.Recorder.Emit(telemetry.Terminated(claim, i, elapsed))
}

// instanceOf returns the claim's description of its machine.
func (r *Reconciler) instanceOf(claim *karpv1.NodeClaim) telemetry.Instance {
	i := telemetry.Instance{ID: telemetry.InstanceID(claim.Status.ProviderID), Type: claim.Labels[corev1.LabelInstanceTypeStable],
		Zone: claim.Labels[corev1.LabelTopologyZone], CapacityType: claim.Labels[karpv1.LabelCapacityType]}
	if r.Price != nil {
		i.Price = r.Price(claim)
	}
	return i
}

// seconds formats a duration in whole seconds.
func seconds(d time.Duration) string { return d.Round(time.Second).String() }
