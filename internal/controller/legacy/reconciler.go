package legacy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/controller"
	"github.com/karpenter-go/karpenter/internal/legacy"
	"github.com/karpenter-go/karpenter/internal/telemetry"
)

// Name is the controller's name in logs and metrics.
const Name = "legacy"

// Manager is the name under which the controller writes.
const Manager = "karpenter-legacy"

// Reconciler keeps what older objects have become. Fill all fields, then call SetupWithManager. The definitions of
// Provisioners, and of AWSNodeTemplates unless machines are simulated, must be served.
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

	leaving sync.Map // by UID, sources that are being deleted: whether without what was made from them
}

// everything is the one request: all objects together.
var everything = reconcile.Request{NamespacedName: types.NamespacedName{Name: "everything"}}

// SetupWithManager registers the controller.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	all := handler.EnqueueRequestsFromMapFunc(func(context.Context, client.Object) []reconcile.Request { return []reconcile.Request{everything} })
	sources := handler.EnqueueRequestsFromMapFunc(r.notice)
	b := ctrl.NewControllerManagedBy(mgr).
		Named(Name).
		Watches(&karpv1alpha5.Provisioner{}, sources).
		Watches(&karpv1.NodePool{}, all).
		WithOptions(ctrlcontroller.Options{
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](r.Timers.Retry, r.Timers.RetryMax),
		})
	if r.Simulated {
		b = b.Watches(&kwokv1alpha1.KWOKNodeClass{}, all)
	} else {
		b = b.Watches(&awsv1alpha1.AWSNodeTemplate{}, sources).Watches(&awsv1.EC2NodeClass{}, all)
	}
	if err := b.Complete(r); err != nil {
		return fmt.Errorf("setting up %s: %w", Name, err)
	}
	return nil
}

// source is an older object and what it has become.
type source struct {
	client.Object
	kind   string
	result legacy.Result
}

// name is the source as annotations have it.
func (s *source) name() string { return s.kind + "/" + s.GetName() }

// leaving says whether the source is being deleted: nothing is made from it any more.
func (s *source) leaving() bool { return !s.GetDeletionTimestamp().IsZero() }

// Reconcile looks at all older objects.
func (r *Reconciler) Reconcile(ctx context.Context, _ ctrl.Request) (ctrl.Result, error) {
	// 1. Gather.
	v, err := r.gather(ctx)
	if err != nil || len(v.sources) == 0 {
		return ctrl.Result{}, err
	}
	// 2. Translate.
	if err := r.translate(ctx, v); err != nil {
		return ctrl.Result{}, err
	}
	// 3. Act, and 4. tell. Classes come before the pools that name them, and nothing waits for anything else.
	var errs []error
	for _, s := range v.sources {
		if s.leaving() {
			errs = append(errs, r.release(ctx, s))
			continue
		}
		errs = append(errs, r.attend(ctx, v, s))
	}
	errs = append(errs, r.prune(ctx, v))
	return r.settle(errs)
}

// attend brings what a source has become into the API, and tells.
func (r *Reconciler) attend(ctx context.Context, v *view, s *source) error {
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

// gather reads all older objects, AWSNodeTemplates first, ordered by name, and what is there of what they become.
func (r *Reconciler) gather(ctx context.Context) (*view, error) {
	v := &view{}
	if !r.Simulated {
		var templates awsv1alpha1.AWSNodeTemplateList
		if err := r.Client.List(ctx, &templates); err != nil {
			return nil, fmt.Errorf("listing AWSNodeTemplates: %w", err)
		}
		for i := range templates.Items {
			v.sources = append(v.sources, &source{Object: &templates.Items[i], kind: awsv1alpha1.Kind})
		}
	}
	var provisioners karpv1alpha5.ProvisionerList
	if err := r.Client.List(ctx, &provisioners); err != nil {
		return nil, fmt.Errorf("listing Provisioners: %w", err)
	}
	for i := range provisioners.Items {
		v.sources = append(v.sources, &source{Object: &provisioners.Items[i], kind: karpv1alpha5.Kind})
	}
	slices.SortFunc(v.sources, func(a, b *source) int {
		return cmp.Or(strings.Compare(a.kind, b.kind), strings.Compare(a.GetName(), b.GetName()))
	})
	if r.Simulated || len(v.sources) == 0 {
		return v, nil // simulated machines have a class for each Provisioner, which nobody else can need
	}
	var pools karpv1.NodePoolList
	if err := r.Client.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing NodePools: %w", err)
	}
	var classes awsv1.EC2NodeClassList
	if err := r.Client.List(ctx, &classes); err != nil {
		return nil, fmt.Errorf("listing EC2NodeClasses: %w", err)
	}
	v.pools, v.classes = pools.Items, classes.Items
	return v, nil
}

// translate finds out what each of them means.
func (r *Reconciler) translate(ctx context.Context, v *view) error {
	objects := make([]*unstructured.Unstructured, 0, len(v.sources))
	for _, s := range v.sources {
		object, err := untyped(s)
		if err != nil {
			return fmt.Errorf("reading %s: %w", s.name(), err)
		}
		objects = append(objects, object)
	}
	settings := r.Settings(ctx)
	settings.Separate, settings.Using = v.separate(), v.using()
	for i, result := range legacy.Translate(objects, settings) {
		v.sources[i].result = result
	}
	return nil
}

// untyped is the object as it is in the API.
func untyped(s *source) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(s.Object)
	if err != nil {
		return nil, err
	}
	object := &unstructured.Unstructured{Object: fields}
	version := karpv1alpha5.GroupVersion
	if s.kind == awsv1alpha1.Kind {
		version = awsv1alpha1.GroupVersion
	}
	object.SetGroupVersionKind(version.WithKind(s.kind))
	return object, nil
}
