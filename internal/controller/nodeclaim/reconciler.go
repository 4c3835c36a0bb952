package nodeclaim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Name is the controller's name in logs and metrics.
const Name = "nodeclaim.lifecycle"

// workers is the number of claims that are processed concurrently, unless Workers is set. A worker mostly waits for
// the cloud, so the number matches the claims of a large scale-up.
const workers = 1000

// Reconciler manages the lifecycle of claims. Fill all fields except the optional ones, then call SetupWithManager.
type Reconciler struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client client.Client
	// Live reads from the API server, before the machine of a deleted claim is terminated without a drain.
	Live     client.Reader
	Provider cloud.Provider
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Metrics
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers
	Clock     clock.PassiveClock
	// BeforeReady, optional, is called before a node that has joined accepts pods. node is what is about to be
	// written, without the unregistered taint. The hook may add labels to it. An error delays the node by
	// Timers.HookRetry, a limited number of times. The hook must be idempotent: it is called again after a write
	// conflict.
	BeforeReady func(ctx context.Context, claim *karpv1.NodeClaim, node *corev1.Node) error
	// Registering, optional, returns labels that the claim's machine got after its launch (cloud.Registrar).
	Registering func(ctx context.Context, claim *karpv1.NodeClaim) (map[string]string, error)
	// Attempted, optional, receives the result of each launch: the node registered, or the claim exceeded a time
	// limit.
	Attempted func(claim *karpv1.NodeClaim, registered bool)
	// Failed, optional, receives why a claim could not be launched or did not register, before the claim is deleted
	// for it. An empty text means that it has been launched.
	Failed func(claim *karpv1.NodeClaim, why string)
	// SoldOut, optional, is called when the provider had no capacity for a claim. The claim is deleted when it
	// returns, or after Timers.CatalogRead, so that the next plan for its pods uses current availability.
	SoldOut func(ctx context.Context, claim *karpv1.NodeClaim)
	// Wrote, optional, receives a NodePool that was written, as the API server returned it.
	Wrote func(object client.Object)
	// Price, optional, returns the price of the claim's machine by its labels, in USD per hour, or 0 if it is
	// unknown.
	Price func(claim *karpv1.NodeClaim) float64
	// Workers is the number of claims that are processed concurrently. 0 means 1,000.
	Workers int

	classes  controller.Classes
	launches launchResults
	series   series
}

// SetupWithManager registers the controller. controller.Index must have run before.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	classes, err := controller.ClassesOf(r.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	r.classes, r.launches.life = classes.Within(r.Selection), r.Timers.LaunchMemory
	if r.Workers == 0 {
		r.Workers = workers
	}
	err = ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&karpv1.NodeClaim{}).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.claimsOf)).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: r.Workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Timers.Retry, r.Timers.RetryMax),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// claimsOf returns requests for the claims of a node's machine.
func (r *Reconciler) claimsOf(ctx context.Context, node client.Object) []reconcile.Request {
	id := node.(*corev1.Node).Spec.ProviderID
	if id == "" {
		return nil
	}
	var claims karpv1.NodeClaimList
	if err := r.Client.List(ctx, &claims, client.MatchingFields{controller.FieldClaimProviderID: id}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the claims of a node", "node", node.GetName())
		return nil
	}
	var requests []reconcile.Request
	for i := range claims.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: claims.Items[i].Name}})
	}
	return requests
}

// Reconcile advances a claim as far as currently possible.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &karpv1.NodeClaim{}
	if err := r.Client.Get(ctx, request.NamespacedName, claim); err != nil {
		if !apierrors.IsNotFound(err) {
			return ctrl.Result{}, err
		}
		again, err := r.terminateOrphans(ctx, request.Name, "")
		return controller.Settle(ctrl.Result{RequeueAfter: again}, err, r.Timers.Retry)
	}
	if !r.classes.OwnsClaim(claim) {
		return ctrl.Result{}, nil
	}
	step := r.advance
	if !claim.DeletionTimestamp.IsZero() {
		step = r.finalize
	}
	result, err := step(ctx, claim)
	again, lost := r.terminateOrphans(ctx, claim.Name, claim.UID)
	result.RequeueAfter = shortest(result.RequeueAfter, again)
	return controller.Settle(result, errors.Join(err, lost), r.Timers.Retry)
}

// advance advances a live claim. Each step works on the result of the previous one in claim. The status is written
// once.
func (r *Reconciler) advance(ctx context.Context, claim *karpv1.NodeClaim) (ctrl.Result, error) {
	r.dropShown(claim)
	// 0. An expired claim is deleted, whatever its state.
	expired, expires, err := r.expire(ctx, claim)
	if err != nil || expired {
		return ctrl.Result{}, err
	}
	// 1. Set the finalizer and the pool's label, before anything is launched.
	if err := r.protect(ctx, claim); err != nil {
		return ctrl.Result{}, err
	}
	// 2. Launch.
	launched, err := r.launch(ctx, claim)
	if launched.refused {
		return ctrl.Result{}, err
	}
	before := launched.before
	// 3. Register and initialize, with the nodes of the machine.
	joined := joining{}
	if err == nil && launched.again == 0 {
		joined, err = r.join(ctx, claim)
	}
	// 4. Write the status, also after an error.
	if writeErr := r.writeStatus(ctx, claim, before); writeErr != nil {
		return ctrl.Result{}, errors.Join(err, writeErr)
	}
	r.announce(claim, joined)
	r.reportProgress(ctx, claim, before)
	// 5. Delete a claim that exceeded a time limit. This is the last step: after a downtime of the controller, the
	// missing state may have been reached by now.
	reason, left := overdue(claim, r.Clock.Now(), r.Timers)
	if reason != "" && joined.again == 0 && !controller.Stale(err) {
		return ctrl.Result{}, r.deleteOverdue(ctx, claim, reason)
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: shortest(left, launched.again, joined.again, expires)}, nil
}

// dropShown drops the launch results that the claim in the cache shows by now.
func (r *Reconciler) dropShown(claim *karpv1.NodeClaim) {
	conditions := claim.StatusConditions()
	switch {
	case !conditions.Get(karpv1.ConditionRegistered).IsUnknown():
		r.launches.forget(claim.UID)
	case !conditions.Get(karpv1.ConditionLaunched).IsUnknown():
		r.launches.dropShown(claim.UID)
	}
}

// protect sets what a claim must not lack: the finalizer, and the label of its pool, without which it would not count
// against any limits.
func (r *Reconciler) protect(ctx context.Context, claim *karpv1.NodeClaim) error {
	base := claim.DeepCopy()
	changed := controllerutil.AddFinalizer(claim, karpv1.FinalizerTermination)
	if pool := poolOf(claim); pool != "" && claim.Labels[karpv1.LabelNodePool] != pool {
		metav1.SetMetaDataLabel(&claim.ObjectMeta, karpv1.LabelNodePool, pool)
		changed = true
	}
	if !changed {
		return nil
	}
	if err := r.Client.Patch(ctx, claim, controller.Locked(base)); err != nil {
		return fmt.Errorf("adding the finalizer or the pool's label to claim %s: %w", claim.Name, err)
	}
	return nil
}

// poolOf returns the pool that owns the claim, or an empty string for a manually created claim.
func poolOf(claim *karpv1.NodeClaim) string {
	for _, owner := range claim.OwnerReferences {
		if group, _, _ := strings.Cut(owner.APIVersion, "/"); group == karpv1.Group && owner.Kind == "NodePool" {
			return owner.Name
		}
	}
	return ""
}

// shortest returns the shortest of the pauses that are not zero.
func shortest(pauses ...time.Duration) time.Duration {
	var least time.Duration
	for _, pause := range pauses {
		if pause > 0 && (least == 0 || pause < least) {
			least = pause
		}
	}
	return least
}

// expire deletes the claim once its age reaches expireAfter, without regard to budgets or pods. Otherwise it returns
// the time that is left, or zero if the claim never expires. Pods are drained as for any deleted node. Replacing the
// node before its expiration is the task of disruption.
func (r *Reconciler) expire(ctx context.Context, claim *karpv1.NodeClaim) (expired bool, left time.Duration, err error) {
	at, expires := expiry(claim)
	if !expires {
		return false, 0, nil
	}
	if left := at.Sub(r.Clock.Now()); left > 0 {
		return false, left, nil
	}
	if err := deleteUnchanged(ctx, r.Client, claim); err != nil {
		return false, 0, err
	}
	logOf(ctx, claim).Info("deleted a claim that has expired", "reason", telemetry.DisruptedExpired, "expireAfter",
		claim.Spec.ExpireAfter.String(), "providerID", claim.Status.ProviderID)
	r.Recorder.Emit(telemetry.DisruptionTerminating(claim, telemetry.EventExpired))
	r.Metrics.Disrupted(claim, telemetry.DisruptedExpired, "")
	r.Metrics.Moving(claim, telemetry.DisruptedExpired, "", controller.PodsOn(ctx, r.Client, claim.Status.NodeName))
	return true, 0, nil
}

// failed reports why a claim does not become a node.
func (r *Reconciler) failed(claim *karpv1.NodeClaim, why string) {
	if r.Failed != nil {
		r.Failed(claim, why)
	}
}

// deleteOverdue deletes a claim that exceeded a time limit.
func (r *Reconciler) deleteOverdue(ctx context.Context, claim *karpv1.NodeClaim, reason string) error {
	if reason == telemetry.DisruptedRegistrationTimeout {
		r.failed(claim, "its machine "+claim.Status.ProviderID+" did not register as a node within "+r.Timers.Registration.String())
	}
	if err := deleteUnchanged(ctx, r.Client, claim); err != nil {
		return err
	}
	logOf(ctx, claim).Info("deleted a claim that took too long", "reason", reason, "providerID", claim.Status.ProviderID)
	r.Metrics.Disrupted(claim, reason, "")
	if r.Attempted != nil {
		r.Attempted(claim, false)
	}
	return nil
}

// deleteUnchanged deletes the claim if it is unchanged since it was read. A change or deletion by another writer is a
// stale error: the next reconcile sees it.
func deleteUnchanged(ctx context.Context, c client.Client, claim *karpv1.NodeClaim) error {
	if err := c.Delete(ctx, claim, controller.Unchanged(claim)); err != nil {
		return fmt.Errorf("deleting claim %s: %w", claim.Name, err)
	}
	return nil
}

// writeStatus writes the claim's status if it differs from before.
func (r *Reconciler) writeStatus(ctx context.Context, claim *karpv1.NodeClaim, before *karpv1.NodeClaimStatus) error {
	if equality.Semantic.DeepEqual(before, &claim.Status) {
		return nil
	}
	base := claim.DeepCopy()
	base.Status = *before
	if err := r.Client.Status().Patch(ctx, claim, controller.Locked(base)); err != nil {
		if refusedWrite(err) {
			r.Recorder.Emit(telemetry.StatusNotWritten(claim, err))
		}
		return fmt.Errorf("writing the status of claim %s: %w", claim.Name, err)
	}
	return nil
}

// refusedWrite reports whether the API server understood a write and refuses it: by a rule of the definition, because
// of missing permissions, or by an admission webhook or policy.
func refusedWrite(err error) bool {
	return !controller.Stale(err) &&
		(apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsInternalError(err) || apierrors.IsRequestEntityTooLargeError(err))
}

// announce counts the transitions that a written status has made final.
func (r *Reconciler) announce(claim *karpv1.NodeClaim, joined joining) {
	if !joined.registered {
		return
	}
	pool := claim.Labels[karpv1.LabelNodePool]
	r.Metrics.NodesCreated.WithLabelValues(pool, claim.Labels[corev1.LabelTopologyZone]).Inc()
	if r.Attempted != nil {
		r.Attempted(claim, true)
	}
}

// waitedSince returns the time since a condition last changed, or zero if it is absent.
func waitedSince(claim *karpv1.NodeClaim, condition string, now time.Time) time.Duration {
	c := claim.Condition(condition)
	if c == nil {
		return 0
	}
	return now.Sub(c.LastTransitionTime.Time)
}
