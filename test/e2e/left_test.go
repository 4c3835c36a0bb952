package e2e

import (
	"context"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha5 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha5"
	kwokv1alpha1 "github.com/karpenter-go/karpenter/api/kwok/v1alpha1"
)

// TestProvisionerLeftBehind checks that a Provisioner that is deleted with --cascade=orphan keeps its pool, its class
// and their nodes for good: the edited pool does not become the Provisioner's again when that is applied again, and
// is kept when it is deleted.
func TestProvisionerLeftBehind(t *testing.T) {
	s := onShared(t, "left")
	s.scale("app", 2)
	await(t, patience, "the pods to run", s.running("app", 2))
	provisioner := &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
	pool := &karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
	class := &kwokv1alpha1.KWOKNodeClass{ObjectMeta: metav1.ObjectMeta{Name: "left"}}
	for _, made := range []client.Object{pool, class} {
		await(t, patience, "the Provisioner to have become something", func(ctx context.Context) error { return s.Get(ctx, keyOf(made), made) })
	}

	s.leave(provisioner)
	s.stays(pool, class)
	// The end of the case finds them by the label.
	for _, made := range []client.Object{pool, class} {
		s.patch(made, `{"metadata":{"labels":{"`+caseLabel+`":"left"}}}`)
	}
	s.patch(pool, `{"spec":{"weight":7}}`)

	again := &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: "left", Labels: map[string]string{caseLabel: "left"}}}
	s.create(again)
	await(t, patience, "the Provisioner to say whose the pool is", func(ctx context.Context) error {
		if err := s.Get(ctx, keyOf(again), again); err != nil {
			return err
		}
		if c := again.StatusConditions().Get(karpv1alpha5.ConditionApplied); c == nil || c.Reason != karpv1alpha5.ReasonNameTaken {
			return fmt.Errorf("%s is %+v", karpv1alpha5.ConditionApplied, c)
		}
		return nil
	})
	s.remove(again)
	await(t, patience, "it to be gone", s.goes(again))
	s.stays(pool, class)
	if now := s.mustGet(pool); now.Spec.Weight == nil || *now.Spec.Weight != 7 {
		t.Errorf("the pool's weight is %v, want what it was edited to", now.Spec.Weight)
	}

	s.scale("app", 20)
	await(t, patience, "the pool to serve more pods", s.running("app", 20))
	for _, e := range s.ledger.claimsOf("left") {
		if e.gone || e.object.DeletionTimestamp != nil {
			t.Errorf("claim %s is being removed", e.object.Name)
		}
	}
}

// leave deletes an older object but not the objects created from it, and waits until it is deleted.
func (s *stage) leave(object client.Object) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		s.t.Fatal(err)
	}
	await(s.t, patience, object.GetName()+" to be gone", s.goes(object))
}

func (s *stage) goes(object client.Object) func(context.Context) error {
	return func(ctx context.Context) error {
		err := s.Get(ctx, keyOf(object), object.DeepCopyObject().(client.Object))
		if err == nil {
			return fmt.Errorf("%s is there", object.GetName())
		}
		return client.IgnoreNotFound(err)
	}
}

func (s *stage) mustGet(pool *karpv1.NodePool) *karpv1.NodePool {
	s.t.Helper()
	now := &karpv1.NodePool{}
	if err := s.Get(s.t.Context(), keyOf(pool), now); err != nil {
		s.t.Fatal(err)
	}
	return now
}

// stays checks that objects are the same and have no owner, also after the garbage collector has collected objects
// that were deleted later.
func (s *stage) stays(objects ...client.Object) {
	s.t.Helper()
	witness := &karpv1alpha5.Provisioner{ObjectMeta: metav1.ObjectMeta{Name: s.name + "-witness", Labels: map[string]string{caseLabel: s.name}}}
	s.create(witness)
	await(s.t, patience, "the witness to tell what it has become", s.becamePool(witness.Name))
	s.remove(witness)
	for _, made := range []client.Object{&karpv1.NodePool{}, &kwokv1alpha1.KWOKNodeClass{}} {
		made.SetName(witness.Name)
		await(s.t, patience, "what the witness has become to be collected", s.goes(made))
	}
	for _, was := range objects {
		now := was.DeepCopyObject().(client.Object)
		if err := s.Get(s.t.Context(), keyOf(was), now); err != nil {
			s.t.Fatal(err)
		}
		switch {
		case now.GetUID() != was.GetUID():
			s.t.Fatalf("%T %s is %s, want %s", was, was.GetName(), now.GetUID(), was.GetUID())
		case now.GetDeletionTimestamp() != nil:
			s.t.Fatalf("%T %s was deleted at %s", was, was.GetName(), now.GetDeletionTimestamp())
		case len(now.GetOwnerReferences()) > 0:
			s.t.Fatalf("%T %s is owned by %v, want no owner", was, was.GetName(), now.GetOwnerReferences())
		case now.GetAnnotations()[karpv1.AnnotationMadeFrom] != "":
			s.t.Fatalf("%T %s is still made from %q", was, was.GetName(), now.GetAnnotations()[karpv1.AnnotationMadeFrom])
		}
	}
}
