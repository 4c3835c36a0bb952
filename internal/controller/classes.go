package controller

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/internal/cloud"
)

// Classes are the kinds of node class that a provider owns. They decide which pools, claims and nodes are ours: those
// of other kinds are left to whoever owns them.
type Classes struct {
	kinds map[schema.GroupKind]client.Object
}

// ClassesOf looks the provider's kinds up in the scheme.
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

// Owns says whether the provider owns the kind of the referenced class.
func (c Classes) Owns(ref karpv1.NodeClassReference) bool {
	_, ok := c.kinds[schema.GroupKind{Group: ref.Group, Kind: ref.Kind}]
	return ok
}

// OwnsLabels says whether the labels, of a claim or of a node, name a class of the provider.
func (c Classes) OwnsLabels(labels map[string]string) bool {
	for kind := range c.kinds {
		if _, ok := labels[karpv1.NodeClassLabel(kind.Group, kind.Kind)]; ok {
			return true
		}
	}
	return false
}

// Empty is an empty object of the referenced kind, to read the class into; nil when the kind is not owned.
func (c Classes) Empty(ref karpv1.NodeClassReference) client.Object {
	object, ok := c.kinds[schema.GroupKind{Group: ref.Group, Kind: ref.Kind}]
	if !ok {
		return nil
	}
	return object.DeepCopyObject().(client.Object)
}

// Kinds are an empty object per kind, to watch, and the kind's name.
func (c Classes) Kinds() map[schema.GroupKind]client.Object { return c.kinds }
