package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Classes holds the kinds of node class that a provider owns. They decide which pools, claims and nodes this
// controller manages. Objects with other kinds of node class are left to other controllers.
type Classes struct {
	kinds     map[schema.GroupKind]client.Object
	selection karpv1.Selection
}

// ClassesOf returns the provider's kinds of node class. It returns an error if the scheme does not contain one of
// them.
func ClassesOf(provider cloud.Provider, scheme *runtime.Scheme) (Classes, error) {
	c := Classes{kinds: map[schema.GroupKind]client.Object{}}
	for _, object := range provider.NodeClasses() {
		gvk, err := apiutil.GVKForObject(object, scheme)
		if err != nil {
			return Classes{}, fmt.Errorf("looking up the node class %T of provider %s: %w", object, provider.Name(), err)
		}
		c.kinds[gvk.GroupKind()] = object
	}
	return c, nil
}

// Within returns the classes for a controller that has the objects of a selection only.
func (c Classes) Within(selection karpv1.Selection) Classes {
	c.selection = selection
	return c
}

// OwnsPool reports whether this controller manages the pool.
func (c Classes) OwnsPool(pool *karpv1.NodePool) bool {
	return c.Provides(pool.Spec.Template.Spec.NodeClassRef) && c.selection.AdmitsPool(pool)
}

// OwnsClaim reports whether this controller manages the claim.
func (c Classes) OwnsClaim(claim *karpv1.NodeClaim) bool {
	return c.Provides(claim.Spec.NodeClassRef) && c.selection.Admits(claim.Labels)
}

// Provides reports whether the provider owns the kind of the referenced class.
func (c Classes) Provides(ref karpv1.NodeClassReference) bool {
	_, ok := c.kinds[schema.GroupKind{Group: ref.Group, Kind: ref.Kind}]
	return ok
}

// OwnsLabels reports whether this controller manages the claim or node with the labels: they name a class of the provider.
func (c Classes) OwnsLabels(labels map[string]string) bool {
	if !c.selection.Admits(labels) {
		return false
	}
	for kind := range c.kinds {
		if _, ok := labels[karpv1.NodeClassLabel(kind.Group, kind.Kind)]; ok {
			return true
		}
	}
	return false
}

// Empty returns an empty object of the referenced kind, into which the class can be read. It returns nil if the
// provider does not own the kind.
func (c Classes) Empty(ref karpv1.NodeClassReference) client.Object {
	object, ok := c.kinds[schema.GroupKind{Group: ref.Group, Kind: ref.Kind}]
	if !ok {
		return nil
	}
	return object.DeepCopyObject().(client.Object)
}

// Kinds returns one empty object per kind, for watches, keyed by group and kind.
func (c Classes) Kinds() map[schema.GroupKind]client.Object { return c.kinds }
