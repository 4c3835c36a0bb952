package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/awslabs/operatorpkg/status"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// terminationStep is one step of a node's termination. Zero means done, continue. Otherwise it returns the pause before
// the next check. A stage that is done stays done, so that every reconcile, also after a restart, runs all stages.
type terminationStep func(ctx context.Context, l *termination) (again time.Duration, err error)

// terminationSteps returns the steps of a node's termination.
func (r *Reconciler) terminationSteps() []terminationStep {
	return []terminationStep{r.removeClaim, r.warn, r.cordon, r.drain, r.detach, r.terminate, r.release}
}

// removeClaim deletes the claim of a node that a user deleted directly.
func (r *Reconciler) removeClaim(ctx context.Context, l *termination) (time.Duration, error) {
	if l.claim == nil || !l.claim.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	err := r.Client.Delete(ctx, l.claim, client.Preconditions{UID: &l.claim.UID})
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("deleting claim %s of node %s: %w", l.claim.Name, l.node.Name, err)
	}
	if err == nil {
		ctrl.LoggerFrom(ctx).Info("deleted a claim, because its node was deleted directly", "node", l.node.Name,
			"nodeClaim", l.claim.Name, "nodePool", l.claim.Labels[karpv1.LabelNodePool], "reason", telemetry.DeletedWithNode)
	}
	return 0, nil
}

// warn reports when the node will be drained by force, if it has a deadline.
func (r *Reconciler) warn(_ context.Context, l *termination) (time.Duration, error) {
	if !l.readable {
		r.Recorder.Emit(telemetry.DeadlineUnreadable(l.node, l.claim))
	}
	if !l.deadline.IsZero() {
		r.Recorder.Emit(telemetry.TerminationDeadline(l.node, l.deadline))
	}
	return 0, nil
}

// cordon keeps new pods and load balancers away.
func (r *Reconciler) cordon(ctx context.Context, l *termination) (time.Duration, error) {
	base := l.node.DeepCopy()
	l.node.Spec.Taints = disrupted(l.node.Spec.Taints)
	if l.node.Labels == nil {
		l.node.Labels = map[string]string{}
	}
	l.node.Labels[karpv1.LabelExcludeBalancers] = karpv1.ExcludeBalancersValue
	if equality.Semantic.DeepEqual(base, l.node) {
		return 0, nil
	}
	if err := r.Client.Patch(ctx, l.node, controller.Locked(base)); err != nil {
		return 0, fmt.Errorf("tainting node %s: %w", l.node.Name, err)
	}
	return 0, nil
}

// disrupted returns the taints with exactly one taint with the key karpenter.sh/disrupted, with the correct effect.
func disrupted(taints []corev1.Taint) []corev1.Taint {
	want := karpv1.DisruptedTaint()
	same := func(t corev1.Taint) bool { return t.Key == want.Key }
	if i := slices.IndexFunc(taints, same); i >= 0 && taints[i].MatchTaint(&want) && taints[i].Value == want.Value &&
		!slices.ContainsFunc(taints[i+1:], same) {
		return taints
	}
	return append(slices.DeleteFunc(slices.Clone(taints), same), want)
}

// drain waits until all pods that have to be removed are gone, and then until the drain is Timers.DrainMin old: a pod
// that kube-scheduler was binding may still appear.
func (r *Reconciler) drain(ctx context.Context, l *termination) (time.Duration, error) {
	policy := r.policy(l)
	policy.hold = r.holder(ctx, l)
	state := remaining(l.pods, policy)
	if err := r.beginDrain(ctx, l, state); err != nil {
		return 0, err
	}
	if len(state.waiting) > 0 {
		r.enqueue(ctx, l, state)
		return r.Timers.Drain, nil
	}
	if wait := r.remainingDrain(l); wait > 0 {
		return wait, nil
	}
	return 0, r.endDrain(ctx, l)
}

// enqueue enqueues pods for eviction, and reports those that are not evicted.
func (r *Reconciler) enqueue(ctx context.Context, l *termination, state drainState) {
	o := evictionOrder{node: l.node.Name, reason: reasonOf(l.claim), deadline: l.deadline}
	for turn, pod := range largestFirst(state.evict, l.node) {
		o.delay = evictionDelay(turn)
		r.evictor.add(pod, o)
	}
	o.delay = 0
	o.forced = true
	for _, pod := range state.force {
		r.evictor.add(pod, o)
	}
	for _, pod := range state.invalidAnnotation {
		protection, _ := r.Protection.Of(pod)
		r.Recorder.Emit(telemetry.InvalidDoNotDisrupt(pod, pod.Annotations[karpv1.AnnotationDoNotDisrupt], protection.Forever))
	}
	for _, pod := range state.protectionElapsed {
		r.Recorder.Emit(telemetry.ProtectionElapsed(pod, pod.Annotations[karpv1.AnnotationDoNotDisrupt]))
	}
	for _, pod := range state.protected {
		if p, _ := r.Protection.Of(pod); !p.Until.IsZero() {
			r.Recorder.Emit(telemetry.ProtectedUntil(pod, p.Until))
		}
	}
	waited, long := r.drained(l.node)
	if !long {
		return
	}
	r.Recorder.Emit(telemetry.FailedDraining(l.node, state.describe(), waited))
	// Pods whose eviction a budget refuses have a line of their own (reportRefusal).
	if len(state.evict) == 0 && r.Recorder.Once(drainLogged, l.node.Name) {
		ctrl.LoggerFrom(ctx).Info("a drain waits for pods", "node", l.node.Name, "nodePool", l.node.Labels[karpv1.LabelNodePool],
			"reason", state.describe(), "waited", waited.Round(time.Second).String())
	}
}

// drainLogged is how long the log does not repeat what a drain waits for.
const drainLogged = 15 * time.Minute

// drained returns how long the drain of the node has lasted, and whether that is so long that events and the log
// report what it waits for.
func (r *Reconciler) drained(node *corev1.Node) (waited time.Duration, long bool) {
	if node.DeletionTimestamp == nil {
		return 0, false
	}
	waited = apiTime(r.Clock.Now(), r.Ahead).Sub(node.DeletionTimestamp.Time)
	return waited, waited >= r.Timers.DrainQuiet
}

// policy returns the parameters for the drain of this node.
func (r *Reconciler) policy(l *termination) drainPolicy {
	t := r.policyAt(l.deadline)
	t.now = l.now
	return t
}

// policyAt returns the current parameters for a drain with this deadline.
func (r *Reconciler) policyAt(deadline time.Time) drainPolicy {
	return drainPolicy{now: apiTime(r.Clock.Now(), r.Ahead), deadline: deadline, slack: 2 * r.Timers.Drain,
		stuck: r.Timers.PodStuck, rules: r.Protection}
}

// remainingDrain returns how long the drain must continue. The API stores transition times in whole seconds, by this
// process's clock.
func (r *Reconciler) remainingDrain(l *termination) time.Duration {
	if l.claim == nil {
		return 0
	}
	c := l.claim.Condition(karpv1.ConditionDrained)
	if c.IsTrue() {
		return 0
	}
	return max(c.LastTransitionTime.Add(r.Timers.DrainMin).Sub(r.Clock.Now()), 0)
}

// beginDrain records that the drain has begun, which is the start for remainingDrain, and logs which pods it removes.
func (r *Reconciler) beginDrain(ctx context.Context, l *termination, state drainState) error {
	if l.claim == nil || l.claim.Condition(karpv1.ConditionDrained) != nil {
		return nil
	}
	err := r.writeConditions(ctx, l, func(conditions status.ConditionSet) {
		conditions.SetUnknownWithReason(karpv1.ConditionDrained, karpv1.ReasonDraining, "Draining")
	})
	if err != nil {
		return err
	}
	var names []string
	for _, pod := range state.waiting {
		if !karpv1.DaemonPod(pod) {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	slices.Sort(names)
	r.logDrain(ctx, l).Info("draining node", "reason", strings.ToLower(reasonOf(l.claim)), "pods", len(names),
		"podNames", telemetry.PodNames(names))
	return nil
}

// logDrain returns the log for lines about the drain of a node that has a claim.
func (r *Reconciler) logDrain(ctx context.Context, l *termination) logr.Logger {
	return ctrl.LoggerFrom(ctx).WithValues("node", l.node.Name, "nodeClaim", l.claim.Name, "nodePool", l.claim.Labels[karpv1.LabelNodePool])
}

// endDrain records that the drain has ended.
func (r *Reconciler) endDrain(ctx context.Context, l *termination) error {
	if l.claim == nil || l.claim.Condition(karpv1.ConditionDrained).IsTrue() {
		return nil
	}
	began := l.claim.Condition(karpv1.ConditionDrained).LastTransitionTime.Time
	if err := r.writeConditions(ctx, l, func(conditions status.ConditionSet) { conditions.SetTrue(karpv1.ConditionDrained) }); err != nil {
		return err
	}
	r.logDrain(ctx, l).Info("drained node", "after", r.Clock.Now().Sub(began).Round(time.Second).String())
	r.Metrics.NodesDrained.WithLabelValues(l.node.Labels[karpv1.LabelNodePool]).Inc()
	return nil
}

// writeConditions writes the claim's conditions, if the node has a claim and change modifies them.
func (r *Reconciler) writeConditions(ctx context.Context, l *termination, change func(status.ConditionSet)) error {
	if l.claim == nil {
		return nil
	}
	base := l.claim.DeepCopy()
	change(l.claim.StatusConditions())
	if equality.Semantic.DeepEqual(base.Status, l.claim.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, l.claim, controller.Locked(base)); err != nil {
		return fmt.Errorf("writing the termination progress of claim %s: %w", l.claim.Name, err)
	}
	return nil
}

// reasonOf returns the reason of the node's removal, for events and metrics.
func reasonOf(claim *karpv1.NodeClaim) string {
	if claim != nil {
		if c := claim.Condition(karpv1.ConditionDisruptionReason); c.IsTrue() {
			return c.Reason
		}
	}
	return "Forceful Termination"
}

// terminate terminates the machine and waits until the provider reports it as not found. The machine of a node
// without a claim is not terminated.
func (r *Reconciler) terminate(ctx context.Context, l *termination) (time.Duration, error) {
	if l.claim == nil {
		return 0, nil
	}
	err := r.Provider.Terminate(ctx, l.claim.Status.ProviderID)
	gone := errors.Is(err, cloud.ErrNotFound)
	if err != nil && !gone {
		if r.reportNotTerminated(ctx, l, err); controller.TerminationWaits(err) {
			return r.Timers.RetryMax, nil
		}
		// Not wrapped: an error of the cloud must not be mistaken for one of the Kubernetes API.
		return 0, fmt.Errorf("terminating machine %s: %v", l.claim.Status.ProviderID, err)
	}
	err = r.writeConditions(ctx, l, func(conditions status.ConditionSet) {
		if !conditions.Get(karpv1.ConditionInstanceTerminating).IsTrue() {
			conditions.SetTrue(karpv1.ConditionInstanceTerminating)
		}
	})
	if err != nil || gone {
		return 0, err
	}
	began := l.claim.Condition(karpv1.ConditionInstanceTerminating).LastTransitionTime.Time
	return r.Timers.InstancePause(r.Clock.Now().Sub(began)), nil
}

// reportNotTerminated reports on the claim why its machine is not terminated.
func (r *Reconciler) reportNotTerminated(ctx context.Context, l *termination, why error) {
	reason := ""
	told := r.writeConditions(ctx, l, func(status.ConditionSet) { reason = controller.NoteTerminationFailed(l.claim, why) })
	if told != nil && !controller.Stale(told) {
		ctrl.LoggerFrom(ctx).Error(told, "writing why a machine is not terminated")
	}
	if !controller.TerminationWaits(why) {
		r.Recorder.Emit(telemetry.TerminationFailed(l.claim, l.claim.Status.ProviderID, reason, why))
	}
}

// release removes the node's finalizer and counts its end.
func (r *Reconciler) release(ctx context.Context, l *termination) (time.Duration, error) {
	base := l.node.DeepCopy()
	controllerutil.RemoveFinalizer(l.node, karpv1.FinalizerTermination)
	if err := r.Client.Patch(ctx, l.node, controller.Locked(base)); err != nil {
		return 0, fmt.Errorf("removing the finalizer of node %s: %w", l.node.Name, err)
	}
	pool, now := base.Labels[karpv1.LabelNodePool], apiTime(r.Clock.Now(), r.Ahead)
	r.Metrics.NodesTerminated.WithLabelValues(pool, base.Labels[corev1.LabelTopologyZone]).Inc()
	r.Metrics.NodesTermination.WithLabelValues(pool).Observe(now.Sub(base.DeletionTimestamp.Time).Seconds())
	r.Metrics.NodesLifetime.WithLabelValues(pool).Observe(now.Sub(base.CreationTimestamp.Time).Seconds())
	log := ctrl.LoggerFrom(ctx).WithValues("providerID", base.Spec.ProviderID)
	if l.claim != nil {
		log.V(1).Info("deleted node") // the claim's log line follows
		return 0, nil
	}
	log.Info("deleted node without a nodeclaim")
	return 0, nil
}
