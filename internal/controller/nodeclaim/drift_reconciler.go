package nodeclaim

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/names"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// DriftName is the name of the DriftReconciler controller in logs and metrics.
const DriftName = "nodeclaim.disruption"

// driftWorkers is the number of claims that are evaluated concurrently. A worker may wait for the cloud.
const driftWorkers = 50

// DriftReconciler maintains two conditions of claims. Drifted means that the machine differs from what its pool or the
// cloud would create today. Consolidatable means that no pod was bound to the node or removed from it for
// consolidateAfter. Disruption uses the conditions. DriftReconciler makes no decisions. See
// https://karpenter.sh/docs/concepts/disruption/.
//
//	claim, pool, node class, 5 min --> Drifted         static, requirements, instance type, provider's reason
//	last pod event, pool, its end  --> Consolidatable  True, or absent
//
// A claim that cannot be evaluated (the pool or the class is missing, the cloud does not respond) keeps its Drifted
// condition. The first such claim of a pool is reported in an event and the log, and all are counted in
// NodeClaimsUnjudged. Fill all fields except Workers, then call SetupWithManager.
type DriftReconciler struct {
	// Client reads from a cache with the indexes of controller.Index.
	Client client.Client
	// Provider returns the instance types, and its own drift reasons if it is a cloud.DriftDetector.
	Provider cloud.Provider
	Recorder *telemetry.Recorder
	Metrics  *telemetry.Metrics
	// Selection says which pools, claims and nodes are this controller's.
	Selection karpv1.Selection
	Timers    controller.Timers
	Clock     clock.PassiveClock
	// Workers is the number of claims that are evaluated concurrently. 0 means 50.
	Workers int

	classes       controller.Classes
	rules         karpv1.LabelRules
	reservation   string
	detector      cloud.DriftDetector
	catalogs      catalogCache
	unknownClaims unknownClaims
}

// SetupWithManager registers the controller. controller.Index must have run before.
func (a *DriftReconciler) SetupWithManager(mgr ctrl.Manager) error {
	classes, err := controller.ClassesOf(a.Provider, mgr.GetScheme())
	if err != nil {
		return err
	}
	declared := a.Provider.Declared()
	a.classes, a.reservation = classes.Within(a.Selection), declared.ReservationKey
	old := karpv1.LabelRules{Aliases: names.Aliases()}
	a.rules = karpv1.CoreRules().With(old).With(karpv1.LabelRules{Aliases: declared.Aliases, ValueAliases: declared.ValueAliases})
	a.detector, _ = a.Provider.(cloud.DriftDetector)
	if a.Workers == 0 {
		a.Workers = driftWorkers
	}
	b := ctrl.NewControllerManagedBy(mgr).
		Named(DriftName).
		For(&karpv1.NodeClaim{}, builder.WithPredicates(driftInputsChanged())).
		Watches(&karpv1.NodePool{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, pool client.Object) []reconcile.Request {
			return a.claimsOf(ctx, pool.GetName())
		}), builder.WithPredicates(predicate.Or[client.Object](predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WithOptions(ctrlcontroller.Options{
			MaxConcurrentReconciles: a.Workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](a.Timers.Retry, a.Timers.RetryMax),
		})
	for kind, object := range a.classes.Kinds() {
		b = b.Watches(object, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, class client.Object) []reconcile.Request {
			return a.claimsOfClass(ctx, karpv1.NodeClassReference{Group: kind.Group, Kind: kind.Kind, Name: class.GetName()})
		}))
	}
	if err := b.Complete(a); err != nil {
		return fmt.Errorf("setting up %s: %w", DriftName, err)
	}
	return nil
}

// driftInputsChanged returns a predicate for the changes of a claim on which the two conditions depend. It does not
// pass changes of the conditions themselves.
func driftInputsChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, isClaim := e.ObjectOld.(*karpv1.NodeClaim)
		after, _ := e.ObjectNew.(*karpv1.NodeClaim)
		if !isClaim || after == nil {
			return true
		}
		return !maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations) ||
			!before.Status.LastPodEventTime.Equal(&after.Status.LastPodEventTime) || before.Status.ImageID != after.Status.ImageID ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			isTrue(before, karpv1.ConditionLaunched) != isTrue(after, karpv1.ConditionLaunched) ||
			isTrue(before, karpv1.ConditionInitialized) != isTrue(after, karpv1.ConditionInitialized)
	}}
}

// isTrue reports whether a condition is true. Unlike StatusConditions it does not modify the claim, which is shared
// with the cache.
func isTrue(claim *karpv1.NodeClaim, condition string) bool {
	for i := range claim.Status.Conditions {
		if c := &claim.Status.Conditions[i]; c.Type == condition {
			return c.Status == metav1.ConditionTrue
		}
	}
	return false
}

// claimsOf returns requests for the claims of a pool.
func (a *DriftReconciler) claimsOf(ctx context.Context, pool string) []reconcile.Request {
	return a.claimsBy(ctx, controller.FieldPool, pool)
}

// claimsBy returns requests for the claims with the given value of an indexed field.
func (a *DriftReconciler) claimsBy(ctx context.Context, field, value string) []reconcile.Request {
	var claims karpv1.NodeClaimList
	if err := a.Client.List(ctx, &claims, client.MatchingFields{field: value}, client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing claims", "field", field, "value", value)
		return nil
	}
	requests := make([]reconcile.Request, 0, len(claims.Items))
	for i := range claims.Items {
		requests = append(requests, reconcile.Request{NamespacedName: types.NamespacedName{Name: claims.Items[i].Name}})
	}
	return requests
}

// claimsOfClass returns requests for the claims of the pools that use a node class, and for the claims that were
// created with it. Claims of those pools that were created with another class are included: they are compared with
// the class that their pool names today. Claims that were created with the class have drifted when it is deleted,
// whatever their pool names.
func (a *DriftReconciler) claimsOfClass(ctx context.Context, class karpv1.NodeClassReference) []reconcile.Request {
	var pools karpv1.NodePoolList
	if err := a.Client.List(ctx, &pools, client.MatchingFields{controller.FieldPoolClass: controller.ClassKey(class)},
		client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the pools of a node class", "class", class.Name)
		return nil
	}
	requests := a.claimsBy(ctx, controller.FieldClaimClass, controller.ClassKey(class))
	for i := range pools.Items {
		requests = append(requests, a.claimsOf(ctx, pools.Items[i].Name)...)
	}
	return requests // the queue removes duplicates
}

// Reconcile evaluates one claim.
func (a *DriftReconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	claim := &karpv1.NodeClaim{}
	err := a.Client.Get(ctx, request.NamespacedName, claim)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	if err != nil || !claim.DeletionTimestamp.IsZero() || !a.classes.OwnsClaim(claim) || claim.Labels[karpv1.LabelNodePool] == "" {
		a.reportUnknown(ctx, &karpv1.NodeClaim{ObjectMeta: metav1.ObjectMeta{Name: request.Name}}, nil)
		return ctrl.Result{}, nil
	}
	again, err := a.evaluate(ctx, claim)
	return controller.Settle(ctrl.Result{RequeueAfter: again}, err, a.Timers.Retry)
}

// evaluate updates the claim's conditions and returns when to evaluate it again, in addition to events.
func (a *DriftReconciler) evaluate(ctx context.Context, claim *karpv1.NodeClaim) (time.Duration, error) {
	// 1. Gather.
	pool, err := a.pool(ctx, claim)
	if err != nil {
		return 0, err
	}
	// 2. Evaluate.
	before := claim.DeepCopy()
	again := a.markConsolidatable(claim, pool)
	unknown := a.markDrift(ctx, claim, pool)
	if unknown != nil {
		again = min(again, a.Timers.RetryMax)
	}
	// 3. Act.
	a.reportUnknown(ctx, claim, unknown)
	if equality.Semantic.DeepEqual(before.Status, claim.Status) {
		return again, nil
	}
	if err := a.Client.Status().Patch(ctx, claim, controller.Locked(before)); err != nil {
		return 0, fmt.Errorf("writing the status of claim %s: %w", claim.Name, err)
	}
	return again, nil
}

// pool returns the claim's pool, or nil if it does not exist.
func (a *DriftReconciler) pool(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodePool, error) {
	pool := &karpv1.NodePool{}
	name := claim.Labels[karpv1.LabelNodePool]
	err := a.Client.Get(ctx, types.NamespacedName{Name: name}, pool)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading pool %s of claim %s: %w", name, claim.Name, err)
	}
	if err != nil {
		return nil, nil
	}
	return pool, nil
}

// markConsolidatable sets or clears Consolidatable, and returns the time until the result may change, at most
// Timers.Drift.
func (a *DriftReconciler) markConsolidatable(claim *karpv1.NodeClaim, pool *karpv1.NodePool) time.Duration {
	conditions := claim.StatusConditions()
	if pool != nil {
		if until, counts := consolidatableFrom(claim, pool); counts {
			left := until.Sub(a.Clock.Now())
			if left <= 0 {
				conditions.SetTrue(karpv1.ConditionConsolidatable)
				return a.Timers.Drift
			}
			_ = conditions.Clear(karpv1.ConditionConsolidatable) // fails for dependents of Ready only
			return min(left, a.Timers.Drift)
		}
	}
	_ = conditions.Clear(karpv1.ConditionConsolidatable)
	return a.Timers.Drift
}

// markDrift sets or clears Drifted. When drift cannot be evaluated, markDrift keeps the condition and returns the
// reason.
func (a *DriftReconciler) markDrift(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) *driftUnknown {
	conditions := claim.StatusConditions()
	switch {
	case !conditions.Get(karpv1.ConditionLaunched).IsTrue():
		_ = conditions.Clear(karpv1.ConditionDrifted)
		return nil
	case pool == nil && poolOf(claim) != "": // deleted; Kubernetes deletes the objects that it owned
		return nil
	case pool == nil:
		return &driftUnknown{cause: causePool, why: fmt.Errorf("NodePool %q does not exist", claim.Labels[karpv1.LabelNodePool])}
	}
	reason, unsure := a.drift(ctx, claim, pool)
	switch {
	case reason != "":
		conditions.SetTrueWithReason(karpv1.ConditionDrifted, reason, reason)
		return nil
	case unsure == nil:
		_ = conditions.Clear(karpv1.ConditionDrifted)
	}
	return unsure
}

// drift returns the first reason that applies. If it returns a driftUnknown, a reason that could not be evaluated may
// apply too.
func (a *DriftReconciler) drift(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) (string, *driftUnknown) {
	static, err := cloud.StaticDrift(claim, pool)
	switch {
	case static:
		return karpv1.ReasonNodePoolDrifted, nil
	case cloud.RequirementsDrift(claim, pool, a.rules):
		return karpv1.ReasonRequirementsDrifted, nil
	case a.detector == nil && claim.Spec.NodeClassRef != pool.Spec.Template.Spec.NodeClassRef:
		return karpv1.ReasonNodePoolDrifted, nil
	}
	ctx, cancel := context.WithTimeout(ctx, a.Timers.CatalogRead)
	defer cancel()
	var unsure *driftUnknown
	switch {
	case errors.Is(err, cloud.ErrUnstamped):
		unsure = &driftUnknown{cause: causeHash, why: err}
	case err != nil:
		unsure = &driftUnknown{cause: causeClass, why: err}
	}
	if a.Clock.Now().Sub(claim.CreationTimestamp.Time) >= a.Timers.TypeDrift {
		gone, err := a.typeGone(ctx, claim, pool)
		if gone {
			return karpv1.ReasonInstanceTypeNotFound, nil
		}
		if err != nil {
			unsure = &driftUnknown{cause: causeCatalog, why: err}
		}
	}
	if a.detector == nil {
		return "", unsure
	}
	reason, err := a.detector.Drifted(ctx, claim.DeepCopy(), pool)
	switch {
	case err == nil:
		return reason, unsure
	case errors.Is(err, cloud.ErrUnstamped):
		return "", cmp.Or(unsure, &driftUnknown{cause: causeHash, why: err})
	case errors.Is(err, cloud.ErrNotFound):
		return "", &driftUnknown{cause: causeClass, why: err}
	}
	return "", &driftUnknown{cause: causeProvider, why: err}
}

func (a *DriftReconciler) typeGone(ctx context.Context, claim *karpv1.NodeClaim, pool *karpv1.NodePool) (bool, error) {
	list, err := a.catalogs.types(pool, a.Clock.Now(), a.Timers,
		func() ([]cloud.InstanceType, error) { return a.Provider.Catalog(ctx, pool) })
	if err != nil {
		return false, fmt.Errorf("reading the catalog of instance types: %w", err)
	}
	return typeDrift(claim, catalog{types: list, reservation: a.reservation})
}
