package removals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/controller"
)

// reader reads objects from the watch, or from the API itself.
type reader struct {
	world World
	now   bool
}

func (r *reader) live() *reader { return &reader{world: r.world, now: true} }

// fields holds the fields of an object by which lists can be selected.
type fields map[string]string

// chosen returns the objects that the options select.
func chosen[T any](all []T, by func(T) fields, opts []client.ListOption) []T {
	var o client.ListOptions
	o.ApplyOptions(opts)
	if o.FieldSelector == nil {
		return all
	}
	var some []T
	for _, item := range all {
		matches, values := true, by(item)
		for _, r := range o.FieldSelector.Requirements() {
			value, indexed := values[r.Field]
			if !indexed {
				panic("no index of " + r.Field)
			}
			matches = matches && value == r.Value
		}
		if matches {
			some = append(some, item)
		}
	}
	return some
}

// List implements client.Reader.
func (r *reader) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	switch l := list.(type) {
	case *karpv1.NodePoolList:
		for _, p := range r.world.Pools() {
			l.Items = append(l.Items, poolObject(p))
		}
	case *karpv1.NodeClaimList:
		for _, c := range chosen(r.world.Claims(r.now), func(c Claim) fields {
			return fields{controller.FieldClaimProviderID: c.Provider, controller.FieldPool: c.Pool}
		}, opts) {
			l.Items = append(l.Items, claimObject(c))
		}
	case *corev1.NodeList:
		for _, n := range chosen(r.world.Nodes(r.now), func(n Node) fields {
			return fields{controller.FieldNodeProviderID: n.Provider, controller.FieldPool: n.Pool}
		}, opts) {
			l.Items = append(l.Items, nodeObject(n))
		}
	case *corev1.PodList: // of a removed node, for a metric that nothing reads
	default:
		panic(fmt.Sprintf("removals list no %T", list))
	}
	return nil
}

// Get implements client.Reader.
func (r *reader) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	switch o := object.(type) {
	case *corev1.Node:
		for _, n := range r.world.Nodes(r.now) {
			if n.Name == key.Name {
				*o = nodeObject(n)
				return nil
			}
		}
		return apierrors.NewNotFound(schema.GroupResource{Resource: "nodes"}, key.Name)
	case *karpv1.NodeClaim:
		for _, c := range r.world.Claims(r.now) {
			if c.Name == key.Name {
				*o = claimObject(c)
				return nil
			}
		}
		return apierrors.NewNotFound(claims, key.Name)
	case *karpv1.NodePool:
		for _, p := range r.world.Pools() {
			if p.Name == key.Name {
				*o = poolObject(p)
				return nil
			}
		}
		return apierrors.NewNotFound(schema.GroupResource{Group: karpv1.Group, Resource: "nodepools"}, key.Name)
	case *coordinationv1.Lease:
		renewed := r.world.Renewed(key.Name)
		if renewed.IsZero() {
			return apierrors.NewNotFound(schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}, key.Name)
		}
		o.Spec.RenewTime = &metav1.MicroTime{Time: renewed}
		return nil
	}
	panic(fmt.Sprintf("removals read no %T", object))
}

var claims = schema.GroupResource{Group: karpv1.Group, Resource: "nodeclaims"}

// writer is a client that reads from the watch. Methods that it does not override panic: removals do not use them.
type writer struct {
	client.Client
	reader *reader
	scheme *runtime.Scheme
}

func (w *writer) Scheme() *runtime.Scheme { return w.scheme }

func (w *writer) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return w.reader.Get(ctx, key, o, opts...)
}

func (w *writer) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return w.reader.List(ctx, list, opts...)
}

// Delete implements client.Writer. It deletes a claim only at the version that was read.
func (w *writer) Delete(_ context.Context, object client.Object, opts ...client.DeleteOption) error {
	o, is := object.(*karpv1.NodeClaim)
	if !is {
		panic(fmt.Sprintf("removals delete no %T", object))
	}
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	if options.Preconditions == nil || options.Preconditions.ResourceVersion == nil {
		panic("a claim is deleted whatever has become of it")
	}
	return w.status(w.reader.world.DeleteClaim(claimOf(o)), o.Name)
}

// Patch implements client.Writer, for annotations.
func (w *writer) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	text, err := patch.Data(object)
	if err != nil {
		return err
	}
	annotations, err := annotationsIn(text)
	if err != nil {
		return err
	}
	switch o := object.(type) {
	case *karpv1.NodePool:
		return w.status(w.reader.world.AnnotatePool(o.Name, annotations), o.Name)
	case *karpv1.NodeClaim:
		if err := w.status(w.reader.world.AnnotateClaim(claimOf(o), annotations), o.Name); err != nil {
			return err
		}
		for _, c := range w.reader.world.Claims(true) { // like the reply of the API server
			if c.UID == string(o.UID) {
				*o = claimObject(c)
			}
		}
		return nil
	}
	panic(fmt.Sprintf("removals patch no %T", object))
}

// annotationsIn returns the annotations that a merge patch changes. A patch that removes all annotations removes
// those of controllers.
func annotationsIn(patch []byte) (map[string]*string, error) {
	var change struct {
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, err
	}
	given, named := change.Metadata["annotations"]
	if named && string(given) == "null" {
		none := map[string]*string{}
		for _, name := range []string{karpv1.AnnotationPauses, karpv1.AnnotationRemovalsAllowedUntil, karpv1.AnnotationRepair,
			karpv1.AnnotationTerminationTimestamp} {
			none[name] = nil
		}
		return none, nil
	}
	var annotations map[string]*string
	if named {
		err := json.Unmarshal(given, &annotations)
		return annotations, err
	}
	return nil, nil
}

// status returns the error that the API server would return.
func (w *writer) status(err error, name string) error {
	switch {
	case errors.Is(err, ErrConflict):
		return apierrors.NewConflict(claims, name, err)
	case errors.Is(err, ErrGone):
		return apierrors.NewNotFound(claims, name)
	}
	return err
}
