package legacy

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

// Who deletes a source with --cascade=orphan wants to keep its pool, and the nodes with it. The API server marks the source
// with the finalizer "orphan", and the garbage collector takes the owner off what it knows to be owned, then that finalizer.
// Two things could lose the pool: the collector has not seen all that is owned (its watch of a kind ends and comes back some
// seconds later whenever the kind's definition changes, as by our own webhook), and finds the rest ownerless afterwards; or a
// pass that began before the deletion makes the source the owner again. So the source stays until this package has let go of
// everything itself, as the API server has it at that moment.
//
// What cannot be known: whether a source was deleted so if nobody watched from its deletion until the collector had taken its
// finalizer off, and the collector had seen nothing of what is owned. Then it looks like a plain deletion, and is taken for one.

// hold puts our finalizer on a source, before anything is made from it.
func (r *Reconciler) hold(ctx context.Context, s *source) (*obstacle, error) {
	base := s.DeepCopyObject().(client.Object)
	if !controllerutil.AddFinalizer(s.Object, karpv1.FinalizerMadeFrom) {
		return nil, nil
	}
	return judge(s.kind, s.GetName(), r.Client.Patch(ctx, s.Object, controller.Locked(base), client.FieldOwner(Manager)))
}

// notice starts a pass, and remembers who is being deleted, and how. The collector's finalizer tells that, and may be gone
// again before the pass begins; a watch passes over no event as long as it lasts.
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

// orphans says whether an object is being deleted without what it owns.
func orphans(object client.Object) bool {
	return !object.GetDeletionTimestamp().IsZero() && controllerutil.ContainsFinalizer(object, metav1.FinalizerOrphanDependents)
}

// releaseAll lets all sources go that are being deleted.
func (r *Reconciler) releaseAll(ctx context.Context, v *view) []error {
	var errs []error
	for _, s := range v.sources {
		if s.leaving() {
			errs = append(errs, r.release(ctx, s))
		}
	}
	return errs
}

// release lets a source go that is being deleted. What was made from it is left to the garbage collector, or, if it was
// deleted without that, freed of it for good.
func (r *Reconciler) release(ctx context.Context, s *source) error {
	if !controllerutil.ContainsFinalizer(s.Object, karpv1.FinalizerMadeFrom) {
		return nil
	}
	alone, known := r.leaving.Load(s.GetUID())
	if !known {
		return nil // its event is on the way, and starts another pass
	}
	tied, err := r.tied(ctx, s)
	if err != nil {
		return err
	}
	// Nobody may have been here to see the collector's finalizer. Then what it has freed tells, if anything: in a plain deletion
	// everything is owned until the source is gone.
	if alone.(bool) || orphans(s.Object) || slices.ContainsFunc(tied, func(o client.Object) bool { return !s.owns(o) }) {
		for _, object := range tied {
			if err := r.free(ctx, s, object); err != nil {
				return err
			}
		}
		ctrl.LoggerFrom(ctx).Info("left what was made from an older object as it is", "from", s.name(), "objects", len(tied))
	}
	base := s.DeepCopyObject().(client.Object)
	controllerutil.RemoveFinalizer(s.Object, karpv1.FinalizerMadeFrom)
	if err := r.Client.Patch(ctx, s.Object, controller.Locked(base), client.FieldOwner(Manager)); err != nil {
		return fmt.Errorf("letting %s go: %w", s.name(), err)
	}
	return nil
}

// owns says whether the source is among the owners of an object.
func (s *source) owns(object client.Object) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == s.GetUID() })
}

// tied are the pools and classes that the source owns, or would own again: of every kind of class that is served, because
// controllers of two providers may have made some.
func (r *Reconciler) tied(ctx context.Context, s *source) ([]client.Object, error) {
	var tied []client.Object
	for _, list := range []client.ObjectList{&karpv1.NodePoolList{}, &awsv1.EC2NodeClassList{}, &kwokv1alpha1.KWOKNodeClassList{}} {
		switch err := r.Live.List(ctx, list); {
		case meta.IsNoMatchError(err) || apierrors.IsNotFound(err):
			continue // the definition is not there, and no objects of it
		case err != nil:
			return nil, fmt.Errorf("listing what was made from %s: %w", s.name(), err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && (s.owns(object) || s.made(object)) {
				tied = append(tied, object)
			}
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("listing what was made from %s: %w", s.name(), err)
		}
	}
	return tied, nil
}

// free cuts the tie between a source and an object that was made from it. Even where the collector has been, the object is
// written: a write that was decided before it, which would tie it again, then fails.
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
