package provisioner

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// A deletion of a source with --cascade=orphan keeps its pool, and the nodes of the pool. The API server sets the
// finalizer "orphan" on the source. The garbage collector removes the owner from the objects that it knows to be
// owned, and then removes that finalizer (https://kubernetes.io/docs/concepts/architecture/garbage-collection/). Two
// situations could lose the pool: the collector has not seen all owned objects (its watch of a kind restarts some
// seconds after a change of the kind's definition, for example by this project's webhook), and finds the rest without
// owner afterward; or a pass that began before the deletion makes the source the owner again. So the source exists
// until this package has released all of its objects, as the API server has them at that moment.
//
// One situation cannot be detected: a source was deleted this way while no controller ran until the collector had
// removed its finalizer, and the collector had seen none of the owned objects. It is handled like a plain deletion.

// hold sets this package's finalizer on a source, before anything is created from it. It returns an obstacle if the
// API server rejects the write.
func (r *Reconciler) hold(ctx context.Context, s *source) (*obstacle, error) {
	base := s.DeepCopyObject().(client.Object)
	if !controllerutil.AddFinalizer(s.Object, karpv1.FinalizerMadeFrom) {
		return nil, nil
	}
	return judge(s.kind, s.GetName(), r.Client.Patch(ctx, s.Object, controller.Locked(base), client.FieldOwner(Manager)))
}

// notice triggers a pass, and records which sources are being deleted, and how. The collector's finalizer
// distinguishes the kinds of deletion, and may be removed before the pass begins. A watch does not skip events while
// it lasts.
func (r *Reconciler) notice(_ context.Context, object client.Object) []reconcile.Request {
	uid := object.GetUID()
	switch before, known := r.leaving.Load(uid); {
	case !controllerutil.ContainsFinalizer(object, karpv1.FinalizerMadeFrom):
		r.leaving.Delete(uid)
	case !object.GetDeletionTimestamp().IsZero():
		r.leaving.Store(uid, orphans(object) || known && before.(bool))
	}
	return []reconcile.Request{everything}
}

// orphans reports whether an object is being deleted without the objects that it owns.
func orphans(object client.Object) bool {
	return !object.GetDeletionTimestamp().IsZero() && controllerutil.ContainsFinalizer(object, metav1.FinalizerOrphanDependents)
}

// releaseAll releases all sources that are being deleted, and returns their errors.
func (r *Reconciler) releaseAll(ctx context.Context, v *view) []error {
	var errs []error
	for _, s := range v.sources {
		if s.leaving() {
			errs = append(errs, r.release(ctx, s))
		}
	}
	return errs
}

// release releases a source that is being deleted. The objects that were created from it are left to the garbage
// collector, or, if the source was deleted without its dependents, separated from it permanently.
func (r *Reconciler) release(ctx context.Context, s *source) error {
	if !controllerutil.ContainsFinalizer(s.Object, karpv1.FinalizerMadeFrom) {
		return nil
	}
	alone, known := r.leaving.Load(s.GetUID())
	if !known {
		return nil // its event is pending, and starts another pass
	}
	tied, err := r.tied(ctx, s)
	if err != nil {
		return err
	}
	// No controller may have been running to see the collector's finalizer. Then an object without owner shows the
	// kind of deletion: in a plain deletion, all objects are owned until the source is gone.
	if alone.(bool) || orphans(s.Object) || slices.ContainsFunc(tied, func(o client.Object) bool { return !s.owns(o) }) {
		for _, object := range tied {
			if err := r.free(ctx, s, object); err != nil {
				return err
			}
		}
		ctrl.LoggerFrom(ctx).Info("kept the objects that were created from an older object", "from", s.name(), "objects", len(tied))
	}
	base := s.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(s.Object, karpv1.FinalizerMadeFrom)
	if err := r.Client.Patch(ctx, s.Object, controller.Locked(base), client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("releasing %s: %w", s.name(), err)
	}
	return nil
}

// owns reports whether the source is among the owners of an object.
func (s *source) owns(object client.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == s.GetUID() })
}

// tied returns the pools and classes that the source owns, or would own again: of every served kind of class, because
// controllers of two providers may have created some.
func (r *Reconciler) tied(ctx context.Context, s *source) ([]client.Object, error) {
	var tied []client.Object
	for _, list := range []client.ObjectList{&karpv1.NodePoolList{}, &awsv1.EC2NodeClassList{}, &kwokv1alpha1.KWOKNodeClassList{}} {
		switch err := r.Live.List(ctx, list); {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			continue // the definition does not exist, so there are no objects
		case err != nil:
			return nil, fmt.Errorf("listing the objects created from %s: %w", s.name(), err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && (s.owns(object) || s.made(object)) {
				tied = append(tied, object)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing the objects created from %s: %w", s.name(), err)
		}
	}
	return tied, nil
}

// free removes the relation between a source and an object that was created from it. The object is written even if
// the collector has already removed the owner: a concurrent write that would restore the relation then fails as
// stale.
func (r *Reconciler) free(ctx context.Context, s *source, object client.Object) error {
	base := object.DeepCopyObject().(client.Object)
	object.SetOwnerReferences(slices.DeleteFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == s.GetUID() }))
	annotations := object.GetAnnotations()
	delete(annotations, karpv1.AnnotationMadeFrom)
	object.SetAnnotations(annotations)
	if err := r.Client.Patch(ctx, object, controller.Locked(base), client.FieldOwner(Manager)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("freeing %s %s of %s: %w", kindOf(object), object.GetName(), s.name(), err)
	}
	return nil
}
