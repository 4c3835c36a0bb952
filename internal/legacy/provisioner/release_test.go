package provisioner_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	awsv1alpha1 "github.com/karpenter-go/karpenter/api/aws/v1alpha1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
)

// made creates a Provisioner and waits for its result.
func (w *world) made(name string) (*karpv1alpha5.Provisioner, *karpv1.NodePool, *awsv1.EC2NodeClass) {
	w.t.Helper()
	w.apply(strings.ReplaceAll(everySmall, "NAME", name))
	p := w.provisioner(name, karpv1alpha5.ConditionApplied, "True", "")
	pool := w.pool(name, "is owned", func(pool *karpv1.NodePool) bool { return metav1.IsControlledBy(pool, p) })
	class := w.class(name, "is owned", func(class *awsv1.EC2NodeClass) bool { return metav1.IsControlledBy(class, p) })
	if !slices.Contains(p.Finalizers, karpv1.FinalizerMadeFrom) {
		w.t.Fatalf("objects were created from %s, whose finalizers are %v", name, p.Finalizers)
	}
	return p, pool, class
}

// leave deletes an older object without its dependents, as --cascade=orphan does. The garbage collector, which does
// not run here, has not begun yet.
func (w *world) leave(ctx context.Context, object client.Object) error {
	return w.Delete(ctx, object, client.PropagationPolicy(metav1.DeletePropagationOrphan))
}

// collect acts as the garbage collector for --cascade=orphan: it removes the owner from the objects that it knows,
// and then its finalizer from the owner.
func (w *world) collect(ctx context.Context, owner client.Object, knows ...client.Object) error {
	for _, object := range knows {
		err := w.change(ctx, object, func() {
			object.SetOwnerReferences(slices.DeleteFunc(object.GetOwnerReferences(), func(o metav1.OwnerReference) bool { return o.UID == owner.GetUID() }))
		})
		if err != nil {
			return err
		}
	}
	return w.change(ctx, owner, func() {
		owner.SetFinalizers(slices.DeleteFunc(owner.GetFinalizers(), func(f string) bool { return f == metav1.FinalizerOrphanDependents }))
	})
}

// change modifies an object as it is in the API, if it exists.
func (w *world) change(ctx context.Context, object client.Object, how func()) error {
	for {
		if err := w.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return client.IgnoreNotFound(err)
		}
		base := object.DeepCopyObject().(client.Object)
		how()
		err := w.Patch(ctx, object, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if !apierrors.IsConflict(err) {
			return client.IgnoreNotFound(err)
		}
	}
}

func (w *world) gone(object client.Object) {
	w.t.Helper()
	w.until(object.GetName()+" is gone", func() bool {
		return !w.read(object.GetName(), object.DeepCopyObject().(client.Object))
	})
}

// free fails unless an object is unchanged and without owner.
func (w *world) free(was client.Object) {
	w.t.Helper()
	now := was.DeepCopyObject().(client.Object)
	switch {
	case !w.read(was.GetName(), now) || now.GetUID() != was.GetUID() || !now.GetDeletionTimestamp().IsZero():
		w.t.Errorf("%T %s no longer exists", was, was.GetName())
	case len(now.GetOwnerReferences()) > 0:
		w.t.Errorf("%T %s is owned by %v, and is deleted if that is gone", was, was.GetName(), now.GetOwnerReferences())
	case now.GetAnnotations()[karpv1.AnnotationMadeFrom] != "":
		w.t.Errorf("%T %s still has the source %s", was, was.GetName(), now.GetAnnotations()[karpv1.AnnotationMadeFrom])
	}
}

// ownedAgain covers an object that has lost its owner, but not by the deletion of the owner, as after a restore: the
// annotation is kept.
func ownedAgain(w *world) {
	stop := w.start()
	p, pool, class := w.made("restored")
	stop()
	ctx := w.t.Context()
	w.must(w.change(ctx, p, func() { p.Finalizers = nil }))
	w.must(w.Delete(ctx, p))
	for _, object := range []client.Object{pool, class} {
		w.must(w.change(ctx, object, func() { object.SetOwnerReferences(nil) }))
	}
	w.start()
	_, again, _ := w.made("restored")
	if again.UID != pool.UID {
		w.t.Error("it was created again")
	}
}

// plainDeletion verifies that an object that is deleted without options is gone at once, and that the garbage
// collector finds all objects that it owned, also if no controller ran during the deletion.
func plainDeletion(w *world) {
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		name := strings.ToLower(string(policy))
		stop := w.start()
		p, pool, class := w.made(name)
		stop()
		owner := p.DeepCopy()
		w.must(w.Delete(w.t.Context(), p, client.PropagationPolicy(policy)))
		if !w.read(name, p) {
			w.t.Fatalf("%s: a Provisioner is gone before its dependents were examined", name)
		}
		stop = w.start()
		w.until("our finalizer is gone", func() bool {
			return !w.read(name, p) || !slices.Contains(p.Finalizers, karpv1.FinalizerMadeFrom)
		})
		for _, object := range []client.Object{pool, class} {
			if !w.read(name, object) || !metav1.IsControlledBy(object, owner) {
				w.t.Errorf("%s: %T no longer belongs to the collector: owned by %v", name, object, object.GetOwnerReferences())
			}
		}
		stop()
	}
}

func leftBehind(w *world) {
	w.start()
	for name, knows := range map[string]func(*karpv1.NodePool, *awsv1.EC2NodeClass) []client.Object{
		"nothing": func(*karpv1.NodePool, *awsv1.EC2NodeClass) []client.Object { return nil },
		"classes": func(_ *karpv1.NodePool, c *awsv1.EC2NodeClass) []client.Object { return []client.Object{c} },
		"all":     func(p *karpv1.NodePool, c *awsv1.EC2NodeClass) []client.Object { return []client.Object{p, c} },
	} {
		p, pool, class := w.made(name)
		w.must(w.leave(w.t.Context(), p))
		w.must(w.collect(w.t.Context(), p, knows(pool.DeepCopy(), class.DeepCopy())...))
		w.gone(p)
		w.free(pool)
		w.free(class)
	}
}

// leftBehindUnseen covers a controller that is down while the collector, which has not seen the pool yet, does its
// part.
func leftBehindUnseen(w *world) {
	stop := w.start()
	p, pool, class := w.made("unseen")
	stop()
	w.must(w.leave(w.t.Context(), p))
	w.must(w.collect(w.t.Context(), p, class.DeepCopy()))
	if !w.read("unseen", p) {
		w.t.Fatal("the Provisioner is gone, and its pool is owned by it")
	}
	w.start()
	w.gone(p)
	w.free(pool)
	w.free(class)
}

// leftBehindUntold covers a controller that is down while the collector, which has seen neither pool nor class, does
// its part. The kind of deletion can no longer be detected, and the source is released as in a plain deletion.
// docs/migrating.md says to keep a controller running.
func leftBehindUntold(w *world) {
	stop := w.start()
	p, pool, class := w.made("untold")
	stop()
	w.must(w.leave(w.t.Context(), p))
	w.must(w.collect(w.t.Context(), p.DeepCopy()))
	w.start()
	w.gone(p)
	for _, object := range []client.Object{pool, class} {
		if !w.read("untold", object) || !metav1.IsControlledBy(object, p) {
			w.t.Errorf("%T is owned by %v", object, object.GetOwnerReferences())
		}
	}
}

// leftBehindMeanwhile covers a pass that began before the deletion and finds pool and class without owner.
func leftBehindMeanwhile(w *world) {
	var once sync.Once
	var lock sync.Mutex
	var armed func(context.Context, client.Reader) error
	w.between = func(ctx context.Context, cache client.Reader, into client.Object) (err error) {
		lock.Lock()
		act := armed
		lock.Unlock()
		if _, isClass := into.(*awsv1.EC2NodeClass); isClass && act != nil {
			once.Do(func() { err = act(ctx, cache) })
		}
		return err
	}
	w.start()
	p, pool, class := w.made("raced")
	lock.Lock()
	armed = func(ctx context.Context, cache client.Reader) error {
		if err := w.leave(ctx, p); err != nil {
			return err
		}
		if err := w.collect(ctx, p.DeepCopy(), pool.DeepCopy(), class.DeepCopy()); err != nil {
			return err
		}
		return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			seen := &karpv1.NodePool{}
			err := cache.Get(ctx, client.ObjectKeyFromObject(pool), seen)
			return err == nil && len(seen.OwnerReferences) == 0, err
		})
	}
	lock.Unlock()
	w.must(w.Patch(w.t.Context(), class, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"pass"}}}`))))
	w.gone(p)
	w.pass("after-the-race")
	w.free(pool)
	w.free(class)
}

// leftBehindForGood verifies that an orphaned and edited object is not owned again when its source is applied again.
func leftBehindForGood(w *world) {
	w.start()
	p, pool, class := w.made("left")
	w.must(w.leave(w.t.Context(), p))
	w.must(w.collect(w.t.Context(), p, pool.DeepCopy(), class.DeepCopy()))
	w.gone(p)
	w.must(w.change(w.t.Context(), pool, func() { pool.Spec.Weight = new(int32(7)) }))

	w.apply(strings.ReplaceAll(everySmall, "NAME", "left"))
	w.provisioner("left", karpv1alpha5.ConditionApplied, "False", karpv1alpha5.ReasonNameTaken)
	w.free(pool)
	w.free(class)
	if now := w.pool("left", "is there", there); !cmp.Equal(now.Spec.Weight, new(int32(7))) {
		w.t.Errorf("the edited pool has weight %v", now.Spec.Weight)
	}
	again := &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
	w.must(w.Delete(w.t.Context(), again))
	w.gone(again)
	w.free(pool)
	w.free(class)

	w.apply(strings.ReplaceAll(everySmall, "NAME", "left"))
	w.provisioner("left", karpv1alpha5.ConditionApplied, "False", karpv1alpha5.ReasonNameTaken)
	for _, object := range []client.Object{class, pool} { // a user hands them back
		w.must(w.change(w.t.Context(), object, func() { metav1.SetMetaDataAnnotation(metaOf(object), karpv1.AnnotationMadeFrom, "Provisioner/left") }))
	}
	p = w.provisioner("left", karpv1alpha5.ConditionApplied, "True", "")
	w.pool("left", "is owned, and as it was", func(pool *karpv1.NodePool) bool { return metav1.IsControlledBy(pool, p) && pool.Spec.Weight == nil })
}

func metaOf(object client.Object) *metav1.ObjectMeta {
	switch object := object.(type) {
	case *karpv1.NodePool:
		return &object.ObjectMeta
	case *awsv1.EC2NodeClass:
		return &object.ObjectMeta
	}
	panic(fmt.Sprintf("no test needs %T", object))
}

// leftBehindShared covers two Provisioners that share a template: one is orphaned, then the template.
func leftBehindShared(w *world) {
	w.start()
	w.apply(template)
	var stays, goes *karpv1alpha5.Provisioner
	var own *awsv1.EC2NodeClass
	w.until("one of them has a class of its own", func() bool {
		for _, pair := range [][2]string{{"dense", "plain"}, {"plain", "dense"}} {
			own = &awsv1.EC2NodeClass{}
			if w.read("shared-"+pair[0], own) {
				goes = w.provisioner(pair[0], karpv1alpha5.ConditionApplied, "True", "")
				stays = w.provisioner(pair[1], karpv1alpha5.ConditionApplied, "True", "")
				return true
			}
		}
		return false
	})
	left, kept, shared := w.pool(goes.Name, "is there", there), w.pool(stays.Name, "is there", there), w.class("shared", "is there", there)
	w.must(w.leave(w.t.Context(), goes))
	w.must(w.collect(w.t.Context(), goes))
	w.gone(goes)
	w.free(left)
	w.free(own)
	t := &awsv1alpha1.AWSNodeTemplate{}
	switch {
	case !w.read("shared", t):
		w.t.Errorf(`w.read("shared", t) is false, the class that both shared is owned by %v`, shared.OwnerReferences)
	case !w.read("shared", shared):
		w.t.Errorf(`w.read("shared", shared) is false, the class that both shared is owned by %v`, shared.OwnerReferences)
	case !metav1.IsControlledBy(shared, t):
		w.t.Errorf("metav1.IsControlledBy(shared, t) is false, the class that both shared is owned by %v", shared.OwnerReferences)
	}
	w.must(w.leave(w.t.Context(), t))
	w.must(w.collect(w.t.Context(), t))
	w.gone(t)
	w.pass("after-the-template-was-left")
	w.free(shared)
	if !w.read(kept.Name, kept) || !metav1.IsControlledBy(kept, stays) {
		w.t.Errorf("the pool of the other is owned by %v", kept.OwnerReferences)
	}
}
