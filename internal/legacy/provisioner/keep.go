package provisioner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// obstacle is why a result object is not in the API as it should be.
type obstacle struct {
	reason, message string // a reason of the condition Applied
}

// wanted returns the result objects of a source, classes first.
func (s *source) wanted() []client.Object {
	var objects []client.Object
	for _, class := range s.result.Classes {
		objects = append(objects, class)
	}
	if s.result.Simulated != nil {
		objects = append(objects, s.result.Simulated)
	}
	if s.result.Pool != nil {
		objects = append(objects, s.result.Pool)
	}
	return objects
}

// keepAll writes all result objects of a source to the API. Obstacles are reported in its status. After an error, the
// operation is retried. An obstacle of one object does not affect the others.
func (r *Reconciler) keepAll(ctx context.Context, v *view, s *source) ([]obstacle, error) {
	var obstacles []obstacle
	var errs []error
	switch met, err := r.poolTaken(ctx, v, s); {
	case err != nil:
		return nil, err
	case met != nil:
		return []obstacle{*met}, nil
	}
	for _, object := range s.wanted() {
		met, err := r.keep(ctx, v, s, object)
		if met != nil {
			obstacles = append(obstacles, *met)
		}
		errs = append(errs, err)
	}
	return obstacles, errors.Join(errs...)
}

// poolTaken returns the obstacle of a source whose pool's name another pool has. Then its classes are not changed
// either: the other pool may use them, and the owner of the classes deletes them when it is deleted.
func (r *Reconciler) poolTaken(ctx context.Context, v *view, s *source) (*obstacle, error) {
	if s.result.Pool == nil {
		return nil, nil
	}
	live := &karpv1.NodePool{}
	if found, err := r.read(ctx, s.result.Pool.Name, live); err != nil || !found || s.made(live) {
		return nil, err
	}
	return v.hindrance(s, live), nil
}

// keep writes one object to the API. It returns an obstacle if that is permanently impossible, and an error if it has
// to be retried.
func (r *Reconciler) keep(ctx context.Context, v *view, s *source, want client.Object) (*obstacle, error) {
	kind, name := kindOf(want), want.GetName()
	live := want.DeepCopyObject().(client.Object)
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(want), live)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.own(s, want); err != nil {
			return nil, err
		}
		// The copy keeps want as it was translated, without the fields that the server adds.
		return judge(kind, name, r.Client.Create(ctx, want.DeepCopyObject().(client.Object), client.FieldOwner(Manager)))
	case err != nil:
		return nil, fmt.Errorf("reading %s %s: %w", kind, name, err)
	}
	if met := v.hindrance(s, live); met != nil {
		if met.reason == karpv1alpha5.ReasonNameTaken && acceptable(live) {
			return nil, nil
		}
		return met, nil
	}
	base := live.DeepCopyObject().(client.Object)
	setSpec(live, want)
	if class, isClass := live.(*awsv1.EC2NodeClass); isClass && s.result.Unused && s.made(live) {
		class.Spec.Kubelet = base.(*awsv1.EC2NodeClass).Spec.Kubelet // the nodes of a deleted Provisioner may still exist
	}
	if !s.made(live) { // hindrance has checked the previous owner
		live.SetOwnerReferences(slices.DeleteFunc(live.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.Controller != nil && *o.Controller }))
	}
	if err := r.own(s, live); err != nil {
		return nil, err
	}
	if equality.Semantic.DeepEqual(base, live) {
		return nil, nil
	}
	return judge(kind, name, r.Client.Patch(ctx, live, controller.Locked(base), client.FieldOwner(Manager)))
}

// acceptable reports whether a manually created object is acceptable as it is. A Provisioner does not describe simulated
// nodes, so any class of them matches it.
func acceptable(live client.Object) bool {
	_, simulated := live.(*kwokv1alpha1.KWOKNodeClass)
	return simulated && live.GetDeletionTimestamp().IsZero()
}

// hindrance returns why an existing object cannot be taken as the source's result now, or nil if it can.
func (v *view) hindrance(s *source, live client.Object) *obstacle {
	kind, name := kindOf(live), live.GetName()
	if !s.made(live) {
		former := v.former(live)
		switch {
		case former == nil:
			return &obstacle{karpv1alpha5.ReasonNameTaken,
				fmt.Sprintf("%s %q was not created from this object and is not changed; delete or rename one of the two, or transfer it with the annotation %s: %s", kind, name, karpv1.AnnotationMadeFrom, s.name())}
		case v.served(former, name):
			return &obstacle{karpv1alpha5.ReasonNotObserved,
				fmt.Sprintf("%s %q belongs to %s until its NodePool references another; then it belongs to this object", kind, name,
					former.name())}
		}
	}
	if !live.GetDeletionTimestamp().IsZero() {
		return &obstacle{karpv1alpha5.ReasonNotObserved, fmt.Sprintf("%s %q is being deleted; it is created again afterwards", kind, name)}
	}
	return nil
}

// judge converts the error of a write. It returns an obstacle for a permanent rejection by the API server, and an
// error if the write has to be retried.
func judge(kind, name string, err error) (*obstacle, error) {
	switch {
	case err == nil:
		return nil, nil
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err):
		return &obstacle{karpv1alpha5.ReasonRefused, fmt.Sprintf("the API server refuses %s %q: %v", kind, name, err)}, nil
	case apierrors.IsAlreadyExists(err): // not in the cache yet: its event starts the next pass
		return nil, nil
	}
	return nil, fmt.Errorf("writing %s %s: %w", kind, name, err)
}

// own records on an object that it was created from the source.
func (r *Reconciler) own(s *source, object client.Object) error {
	annotations := object.GetAnnotations()
	if annotations[karpv1.AnnotationMadeFrom] != s.name() {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[karpv1.AnnotationMadeFrom] = s.name()
		object.SetAnnotations(annotations)
	}
	if err := controllerutil.SetControllerReference(s.Object, object, r.Client.Scheme()); err != nil {
		return fmt.Errorf("owning %s %s: %w", kindOf(object), object.GetName(), err)
	}
	return nil
}

// made reports whether an existing object was created from the source: the source owns it, or did before the owner
// was lost.
func (s *source) made(object client.Object) bool {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID == s.GetUID()
	}
	return object.GetAnnotations()[karpv1.AnnotationMadeFrom] == s.name()
}

func setSpec(into, from client.Object) {
	switch object := into.(type) {
	case *karpv1.NodePool:
		object.Spec = *from.(*karpv1.NodePool).Spec.DeepCopy()
	case *awsv1.EC2NodeClass:
		object.Spec = *from.(*awsv1.EC2NodeClass).Spec.DeepCopy()
	case *kwokv1alpha1.KWOKNodeClass:
		object.Spec = *from.(*kwokv1alpha1.KWOKNodeClass).Spec.DeepCopy()
	}
}

func kindOf(object client.Object) string {
	switch object.(type) {
	case *karpv1.NodePool:
		return "NodePool"
	case *awsv1.EC2NodeClass:
		return awsv1.Kind
	}
	return kwokv1alpha1.Kind
}

// prune deletes the EC2NodeClasses that were created from a source and are no longer needed, except those that any
// pool references, because machines are still launched with them.
func (r *Reconciler) prune(ctx context.Context, v *view) error {
	owners := map[types.UID]bool{}
	for _, s := range v.sources {
		owners[s.GetUID()] = !s.leaving()
	}
	var errs []error
	for i := range v.classes {
		class := &v.classes[i]
		owner := metav1.GetControllerOf(class)
		if owner == nil || !owners[owner.UID] || !class.DeletionTimestamp.IsZero() || v.wanted(class.Name) || v.needed(class.Name) {
			continue
		}
		if err := r.Client.Delete(ctx, class, controller.Unchanged(class)); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting EC2NodeClass %s, which %s %s no longer needs: %w", class.Name, owner.Kind, owner.Name, err))
		}
	}
	return errors.Join(errs...)
}
