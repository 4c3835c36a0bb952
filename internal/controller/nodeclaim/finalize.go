package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// finalize terminates a deleted claim. Each step repeats until it has nothing left to do:
//
//	deadline recorded -> nodes gone -> machines gone -> names of a new series -> finalizer removed
//
// A claim that shows the machine of another claim ends without it.
func (r *Reconciler) finalize(ctx context.Context, claim *karpv1.NodeClaim) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(claim, karpv1.FinalizerTermination) {
		// A launched machine stays in memory until terminateOrphans has terminated it: another finalizer may keep a
		// claim that has lost the termination finalizer.
		if said := r.launches.result(claim.UID); said == nil || said.machine == nil {
			r.launches.forget(claim.UID)
		}
		return ctrl.Result{}, nil
	}
	steps := []func(context.Context, *karpv1.NodeClaim) (time.Duration, error){r.noteDeadline, r.removeNodes, r.removeMachines,
		r.beginSeries, r.release}
	owner, err := r.owner(ctx, claim)
	if err != nil {
		return ctrl.Result{}, err
	}
	if owner != "" {
		ctrl.LoggerFrom(ctx).Info("removing a nodeclaim without its instance, which belongs to another nodeclaim",
			"providerID", claim.Status.ProviderID, "owner", owner)
		steps = steps[3:]
	}
	for _, step := range steps {
		if again, err := step(ctx, claim); err != nil || again > 0 {
			return ctrl.Result{RequeueAfter: again}, err
		}
	}
	return ctrl.Result{}, nil
}

// owner returns the name of the other live claim that shows the same machine and counts as its claim, or an empty
// string if there is none. A machine has one claim: the one that owns a node of the machine, or else the oldest, as
// in package cluster.
func (r *Reconciler) owner(ctx context.Context, claim *karpv1.NodeClaim) (string, error) {
	id := r.machineOf(claim)
	if id == "" {
		return "", nil
	}
	var claims karpv1.NodeClaimList
	if err := r.Client.List(ctx, &claims, client.MatchingFields{controller.FieldClaimProviderID: id},
		client.UnsafeDisableDeepCopy); err != nil {
		return "", fmt.Errorf("listing the claims of machine %s: %w", id, err)
	}
	if len(claims.Items) < 2 {
		return "", nil
	}
	nodes, err := nodesOf(ctx, r.Client, id)
	if err != nil {
		return "", err
	}
	owns := func(c *karpv1.NodeClaim) bool {
		return slices.ContainsFunc(nodes, func(node corev1.Node) bool { return karpv1.OwnsNode(c, &node) })
	}
	mine := owns(claim)
	for i := range claims.Items {
		other := &claims.Items[i]
		if other.UID == claim.UID || !other.DeletionTimestamp.IsZero() {
			continue
		}
		if theirs := owns(other); theirs && !mine || theirs == mine && createdBefore(other, claim) {
			return other.Name, nil
		}
	}
	return "", nil
}

// createdBefore reports whether a was created before b. Names break ties within the same second.
func createdBefore(a, b *karpv1.NodeClaim) bool {
	if order := a.CreationTimestamp.Compare(b.CreationTimestamp.Time); order != 0 {
		return order < 0
	}
	return a.Name < b.Name
}

// noteDeadline records when the grace period ends, for package node. It also overwrites a value that is not a time.
func (r *Reconciler) noteDeadline(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	grace := claim.Spec.TerminationGracePeriod
	if _, err := time.Parse(time.RFC3339, claim.Annotations[karpv1.AnnotationTerminationTimestamp]); grace == nil || err == nil {
		return 0, nil
	}
	deadline := claim.DeletionTimestamp.Add(grace.Duration)
	base := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.AnnotationTerminationTimestamp, deadline.UTC().Format(time.RFC3339))
	if err := r.Client.Patch(ctx, claim, controller.Locked(base)); err != nil {
		return 0, fmt.Errorf("noting the termination deadline on claim %s: %w", claim.Name, err)
	}
	r.Recorder.Emit(telemetry.TerminationDeadline(claim, deadline))
	return 0, nil
}

// removeNodes deletes the claim's nodes and waits until package node has drained and released them. It returns the
// pause before the next check, or zero when all are gone. The removal of a node is an event. The pause covers a lost
// event.
func (r *Reconciler) removeNodes(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	nodes, err := nodesOf(ctx, r.Client, r.machineOf(claim))
	if err != nil {
		return 0, err
	}
	waiting := 0
	for i := range nodes {
		node := &nodes[i]
		if !ours(claim, node) {
			if node, err = r.lately(ctx, node); err != nil {
				return 0, err
			}
			if node == nil || !ours(claim, node) {
				continue
			}
		}
		waiting++
		if !node.DeletionTimestamp.IsZero() {
			continue
		}
		if err := r.Client.Delete(ctx, node, client.Preconditions{UID: &node.UID}); client.IgnoreNotFound(err) != nil {
			return 0, fmt.Errorf("deleting node %s: %w", node.Name, err)
		}
	}
	if waiting > 0 {
		return r.Timers.InstancePollMax, nil
	}
	return 0, nil
}

// ours reports whether the node must be drained before its machine is terminated: the claim is registered, or the
// node shows that it was registered and the process stopped before it wrote this to the claim.
func ours(claim *karpv1.NodeClaim, node *corev1.Node) bool {
	return claim.Condition(karpv1.ConditionRegistered).IsTrue() ||
		controllerutil.ContainsFinalizer(node, karpv1.FinalizerTermination)
}

// lately returns the node as the API server has it now, or nil if it is gone. The cache may be older than a
// registration by this process or by its predecessor. A node that is mistaken for unregistered would lose its
// machine, and then its claim, without a drain, and its finalizer would keep it forever.
func (r *Reconciler) lately(ctx context.Context, cached *corev1.Node) (*corev1.Node, error) {
	node := &corev1.Node{}
	err := r.Live.Get(ctx, client.ObjectKeyFromObject(cached), node)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading node %s: %w", cached.Name, err)
	case err != nil || node.UID != cached.UID:
		return nil, nil
	}
	return node, nil
}

// machineOf returns the provider ID of the claim's machine as far as it is known, also if the claim does not show it
// yet.
func (r *Reconciler) machineOf(claim *karpv1.NodeClaim) string {
	if claim.Status.ProviderID != "" {
		return claim.Status.ProviderID
	}
	if said := r.launches.result(claim.UID); said != nil && said.machine != nil {
		return said.machine.ProviderID
	}
	return ""
}

// removeMachines terminates the claim's machine until the provider reports it as not found.
func (r *Reconciler) removeMachines(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	ids, err := r.machinesOf(ctx, claim)
	if err != nil {
		return 0, err
	}
	waiting := false
	for _, id := range ids {
		err := r.Provider.Terminate(ctx, id)
		if err != nil && !errors.Is(err, cloud.ErrNotFound) {
			if r.reportNotTerminated(ctx, claim, id, err); controller.TerminationWaits(err) {
				return r.Timers.RetryMax, nil
			}
			return 0, fmt.Errorf("terminating machine %s of claim %s: %v", id, claim.Name, err) // not wrapped, see launch
		}
		waiting = waiting || err == nil
	}
	if len(ids) == 0 {
		return 0, nil
	}
	before := claim.Status.DeepCopy()
	claim.StatusConditions().SetTrue(karpv1.ConditionInstanceTerminating)
	if err := r.writeStatus(ctx, claim, before); err != nil || !waiting {
		return 0, err
	}
	return r.Timers.InstancePause(waitedSince(claim, karpv1.ConditionInstanceTerminating, r.Clock.Now())), nil
}

// reportNotTerminated reports on the claim why a machine is not terminated.
func (r *Reconciler) reportNotTerminated(ctx context.Context, claim *karpv1.NodeClaim, id string, why error) {
	before := claim.Status.DeepCopy()
	reason := controller.NoteTerminationFailed(claim, why)
	if told := r.writeStatus(ctx, claim, before); told != nil && !controller.Stale(told) {
		ctrl.LoggerFrom(ctx).Error(told, "writing why a machine is not terminated")
	}
	if !controller.TerminationWaits(why) {
		r.Recorder.Emit(telemetry.TerminationFailed(claim, id, reason, why))
	}
}

// machinesOf returns the provider IDs to terminate. A claim that does not show its machine may still have one, if the
// process stopped between the launch and the write. Unless the provider's response to the launch is known, its list
// is searched.
func (r *Reconciler) machinesOf(ctx context.Context, claim *karpv1.NodeClaim) ([]string, error) {
	if id := r.machineOf(claim); id != "" {
		return []string{id}, nil
	}
	if said := r.launches.result(claim.UID); said != nil && said.refusal != "" {
		return nil, nil
	}
	machines, err := r.Provider.Machines(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for a machine of claim %s: %v", claim.Name, err) // not wrapped, see launch
	}
	var ids []string
	for _, m := range machines {
		if m.Claim == claim.Name {
			ids = append(ids, m.ProviderID)
		}
	}
	return ids, nil
}

// release removes the claim's finalizer and counts its end.
func (r *Reconciler) release(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	base := claim.DeepCopy()
	controllerutil.RemoveFinalizer(claim, karpv1.FinalizerTermination)
	if err := r.Client.Patch(ctx, claim, controller.Locked(base)); err != nil {
		return 0, fmt.Errorf("removing the finalizer of claim %s: %w", claim.Name, err)
	}
	r.launches.forget(claim.UID)
	now, pool := r.Clock.Now(), base.Labels[karpv1.LabelNodePool]
	r.Metrics.NodeClaimsTerminated.WithLabelValues(pool, base.Labels[karpv1.LabelCapacityType], base.Labels[corev1.LabelTopologyZone]).Inc()
	r.Metrics.NodeClaimsTermination.WithLabelValues(pool).Observe(now.Sub(base.DeletionTimestamp.Time).Seconds())
	if base.Status.ProviderID != "" {
		r.Metrics.NodeClaimsInstanceTermination.WithLabelValues(pool).Observe(waitedSince(base, karpv1.ConditionInstanceTerminating,
			now).Seconds())
	}
	r.reportDeleted(ctx, base)
	return 0, nil
}
