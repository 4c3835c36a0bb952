package nodepool

import (
	"context"
	"errors"
	"fmt"

	"github.com/awslabs/operatorpkg/status"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/engine/pause"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Name is the controller's name in logs and metrics.
const Name = "nodepool.status"

// workers is the number of pools that are processed concurrently.
const workers = 10

// Reconciler writes a pool's conditions and hash. Fill all fields, then call SetupWithManager.
type Reconciler struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client   client.Client
	Provider cloud.Provider
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers
	Clock     clock.PassiveClock
	// Health is written by nodeclaim.Reconciler.Attempted.
	Health *Health
	// Typeless returns the requirement of a pool that excludes all instance types. It returns "" if there is none or
	// the types are unknown. It may be nil.
	Typeless func(ctx context.Context, pool *karpv1.NodePool) string
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Metrics

	classes controller.Classes
	rules   karpv1.LabelRules
	foreign questions
}

// SetupWithManager registers the controller. controller.Index must have run before.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	classes, err := controller.ClassesOf(r.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	r.classes = classes.Within(r.Selection)
	r.rules = karpv1.CoreRules().With(karpv1.LabelRules{Aliases: names.Aliases()}).With(declared(r.Provider.Declared()))
	b := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&karpv1.NodePool{}).
		WatchesRawSource(source.Func(r.Health.wakeInto)).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Timers.Retry, r.Timers.RetryMax),
		})
	for kind, object := range r.classes.Kinds() {
		b = b.Watches(object, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, class client.Object) []reconcile.Request {
			return r.poolsOf(ctx, karpv1.NodeClassReference{Group: kind.Group, Kind: kind.Kind, Name: class.GetName()})
		}))
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// declared returns a provider's labels as rules.
func declared(d cloud.Declared) karpv1.LabelRules {
	return karpv1.LabelRules{WellKnown: d.WellKnown, RestrictedDomains: d.Restricted, Aliases: d.Aliases, ValueAliases: d.ValueAliases}
}

func (r *Reconciler) poolsOf(ctx context.Context, class karpv1.NodeClassReference) []reconcile.Request {
	var pools karpv1.NodePoolList
	if err := r.Client.List(ctx, &pools, client.MatchingFields{controller.FieldPoolClass: controller.ClassKey(class)}); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the pools of a node class", "class", class.Name)
		return nil
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: pools.Items[i].Name}})
	}
	return requests
}

// Reconcile updates the conditions and hashes of a pool.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	pool := &karpv1.NodePool{}
	if err := r.Client.Get(ctx, request.NamespacedName, pool); err != nil {
		if apierrors.IsNotFound(err) {
			r.foreign.forget(request.Name)
			r.reportPauses(&karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: request.Name}})
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	switch {
	case !r.classes.Provides(pool.Spec.Template.Spec.NodeClassRef):
		return r.watchForeign(ctx, pool)
	case !r.classes.OwnsPool(pool):
		return ctrl.Result{}, nil
	}
	if !pool.DeletionTimestamp.IsZero() {
		r.Health.forget(pool.UID)
		return ctrl.Result{}, nil
	}
	r.reportPauses(pool)
	err := r.update(ctx, pool)
	return controller.Settle(ctrl.Result{RequeueAfter: r.Timers.ClassRecheck}, err, r.Timers.Retry)
}

func (r *Reconciler) update(ctx context.Context, pool *karpv1.NodePool) error {
	// class returns the data about the pool's node class, including the provider's result.
	class, err := r.class(ctx, pool)
	if err != nil {
		return err
	}
	// 2. Update the hashes: claims before the pool, so that a pool with the current version has no claims of an older
	// one. A claim that cannot be updated only delays the pool's hash.
	unstamped := r.stamp(ctx, pool)
	if controller.Stale(unstamped) {
		return unstamped
	}
	// 3. Evaluate.
	base := pool.DeepCopy()
	conditions := pool.StatusConditions()
	changed := changedFor(pool, class)
	conditions.Set(validation(pool, r.rules, r.typeless(ctx, pool, class)))
	conditions.Set(classReadiness(class))
	answered(pool)
	if changed {
		r.Health.reset(pool.UID)
	}
	if c, known := r.Health.condition(pool, changed); known {
		conditions.Set(c)
	}
	pool.Status.NodeClassObservedGeneration = class.generation
	// 4. Act.
	if equality.Semantic.DeepEqual(base.Status, pool.Status) {
		return unstamped
	}
	if err := r.Client.Status().Patch(ctx, pool, controller.Locked(base)); err != nil {
		return errors.Join(unstamped, fmt.Errorf("writing the status of pool %s: %w", pool.Name, err))
	}
	logReadiness(ctx, base, pool)
	return unstamped
}

// reportPauses reports what is paused for the pool: in events, and in a metric.
func (r *Reconciler) reportPauses(pool *karpv1.NodePool) {
	r.Metrics.NodePoolsPaused.DeletePartialMatch(prometheus.Labels{"nodepool": pool.Name})
	for _, p := range pause.Parse(pool.Annotations[karpv1.AnnotationPauses]).Active(r.Clock.Now()) {
		r.Metrics.NodePoolsPaused.WithLabelValues(pool.Name, p.Reason).Inc()
		if p.Reason != pause.Removal { // RemovalsPaused reports it, if a removal waits
			r.Recorder.Emit(telemetry.Paused(pool, p.String()))
		}
	}
}

// logReadiness logs that a pool is no longer ready, or is ready again.
func logReadiness(ctx context.Context, before, pool *karpv1.NodePool) {
	was, is := before.Condition(status.ConditionReady), pool.Condition(status.ConditionReady)
	switch {
	case is.IsFalse() && !was.IsFalse():
		cause := is
		for _, kind := range []string{karpv1.ConditionValidationSucceeded, karpv1.ConditionNodeClassReady} {
			if c := pool.Condition(kind); c.IsFalse() {
				cause = c
			}
		}
		ctrl.LoggerFrom(ctx).Info("a NodePool is not ready", "nodePool", pool.Name, "reason", cause.Reason, "message", cause.Message)
	case is.IsTrue() && was.IsFalse():
		ctrl.LoggerFrom(ctx).Info("a NodePool is ready again", "nodePool", pool.Name)
	}
}

// typeless returns the requirement of the pool that excludes all instance types. A class that is not ready has no types
// yet.
func (r *Reconciler) typeless(ctx context.Context, pool *karpv1.NodePool, c class) string {
	if r.Typeless == nil || !c.found || c.unready != nil {
		return ""
	}
	return r.Typeless(ctx, pool)
}

// class reads the pool's node class and the provider's result about it.
func (r *Reconciler) class(ctx context.Context, pool *karpv1.NodePool) (class, error) {
	ref := pool.Spec.Template.Spec.NodeClassRef
	c := class{ref: ref}
	object := r.classes.Empty(ref)
	err := r.Client.Get(ctx, client.ObjectKey{Name: ref.Name}, object)
	if apierrors.IsNotFound(err) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("reading %s %s of pool %s: %w", ref.Kind, ref.Name, pool.Name, err)
	}
	c.found = true
	c.generation = object.GetGeneration()
	c.terminating = !object.GetDeletionTimestamp().IsZero()
	c.unready = r.Provider.Ready(ctx, cloud.ClassRef{Group: ref.Group, Kind: ref.Kind, Name: ref.Name})
	return c, nil
}

// stamp writes the hash to the pool, and to its claims whose hash is of another version. Those claims count as not
// drifted, unless they are known to differ from the template, because hashes of different versions cannot be
// compared.
func (r *Reconciler) stamp(ctx context.Context, pool *karpv1.NodePool) error {
	hash := pool.Hash()
	var claims karpv1.NodeClaimList
	if err := r.Client.List(ctx, &claims, client.MatchingFields{controller.FieldPool: pool.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the claims of pool %s: %w", pool.Name, err)
	}
	var errs []error
	for i := range claims.Items {
		if stamped(&claims.Items[i]) {
			continue
		}
		base, claim := &claims.Items[i], claims.Items[i].DeepCopy()
		restamp(claim, hash)
		if err := r.Client.Patch(ctx, claim, client.MergeFrom(base)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("stamping claim %s: %w", claim.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	base := pool.DeepCopy()
	metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.AnnotationNodePoolHash, hash)
	metav1.SetMetaDataAnnotation(&pool.ObjectMeta, karpv1.AnnotationNodePoolHashVersion, karpv1.HashVersion)
	if equality.Semantic.DeepEqual(base.Annotations, pool.Annotations) {
		return nil
	}
	if err := r.Client.Patch(ctx, pool, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("stamping pool %s: %w", pool.Name, err)
	}
	return nil
}

// stamped reports whether the claim's hash is of this version.
func stamped(claim *karpv1.NodeClaim) bool {
	return claim.Annotations[karpv1.AnnotationNodePoolHash] != "" &&
		claim.Annotations[karpv1.AnnotationNodePoolHashVersion] == karpv1.HashVersion
}

// restamp updates the claim's hash annotations if they are of another version, and reports whether it did.
func restamp(claim *karpv1.NodeClaim, hash string) bool {
	if stamped(claim) {
		return false
	}
	old := claim.Annotations[karpv1.AnnotationNodePoolHash]
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.AnnotationNodePoolHashVersion, karpv1.HashVersion)
	drifted := claim.Condition(karpv1.ConditionDrifted)
	if old == "" || !drifted.IsTrue() || drifted.Reason != karpv1.ReasonNodePoolDrifted { // other reasons are detected again without the hash
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, karpv1.AnnotationNodePoolHash, hash)
	}
	return true
}
