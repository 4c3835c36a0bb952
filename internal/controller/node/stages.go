package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// stage does one part of a node's end. Zero means done, go on; otherwise the pause before looking again. A stage that
// was done once is found done again, so that every reconcile, also after a restart, walks them all.
type stage func(ctx context.Context, l *leave) (again time.Duration, err error)

// stages are a node's way out.
func (r *Reconciler) stages() []stage {
	return []stage{r.removeClaim, r.warn, r.cordon, r.drain, r.detach, r.terminate, r.release}
}

// removeClaim deletes the claim of a node that somebody deleted directly.
func (r *Reconciler) removeClaim(ctx context.Context, l *leave) (time.Duration, error) {
	if l.claim == nil || !l.claim.DeletionTimestamp.IsZero() {
		return 0, nil
	}
	err := r.Client.Delete(ctx, l.claim, client.Preconditions{UID: &l.claim.UID})
	if client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("deleting claim %s of node %s: %w", l.claim.Name, l.node.Name, err)
	}
	return 0, nil
}

// warn says when the node will be emptied by force, if it will.
func (r *Reconciler) warn(_ context.Context, l *leave) (time.Duration, error) {
	if !l.readable {
		r.Recorder.Emit(telemetry.DeadlineUnreadable(l.node, l.claim))
	}
	if !l.deadline.IsZero() {
		r.Recorder.Emit(telemetry.TerminationDeadline(l.node, l.deadline))
	}
	return 0, nil
}

// cordon keeps new pods and load balancers away.
func (r *Reconciler) cordon(ctx context.Context, l *leave) (time.Duration, error) {
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

// disrupted are the taints with exactly one of the key karpenter.sh/disrupted, the right one.
func disrupted(taints []corev1.Taint) []corev1.Taint {
	want := karpv1.DisruptedTaint()
	same := func(t corev1.Taint) bool { return t.Key == want.Key }
	if i := slices.IndexFunc(taints, same); i >= 0 && taints[i].MatchTaint(&want) && taints[i].Value == want.Value &&
		!slices.ContainsFunc(taints[i+1:], same) {
		return taints
	}
	return append(slices.DeleteFunc(slices.Clone(taints), same), want)
}

// drain waits until no pod is left that has to go, and then until the drain is Timers.DrainMin old: a pod that the
// scheduler was just binding may still turn up.
func (r *Reconciler) drain(ctx context.Context, l *leave) (time.Duration, error) {
	if err := r.beginDrain(ctx, l); err != nil {
		return 0, err
	}
	terms := r.terms(l)
	terms.hold = r.holder(ctx, l)
	left := remaining(l.pods, terms)
	if len(left.waiting) > 0 {
		r.push(l, left)
		return r.Timers.Drain, nil
	}
	if wait := r.lateComers(l); wait > 0 {
		return wait, nil
	}
	return 0, r.endDrain(ctx, l)
}

// push makes pods leave, and says which do not.
func (r *Reconciler) push(l *leave, left left) {
	o := order{node: l.node.Name, reason: reasonOf(l.claim), deadline: l.deadline}
	for turn, pod := range inTurn(left.evict, l.node) {
		o.wait = pace(turn)
		r.evictor.add(pod, o)
	}
	o.wait = 0
	o.hurry = true
	for _, pod := range left.force {
		r.evictor.add(pod, o)
	}
	for _, pod := range left.mistaken {
		protection, _ := r.Protection.Of(pod)
		r.Recorder.Emit(telemetry.InvalidDoNotDisrupt(pod, pod.Annotations[karpv1.AnnotationDoNotDisrupt], protection.Forever))
	}
	for _, pod := range left.elapsed {
		r.Recorder.Emit(telemetry.ProtectionElapsed(pod, pod.Annotations[karpv1.AnnotationDoNotDisrupt]))
	}
	for _, pod := range left.protected {
		if p, _ := r.Protection.Of(pod); !p.Until.IsZero() {
			r.Recorder.Emit(telemetry.ProtectedUntil(pod, p.Until))
		}
	}
	if r.tells(l.node) {
		r.Recorder.Emit(telemetry.FailedDraining(l.node, left.why()))
	}
}

// tells reports whether the drain of the node has lasted so long that events say what it waits for.
func (r *Reconciler) tells(node *corev1.Node) bool {
	return node.DeletionTimestamp != nil && apiTime(r.Clock.Now(), r.Ahead).Sub(node.DeletionTimestamp.Time) >= r.Timers.DrainQuiet
}

// terms are what the drain of this node is judged by.
func (r *Reconciler) terms(l *leave) terms {
	t := r.termsOf(l.deadline)
	t.now = l.now
	return t
}

// termsOf are what a drain with this deadline is judged by now.
func (r *Reconciler) termsOf(deadline time.Time) terms {
	return terms{now: apiTime(r.Clock.Now(), r.Ahead), deadline: deadline, slack: 2 * r.Timers.Drain, stuck: r.Timers.PodStuck, rules: r.Protection}
}

// lateComers is how long the drain still has to stay open. The API keeps transition times in whole seconds; they are of this
// process's clock.
func (r *Reconciler) lateComers(l *leave) time.Duration {
	if l.claim == nil {
		return 0
	}
	c := l.claim.Condition(karpv1.ConditionDrained)
	if c.IsTrue() {
		return 0
	}
	return max(c.LastTransitionTime.Add(r.Timers.DrainMin).Sub(r.Clock.Now()), 0)
}

// beginDrain notes that the drain has begun, for lateComers to count from.
func (r *Reconciler) beginDrain(ctx context.Context, l *leave) error {
	return r.mark(ctx, l, func(conditions status.ConditionSet) {
		if conditions.Get(karpv1.ConditionDrained) == nil {
			conditions.SetUnknownWithReason(karpv1.ConditionDrained, karpv1.ReasonDraining, "Draining")
		}
	})
}

// endDrain notes that it has ended.
func (r *Reconciler) endDrain(ctx context.Context, l *leave) error {
	if l.claim == nil || l.claim.Condition(karpv1.ConditionDrained).IsTrue() {
		return nil
	}
	if err := r.mark(ctx, l, func(conditions status.ConditionSet) { conditions.SetTrue(karpv1.ConditionDrained) }); err != nil {
		return err
	}
	r.Metrics.NodesDrained.WithLabelValues(l.node.Labels[karpv1.LabelNodePool]).Inc()
	return nil
}

// mark writes the claim's conditions, if the node has a claim and change changes them.
func (r *Reconciler) mark(ctx context.Context, l *leave, change func(status.ConditionSet)) error {
	if l.claim == nil {
		return nil
	}
	base := l.claim.DeepCopy()
	change(l.claim.StatusConditions())
	if equality.Semantic.DeepEqual(base.Status, l.claim.Status) {
		return nil
	}
	if err := r.Client.Status().Patch(ctx, l.claim, controller.Locked(base)); err != nil {
		return fmt.Errorf("writing how far the end of claim %s is: %w", l.claim.Name, err)
	}
	return nil
}

// reasonOf is why the node leaves, for events and metrics.
func reasonOf(claim *karpv1.NodeClaim) string {
	if claim != nil {
		if c := claim.Condition(karpv1.ConditionDisruptionReason); c.IsTrue() {
			return c.Reason
		}
	}
	return "Forceful Termination"
}

// terminate ends the machine and waits until the provider no longer knows it. A node without a claim is not ours to
// take a machine from.
func (r *Reconciler) terminate(ctx context.Context, l *leave) (time.Duration, error) {
	if l.claim == nil {
		return 0, nil
	}
	err := r.Provider.Terminate(ctx, l.claim.Status.ProviderID)
	gone := errors.Is(err, cloud.ErrNotFound)
	if err != nil && !gone {
		r.tellNotTerminated(ctx, l, err)
		// Not wrapped: an error of the cloud must not be taken for one of the Kubernetes API.
		return 0, fmt.Errorf("terminating machine %s: %v", l.claim.Status.ProviderID, err)
	}
	err = r.mark(ctx, l, func(conditions status.ConditionSet) {
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

// tellNotTerminated says on the claim why its machine is not terminated.
func (r *Reconciler) tellNotTerminated(ctx context.Context, l *leave, why error) {
	reason := ""
	told := r.mark(ctx, l, func(status.ConditionSet) { reason = controller.NoteTerminationFailed(l.claim, why) })
	if told != nil && !controller.Stale(told) {
		ctrl.LoggerFrom(ctx).Error(told, "writing why a machine is not terminated")
	}
	r.Recorder.Emit(telemetry.TerminationFailed(l.claim, l.claim.Status.ProviderID, reason, why))
}

// release lets the node go and counts its end.
func (r *Reconciler) release(ctx context.Context, l *leave) (time.Duration, error) {
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
		log.V(1).Info("deleted node") // the claim's line follows
		return 0, nil
	}
	log.Info("deleted node that no nodeclaim stands behind")
	return 0, nil
}
