package chart

import (
	"context"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// thing returns an object of which only the name is known.
func thing(version, kind, name string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(version)
	object.SetKind(kind)
	object.SetName(name)
	return object
}

// awaitField waits until a field of an object has a value; nil waits until it has none.
func (w *world) awaitField(t *testing.T, object *unstructured.Unstructured, want any, path ...string) {
	t.Helper()
	await(t, fmt.Sprintf("%s %s to have %v at %v", object.GetKind(), object.GetName(), want, path), func(ctx context.Context) error {
		if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		got, _, err := unstructured.NestedFieldNoCopy(object.Object, path...)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})
}

func (w *world) merge(t *testing.T, object *unstructured.Unstructured, patch string) {
	t.Helper()
	if err := w.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}

func (w *world) delete(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	if err := w.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	w.awaitGone(t, object)
}

// older checks that a Provisioner becomes a pool, is edited by hand, and is deleted.
func (w *world) older(t *testing.T) {
	w.create(t, "older.yaml")
	provisioner := thing("karpenter.sh/v1alpha5", "Provisioner", "older")
	w.awaitField(t, provisioner, "older", "status", "nodePool")
	class, pool := thing("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", "older"), thing("karpenter.sh/v1", "NodePool", "older")
	w.awaitField(t, class, nil, "spec", "nodeRegistrationDelay")
	w.merge(t, class, `{"spec":{"nodeRegistrationDelay":"1h"}}`)
	w.awaitField(t, class, nil, "spec", "nodeRegistrationDelay")
	w.merge(t, pool, `{"spec":{"weight":7}}`)
	w.awaitField(t, pool, nil, "spec", "weight")
	w.delete(t, provisioner)
	w.awaitGone(t, pool)
	w.awaitGone(t, class)
}

// olderOnAWS checks that a Provisioner with its own class switches to that of an AWSNodeTemplate, and that its own
// class is deleted.
func (w *world) olderOnAWS(t *testing.T) {
	w.create(t, "older-aws.yaml")
	provisioner, template := thing("karpenter.sh/v1alpha5", "Provisioner", "older-inline"), thing("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate", "older")
	own, shared := thing("karpenter.k8s.aws/v1", "EC2NodeClass", "older-inline"), thing("karpenter.k8s.aws/v1", "EC2NodeClass", "older")
	w.awaitField(t, template, "older", "status", "nodeClass")
	w.awaitField(t, provisioner, "EC2NodeClass/older-inline", "status", "nodeClass")
	w.awaitField(t, own, "nodes", "spec", "instanceProfile")
	w.merge(t, provisioner, `{"spec":{"provider":null,"providerRef":{"name":"older"}}}`)
	w.awaitField(t, provisioner, "EC2NodeClass/older", "status", "nodeClass")
	w.awaitGone(t, own)
	w.delete(t, provisioner)
	w.delete(t, template)
	w.awaitGone(t, shared)
	w.awaitGone(t, thing("karpenter.sh/v1", "NodePool", "older-inline"))
}
