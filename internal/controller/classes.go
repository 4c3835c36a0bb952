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
	kinds map[schema.GroupKind]client.Object
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

// Owns reports whether the provider owns the kind of the referenced class.
func (c Classes) Owns(ref karpv1.NodeClassReference) bool {
	_, ok := c.kinds[schema.GroupKind{Group: ref.Group, Kind: ref.Kind}]
	return ok
}

// OwnsLabels reports whether the labels of a claim or node name a class of the provider.
func (c Classes) OwnsLabels(labels map[string]string) bool {
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
