package legacy

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
	"github.com/karpenter-go/karpenter/internal/legacy"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Name is the controller's name in logs and metrics.
const Name = "legacy"

// Manager is the name under which the controller writes.
const Manager = "karpenter-legacy"

// Reconciler keeps what older objects have become. Fill all fields, then call SetupWithManager, and Serve for each of Kinds
// as soon as its definition is served. As long as one of them is not, nothing is made, because what one object means may
// depend on others; but what is being deleted is let go of.
type Reconciler struct {
	// Client reads from a cache.
	Client client.Client
	// Live asks the API server itself: what an object that goes leaves behind must not be looked for in what was.
	Live     client.Reader
	Recorder *telemetry.Recorder
	Timers   controller.Timers
	// Settings are what the objects do not say themselves. They are asked for each time, because the version of the
	// cluster may change.
	Settings func(context.Context) legacy.Settings
	// Simulated says that node classes are KWOKNodeClasses, and that AWSNodeTemplates are left alone.
	Simulated bool

	leaving  sync.Map // by UID, sources that are being deleted: whether without what was made from them
	served   sync.Map // kinds that Serve was called for
	cache    cache.Cache
	watching ctrlcontroller.Controller
}

// everything is the one request: all objects together.
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

// Reconcile looks at all older objects.
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
	// 3. Act, and 4. tell. Classes come before the pools that name them, and nothing waits for anything else.
	errs := r.releaseAll(ctx, v)
	for _, s := range v.sources {
		if !s.leaving() {
			errs = append(errs, r.attend(ctx, v, s))
		}
	}
	errs = append(errs, r.prune(ctx, v))
	return r.settle(errs)
}

// attend brings what a source has become into the API, and tells.
func (r *Reconciler) attend(ctx context.Context, v *view, s *source) error {
	if err := r.claim(ctx, s); err != nil {
		return err
	}
	switch met, err := r.hold(ctx, s); {
	case err != nil:
		return err
	case met != nil:
		return r.tell(ctx, s, []obstacle{*met})
	}
	made, err := r.keepAll(ctx, v, s)
	return errors.Join(err, r.tell(ctx, s, made))
}

// settle is the end of a pass: what was stale is looked at again soon, and everything once in a while, because the version
// of the cluster is among what objects depend on and sends no event.
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
