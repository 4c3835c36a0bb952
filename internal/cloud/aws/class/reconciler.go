package class

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/userdata"
)

// Name is the controller's name in logs and metrics.
const Name = "nodeclass"

const (
	workers     = 10               // number of concurrent reconciliations
	pause       = time.Minute      // interval of reconciliations
	settledFor  = 5 * time.Minute  // interval of reads of images and security groups that were found
	testedFor   = 30 * time.Minute // how long a dry run's result is used
	waiting     = 10 * time.Minute // interval while a class waits for its claims
	retry       = time.Second      // after a stale read, and the first delay after an error
	longestWait = time.Minute      // maximum delay after errors
)

// Reconciler reconciles EC2NodeClasses. Set the fields, then call SetupWithManager.
type Reconciler struct {
	// Client reads from a cache.
	Client  client.Client
	Sources *discovery.Sources
	// DryRun is nil with --disable-dry-run.
	DryRun *DryRun
	// DeleteTemplates deletes the launch templates of a class.
	DeleteTemplates func(ctx context.Context, class string) error
	// Emit emits an event of type Normal on a class.
	Emit func(class *awsv1.EC2NodeClass, reason, message string)
	// IgnoreReservations means that capacity reservations are not used. Otherwise Counted receives those of each class,
	// whenever they are read; it may be nil.
	IgnoreReservations bool
	Counted            func(discovery.FoundReservations)
	// UserData receives the size in bytes of the user data of a class's machines, without the labels and taints of
	// pools, and 0 when the class is gone. It may be nil.
	UserData func(class string, bytes int)
	// IsolatedVPC means that IAM cannot be reached (--isolated-vpc): no profile is deleted.
	IsolatedVPC bool
	// ReservedENIs is the number of network interfaces that pods cannot use (--reserved-enis).
	ReservedENIs int64
	// KubeletExpressions means that the feature gate NodeClassCEL is on. Evaluate returns why an expression of the class
	// has no valid result for one of its types, and "" if all have. It may be nil.
	KubeletExpressions bool
	Evaluate           func(ctx context.Context, class *awsv1.EC2NodeClass) (failure string, err error)
	// Now returns the current time.
	Now func() time.Time

	memory checkResults
}

// SetupWithManager registers the controller with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		For(&awsv1.EC2NodeClass{}, builder.WithPredicates(predicate.Funcs{UpdateFunc: changedByOthers})).
		Watches(&karpv1.NodeClaim{}, handler.Funcs{DeleteFunc: deletedClaim}).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](retry, longestWait),
		}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// Reconcile reconciles one class.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	class := &awsv1.EC2NodeClass{}
	if err := r.Client.Get(ctx, request.NamespacedName, class); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var result ctrl.Result
	var err error
	if class.DeletionTimestamp.IsZero() {
		err = r.update(ctx, class)
		result = ctrl.Result{RequeueAfter: r.again(class)}
	} else {
		result, err = r.finalize(ctx, class)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return ctrl.Result{RequeueAfter: retry}, nil
	}
	if late := onlyLate(err); late != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("waiting for EC2 to know a new instance profile", "EC2NodeClass", class.Name, "again", late.again.String())
		return ctrl.Result{RequeueAfter: late.again}, nil
	}
	if err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}

func (r *Reconciler) update(ctx context.Context, class *awsv1.EC2NodeClass) error {
	// 1. Add the finalizer before anything is created for the class.
	if err := r.adopt(ctx, class); err != nil {
		return err
	}
	// 2. Write the hash, to the claims before the class. A claim that cannot be written prevents the class from getting
	// its hash, and nothing else.
	unstamped := r.stamp(ctx, class)
	if apierrors.IsNotFound(unstamped) {
		return unstamped
	}
	// 3. Read AWS and update the conditions.
	base := class.DeepCopy()
	cluster, failed := r.Sources.Cluster.Facts(ctx)
	failed = errors.Join(failed, unstamped, r.discover(ctx, class, cluster))
	// 4. Validate.
	if cluster.Version != "" {
		failed = errors.Join(failed, r.validate(ctx, class, cluster))
	}
	// 5. Write the status.
	if equality.Semantic.DeepEqual(base.Status, class.Status) {
		return failed
	}
	if err := r.Client.Status().Patch(ctx, class, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return err
		}
		return errors.Join(failed, fmt.Errorf("writing the status of EC2NodeClass %q: %w", class.Name, err))
	}
	return failed
}

// adopt adds the finalizer.
func (r *Reconciler) adopt(ctx context.Context, class *awsv1.EC2NodeClass) error {
	base := class.DeepCopy()
	if !controllerutil.AddFinalizer(class, awsv1.FinalizerTermination) {
		return nil
	}
	return r.Client.Patch(ctx, class, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

// discover writes what the selectors match. The parts are independent: an error of one does not affect the others.
func (r *Reconciler) discover(ctx context.Context, class *awsv1.EC2NodeClass, cluster discovery.Facts) error {
	show := discovery.Show{Class: class}
	var failed []error
	answered := func(condition string, err error) bool {
		if err != nil {
			show.Unanswered(condition, err)
			failed = append(failed, err)
		}
		return err == nil
	}
	if cluster.Version != "" && r.due(class, awsv1.ConditionAMIsReady) {
		images, err := r.Sources.Images.Find(ctx, class, cluster.Version)
		if show.Images(images, err) || answered(awsv1.ConditionAMIsReady, err) {
			r.memory.looked(class, awsv1.ConditionAMIsReady, r.Now())
		}
	}
	subnets, err := r.Sources.Subnets.Find(ctx, class)
	if answered(awsv1.ConditionSubnetsReady, err) {
		show.Subnets(subnets)
		if r.due(class, awsv1.ConditionSecurityGroupsReady) {
			groups, err := r.Sources.Groups.Find(ctx, class)
			if answered(awsv1.ConditionSecurityGroupsReady, err) {
				show.Groups(groups, subnets)
				r.memory.looked(class, awsv1.ConditionSecurityGroupsReady, r.Now())
			}
		}
	}
	profile, err := r.Sources.Profiles.Ensure(ctx, class)
	if !show.Profile(profile, err) {
		answered(awsv1.ConditionInstanceProfileReady, err)
	}
	group, err := r.Sources.Placements.Find(ctx, class)
	if show.Placement(group, err); err != nil {
		failed = append(failed, err)
	}
	return errors.Join(append(failed, r.discoverReservations(ctx, class, show))...)
}

// due reports whether the resources of a condition must be read again: always while it is not true.
func (r *Reconciler) due(class *awsv1.EC2NodeClass, condition string) bool {
	return !class.Condition(condition).IsTrue() || r.Now().Sub(r.memory.lookedAt(class, condition)) >= settledFor
}

// validate sets ValidationSucceeded. In case of an error it stays as it was.
func (r *Reconciler) validate(ctx context.Context, class *awsv1.EC2NodeClass, cluster discovery.Facts) error {
	r.warnUserDataSize(ctx, class, cluster)
	found := examine(class, cluster, r.KubeletExpressions)
	var err error
	if found == nil {
		if found, err = r.placement(ctx, class); err != nil {
			return err
		}
	}
	if found == nil {
		if found, err = r.evaluated(ctx, class); err != nil {
			return err
		}
	}
	if found == nil {
		if found, err = r.dryRunResult(ctx, class, cluster); err != nil {
			return err
		}
		showProfile(class, found)
	}
	if found == nil {
		found = accepted(class, cluster)
		if hint := PodsHint(class, cluster, r.ReservedENIs); found.message == "" {
			found.message = hint
		}
	}
	condition := conditionOf(found)
	if old := class.Condition(condition.Type); old.Status == condition.Status && old.Reason == condition.Reason && discovery.SameWords(old.Message, condition.Message) {
		condition.Message = old.Message
	}
	class.StatusConditions().Set(condition)
	return nil
}

// showProfile sets the condition of an instance profile that the class refers to from the result of a dry run. IAM is
// not called for it.
func showProfile(class *awsv1.EC2NodeClass, found *finding) {
	switch {
	case class.Spec.InstanceProfile == nil:
	case found == nil:
		class.StatusConditions().SetTrue(awsv1.ConditionInstanceProfileReady)
	case found.reason == awsv1.ReasonInstanceProfileNotFound:
		class.StatusConditions().SetFalse(awsv1.ConditionInstanceProfileReady, found.reason, found.message)
	}
}

// warnUserDataSize reports the size of the user data, and warns if an additional label of a pool may exceed the limit.
func (r *Reconciler) warnUserDataSize(ctx context.Context, class *awsv1.EC2NodeClass, cluster discovery.Facts) {
	data, err := sample(class, cluster)
	bytes, near := len(data), userdata.Near(class.Family(), data)
	if size := new(userdata.SizeError); errors.As(err, &size) {
		bytes, near = size.Compressed, true
	}
	if r.UserData != nil {
		r.UserData(class.Name, bytes)
	}
	if before := r.memory.nearLimit(class.UID, near); near && !before {
		ctrl.LoggerFrom(ctx).Info("the user data is near the limit of EC2", "EC2NodeClass", class.Name, "bytes", bytes, "limit", userdata.Limit)
	}
}

// dryRunResult returns the result of the dry runs. Those that passed are not repeated for half an hour unless the class
// changes. Others are repeated each time, because permissions and profiles can be corrected without a change of the
// class.
func (r *Reconciler) dryRunResult(ctx context.Context, class *awsv1.EC2NodeClass, cluster discovery.Facts) (*finding, error) {
	if r.DryRun == nil {
		return nil, nil
	}
	data, err := sample(class, cluster)
	if err != nil {
		return nil, err
	}
	key := contents(class, data)
	if r.memory.hasPassed(class.UID, key, r.Now()) {
		return nil, nil
	}
	found, err := r.DryRun.check(ctx, class, cluster)
	if errors.Is(err, errNoProfile) {
		r.Sources.Profiles.Forget(class)
		return nil, r.memory.profileLate(class.UID, err)
	}
	r.memory.profileFound(class.UID)
	if found == nil && err == nil {
		r.memory.passed(class.UID, key, r.Now())
	}
	return found, err
}

// finalize deletes a class: when no claim uses it, its resources are deleted, and then the finalizer is removed.
func (r *Reconciler) finalize(ctx context.Context, class *awsv1.EC2NodeClass) (ctrl.Result, error) {
	if !controllerutil.ContainsFinalizer(class, awsv1.FinalizerTermination) {
		r.memory.forget(class.UID)
		return ctrl.Result{}, nil
	}
	claims, err := r.claimsOf(ctx, class)
	if err != nil {
		return ctrl.Result{}, err
	}
	if len(claims) > 0 {
		r.Emit(class, ReasonWaiting, fmt.Sprintf("waiting for %d NodeClaims that use the class to terminate, %s among them",
			len(claims), claims[0].Name))
		return ctrl.Result{RequeueAfter: waiting}, nil
	}
	if !r.IsolatedVPC {
		if err := r.Sources.Profiles.Remove(ctx, class); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := r.DeleteTemplates(ctx, class.Name); err != nil {
		return ctrl.Result{}, fmt.Errorf("deleting the launch templates of EC2NodeClass %q: %w", class.Name, err)
	}
	base := class.DeepCopy()
	controllerutil.RemoveFinalizer(class, awsv1.FinalizerTermination)
	if err := r.Client.Patch(ctx, class, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, err
	}
	r.memory.forget(class.UID)
	if r.UserData != nil {
		r.UserData(class.Name, 0)
	}
	return ctrl.Result{}, nil
}

// ReasonWaiting is the reason of the event on a class whose deletion waits for claims.
const ReasonWaiting = "WaitingOnNodeClaimTermination"

// claimsOf returns the claims that refer to the class.
func (r *Reconciler) claimsOf(ctx context.Context, class *awsv1.EC2NodeClass) ([]karpv1.NodeClaim, error) {
	var all karpv1.NodeClaimList
	if err := r.Client.List(ctx, &all); err != nil {
		return nil, fmt.Errorf("listing the claims of EC2NodeClass %q: %w", class.Name, err)
	}
	var claims []karpv1.NodeClaim
	for i := range all.Items {
		if name, ok := classOf(&all.Items[i]); ok && name == class.Name {
			claims = append(claims, all.Items[i])
		}
	}
	return claims, nil
}

// classOf returns the name of the EC2NodeClass that a claim refers to.
func classOf(claim *karpv1.NodeClaim) (name string, ok bool) {
	ref := claim.Spec.NodeClassRef
	return ref.Name, ref.Group == awsv1.Group && ref.Kind == awsv1.Kind
}

// stamp writes the drift hash to the claims of the class, and then to the class.
func (r *Reconciler) stamp(ctx context.Context, class *awsv1.EC2NodeClass) error {
	if err := r.stampClaims(ctx, class); err != nil {
		return err
	}
	base := class.DeepCopy()
	metav1.SetMetaDataAnnotation(&class.ObjectMeta, awsv1.AnnotationNodeClassHash, class.Hash())
	metav1.SetMetaDataAnnotation(&class.ObjectMeta, awsv1.AnnotationNodeClassHashVersion, awsv1.HashVersion)
	if equality.Semantic.DeepEqual(base.Annotations, class.Annotations) {
		return nil
	}
	if err := r.Client.Patch(ctx, class, client.MergeFrom(base)); err != nil {
		return fmt.Errorf("stamping EC2NodeClass %q: %w", class.Name, err)
	}
	return nil
}

// stampClaims writes the hash to launched claims of the class whose hash was computed by another version, including
// launches by an earlier version. They count as not drifted unless they are known to differ from the class, because the
// two hashes cannot be compared. Claims that are not launched yet get their hash from the launch. A claim that cannot
// be written does not affect the others. A claim that another client has just written is retried at the next
// reconciliation.
func (r *Reconciler) stampClaims(ctx context.Context, class *awsv1.EC2NodeClass) error {
	var all karpv1.NodeClaimList
	if err := r.Client.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the claims of EC2NodeClass %q: %w", class.Name, err)
	}
	var failed []error
	for i := range all.Items {
		if name, ok := classOf(&all.Items[i]); !ok || name != class.Name || stamped(&all.Items[i]) {
			continue
		}
		claim := all.Items[i].DeepCopy() // copied because it is from the cache
		if !claim.Condition(karpv1.ConditionLaunched).IsTrue() {
			continue
		}
		if err := r.restamp(ctx, class, claim); client.IgnoreNotFound(err) != nil {
			failed = append(failed, fmt.Errorf("stamping claim %s: %w", claim.Name, err))
		}
	}
	return errors.Join(failed...)
}

// stamped reports whether the claim's hash can be compared with the class's.
func stamped(claim *karpv1.NodeClaim) bool {
	return claim.Annotations[awsv1.AnnotationNodeClassHash] != "" && claim.Annotations[awsv1.AnnotationNodeClassHashVersion] == awsv1.HashVersion
}

// restamp gives a claim the hash of its class with the kubelet settings of its pool, which replace the class's. A hash
// by which the claim is known to have drifted is kept; other drift reasons do not depend on the hash. If the settings
// are invalid, the claim is not changed, and drift by the hash remains unknown.
func (r *Reconciler) restamp(ctx context.Context, class *awsv1.EC2NodeClass, claim *karpv1.NodeClaim) error {
	settings := claim.Annotations
	if name := claim.Labels[karpv1.LabelNodePool]; name != "" {
		pool := &karpv1.NodePool{}
		err := r.Client.Get(ctx, types.NamespacedName{Name: name}, pool)
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading its pool %s: %w", name, err)
		}
		if err == nil && pool.Spec.Template.Spec.NodeClassRef == claim.Spec.NodeClassRef {
			settings = pool.Annotations
		}
	}
	made, err := userdata.WithKubelet(class, settings)
	if err != nil {
		// Drift detection reports the pool's error in an event.
		ctrl.LoggerFrom(ctx).V(1).Info("the claim keeps its hash", "NodeClaim", claim.Name, "cause", err.Error())
		return nil
	}
	drifted := claim.Condition(karpv1.ConditionDrifted)
	keep := drifted.IsTrue() && drifted.Reason == awsv1.ReasonNodeClassDrift && claim.Annotations[awsv1.AnnotationNodeClassHash] != ""
	base := claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, awsv1.AnnotationNodeClassHashVersion, awsv1.HashVersion)
	if !keep {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, awsv1.AnnotationNodeClassHash, made.Hash())
	}
	return r.Client.Patch(ctx, claim, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
