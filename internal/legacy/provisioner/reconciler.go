package provisioner

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/legacy/v1alpha5"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Name is the controller's name in logs and metrics.
const Name = "legacy"

// Manager is the field manager of the controller's writes.
const Manager = "karpenter-legacy"

// Reconciler maintains the objects that older objects translate to. Fill all fields, then call SetupWithManager, and
// call Serve for each of Kinds as soon as its definition is served. While one of them is not served, nothing is
// created, because the result for one object may depend on others. Objects that are being deleted are released
// anyway.
type Reconciler struct {
	// Client reads from a cache.
	Client client.Client
	// Live reads from the API server: the objects that a deleted source leaves behind must not be looked up in a
	// stale cache.
	Live     client.Reader
	Recorder *telemetry.Recorder
	Timers   controller.Timers
	// Settings returns the settings that the objects do not contain. It is called each time, because the version of
	// the cluster may change.
	Settings func(context.Context) v1alpha5.Settings
	// Simulated means that node classes are KWOKNodeClasses, and that AWSNodeTemplates are ignored.
	Simulated bool

	leaving  sync.Map // by UID, sources that are being deleted: true if their dependents are to be orphaned
	served   sync.Map // kinds for which Serve was called
	others   sync.Map // by UID, sources that another provider manages and that have been logged
	cache    cache.Cache
	watching ctrlcontroller.Controller
}

// everything is the only request: all objects together.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{everything} })
	var class client.Object = &awsv1.EC2NodeClass{}
	if r.Simulated {
		class = &kwokv1alpha1.KWOKNodeClass{}
	}
	watching, err := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&karpv1.NodePool{}, all).
		Watches(class, all).
		WithOptions(ctrlcontroller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Timers.Retry, r.Timers.RetryMax),
		}).
		Build(r)
	if err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	r.cache, r.watching = mgr.GetCache(), watching
	return nil
}

// Reconcile processes all older objects.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	// 1. Gather.
	v, err := r.gather(ctx)
	if err != nil || len(v.sources) == 0 {
		return ctrl.Result{}, err
	}
	if r.incomplete() {
		return r.settle(r.releaseAll(ctx, v))
	}
	// 2. Translate.
	if err := r.translate(ctx, v); err != nil {
		return ctrl.Result{}, err
	}
	// 3. Act, and 4. tell. Classes are written before the pools that reference them, and nothing waits for anything else.
	errs := r.releaseAll(ctx, v)
	for _, s := range v.sources {
		if !s.leaving() {
			errs = append(errs, r.attend(ctx, v, s))
		}
	}
	errs = append(errs, r.prune(ctx, v))
	return r.settle(errs)
}

// attend writes the result objects of a source to the API and reports the outcome.
func (r *Reconciler) attend(ctx context.Context, v *view, s *source) error {
	if err := r.claim(ctx, s); err != nil {
		return err
	}
	switch met, err := r.hold(ctx, s); {
	case err != nil:
		return err
	case met != nil:
		return r.report(ctx, s, []obstacle{*met})
	}
	made, err := r.keepAll(ctx, v, s)
	return errors.Join(err, r.report(ctx, s, made))
}

// settle ends a pass: it converts its errors to a result. Stale writes are retried soon, and everything is evaluated
// periodically, because the result depends on the version of the cluster, which does not send events.
func (r *Reconciler) settle(errs []error) (ctrl.Result, error) {
	result := ctrl.Result{RequeueAfter: r.Timers.ClassRecheck}
	var failed []error
	for _, err := range errs {
		switch {
		case err == nil:
		case controller.Stale(err):
			result.RequeueAfter = r.Timers.Retry
		default:
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return ctrl.Result{}, err
	}
	return result, nil
}
