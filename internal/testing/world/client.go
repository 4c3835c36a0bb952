package world

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// caller is the client of a process. It reads from the watch, or from the API server itself if it is live. Methods
// that it does not override panic.
type caller struct {
	client.Client

	api    *api
	scheme *runtime.Scheme
	// from is where it reads.
	from *shelves
	// permit is asked before each write. An error ends the write.
	permit func(text string) error
	evict  func(*corev1.Pod) error
	// answer is asked after each write. An error means that the process does not learn of its success.
	answer func() error
	// renewed returns when the Lease of a node was renewed.
	renewed func(node string) time.Time
}

// live returns a reader of the API server itself.
func (c *caller) live() *caller {
	now := *c
	now.from = &c.api.shelves
	return &now
}

func (c *caller) Scheme() *runtime.Scheme { return c.scheme }

// resourceOf names a kind in errors.
func resourceOf(k kind) schema.GroupResource { return schema.GroupResource{Resource: k.Name()} }

// Get implements client.Reader.
func (c *caller) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	o := c.from.of(kindOf(into)).objects[key]
	if lease, is := into.(*coordinationv1.Lease); is {
		if renewed := c.renewed(key.Name); !renewed.IsZero() {
			lease.Spec.RenewTime = &metav1.MicroTime{Time: renewed}
			return nil
		}
	}
	if o == nil {
		return apierrors.NewNotFound(resourceOf(kindOf(into)), key.Name)
	}
	fill(into, o.DeepCopyObject())
	return nil
}

// fill sets the object to the content of another one.
func fill(into client.Object, from runtime.Object) {
	reflect.ValueOf(into).Elem().Set(reflect.ValueOf(from).Elem())
}

// List implements client.Reader, for lists that the field indexes select.
func (c *caller) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	field, value := "", ""
	if o.FieldSelector != nil {
		for _, r := range o.FieldSelector.Requirements() {
			field, value = r.Field, r.Value
		}
	}
	items := reflect.ValueOf(list).Elem().FieldByName("Items")
	objects := c.from.list(items.Type().Elem(), field, value)
	found := reflect.MakeSlice(items.Type(), 0, len(objects))
	for _, object := range objects {
		if o.Namespace != "" && object.GetNamespace() != o.Namespace {
			continue
		}
		if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
			object = object.DeepCopyObject().(client.Object)
		}
		found = reflect.Append(found, reflect.ValueOf(object).Elem())
	}
	items.Set(found)
	return nil
}

// Create implements client.Writer.
func (c *caller) Create(_ context.Context, object client.Object, _ ...client.CreateOption) error {
	if err := c.permit("create " + text(object)); err != nil {
		return err
	}
	created := object.DeepCopyObject().(client.Object)
	if !c.api.create(created) {
		return apierrors.NewAlreadyExists(resourceOf(kindOf(object)), object.GetName())
	}
	fill(object, created.DeepCopyObject())
	return c.answer()
}

// Delete implements client.Writer.
func (c *caller) Delete(_ context.Context, object client.Object, opts ...client.DeleteOption) error {
	if err := c.permit("delete " + text(object)); err != nil {
		return err
	}
	var o client.DeleteOptions
	o.ApplyOptions(opts)
	live := c.api.get(object)
	if live == nil {
		return apierrors.NewNotFound(resourceOf(kindOf(object)), object.GetName())
	}
	p := cmp.Or(o.Preconditions, &metav1.Preconditions{})
	if p.UID != nil && *p.UID != live.GetUID() || p.ResourceVersion != nil && *p.ResourceVersion != live.GetResourceVersion() {
		return apierrors.NewConflict(resourceOf(kindOf(object)), object.GetName(), errors.New("a precondition does not hold"))
	}
	c.api.delete(live, o.GracePeriodSeconds)
	return c.answer()
}

// Patch implements client.Writer.
func (c *caller) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	return c.patch(object, patch, "", false)
}

func (c *caller) patch(object client.Object, patch client.Patch, manager string, status bool) error {
	data, err := patch.Data(object)
	if err != nil {
		return err
	}
	if err := c.permit("patch " + text(object)); err != nil {
		return err
	}
	live := c.api.get(object)
	if live == nil {
		return apierrors.NewNotFound(resourceOf(kindOf(object)), object.GetName())
	}
	after, err := patched(live, patch.Type(), data, status)
	if err != nil {
		return err
	}
	if pod, is := after.(*corev1.Pod); is && status {
		noteManager(pod, manager)
	}
	c.api.write(live, after)
	fill(object, after.DeepCopyObject())
	return c.answer()
}

func text(o client.Object) string { return fmt.Sprintf("%s %s", kindOf(o).Name(), o.GetName()) }

// Status implements client.Client.
func (c *caller) Status() client.SubResourceWriter { return &part{caller: c} }

// SubResource implements client.Client, for evictions.
func (c *caller) SubResource(string) client.SubResourceClient { return &part{caller: c} }

// part writes a subresource.
type part struct {
	client.SubResourceClient

	caller *caller
}

// Patch implements client.SubResourceWriter, for the status.
func (p *part) Patch(_ context.Context, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
	var o client.SubResourcePatchOptions
	o.ApplyOptions(opts)
	return p.caller.patch(object, patch, o.FieldManager, true)
}

// Create implements client.SubResourceWriter: it evicts a pod.
func (p *part) Create(_ context.Context, object, _ client.Object, _ ...client.SubResourceCreateOption) error {
	if err := p.caller.permit("evict " + text(object)); err != nil {
		return err
	}
	live := p.caller.api.get(object)
	if live == nil || live.GetUID() != object.GetUID() {
		return apierrors.NewNotFound(resourceOf(kindOf(object)), object.GetName())
	}
	return errors.Join(p.caller.evict(live.(*corev1.Pod)), p.caller.answer())
}
