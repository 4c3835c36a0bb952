package buffer

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
)

// failing makes the reads of the reconciler fail for which fails returns an error.
func (c *cell) failing(fails func(object any) error) {
	api := interceptor.NewClient(c.api.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := fails(list); err != nil {
				return err
			}
			return api.List(ctx, list, opts...)
		},
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if err := fails(object); err != nil {
				return err
			}
			return api.Get(ctx, key, object, opts...)
		},
	})
	c.Client, c.Live = api, api
}

// TestUnreadQuotas checks that a buffer gets no pods while the quotas of its namespace have never been read, and keeps
// to the last known ones when they cannot be read any more.
func TestUnreadQuotas(t *testing.T) {
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "q"},
		Status: corev1.ResourceQuotaStatus{Hard: corev1.ResourceList{"pods": resource.MustParse("2")}}}
	c := newCell(t, spare("b", v1beta1.CapacityBufferSpec{ScalableRef: app, Replicas: new(int32(5))}), deployment(5), quota)
	c.addNode("n1", "16")
	down := true
	c.failing(func(object any) error {
		if _, quotas := object.(*corev1.ResourceQuotaList); quotas && down {
			return errors.New("down")
		}
		return nil
	})
	pass := func() { c.clock.Step(reread); _ = c.Reconcile(t.Context()) }
	pass()
	b := &v1beta1.CapacityBuffer{}
	if err := c.api.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "spare"}, b); err != nil {
		t.Fatal(err)
	}
	limited := meta.FindStatusCondition(b.Status.Conditions, v1beta1.ConditionLimitedByQuotas)
	if n := c.virtual(); n != 0 || limited == nil || !strings.Contains(limited.Message, "cannot be read") {
		t.Errorf("before the quotas are read: %d pods, condition %+v, want none and why", n, limited)
	}
	if down = false; c.tick("spare") != nil && c.virtual() != 2 {
		t.Errorf("with the quota: %d pods, want 2", c.virtual())
	}
	down = true
	if pass(); c.virtual() != 2 {
		t.Errorf("when the quota cannot be read any more: %d pods, want 2", c.virtual())
	}
}

// TestCompletePass checks which passes let disruption begin: those after which the virtual pods of all buffers are known,
// as far as the controller may read what they refer to. The status may still be unwritten.
func TestCompletePass(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "deployments"}, "app", errors.New("no right"))
	for _, test := range []struct {
		name  string
		fails func(object any) error
		want  bool
	}{
		{"all is read", func(any) error { return nil }, true},
		{"buffers are not listed", func(o any) error { return when[*v1beta1.CapacityBufferList](o, errors.New("down")) }, false},
		{"a workload is not read", func(o any) error { return when[*corev1.PodTemplate](o, errors.New("down")) }, false},
		{"a workload may not be read", func(o any) error { return when[*corev1.PodTemplate](o, forbidden) }, true},
		{"quotas are not read", func(o any) error { return when[*corev1.ResourceQuotaList](o, errors.New("down")) }, false},
	} {
		template := &corev1.PodTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "app"}, Template: template("1")}
		c := newCell(t, spare("b", v1beta1.CapacityBufferSpec{PodTemplateRef: &v1beta1.LocalObjectRef{Name: "app"},
			Replicas: new(int32(1))}), template)
		c.addNode("n1", "4")
		c.failing(test.fails)
		c.watched = true
		ended, end := context.WithCancel(t.Context())
		end()
		begins := func() bool {
			if err := c.Start(ended); err != nil { // one pass
				t.Fatal(err)
			}
			select {
			case <-c.ready:
				return true
			default:
				return false
			}
		}
		if got := begins(); got != test.want {
			t.Errorf("%s: disruption begins: %t, want %t", test.name, got, test.want)
		}
		if test.want {
			continue
		}
		c.clock.Step(patience)
		if listed := test.name != "buffers are not listed"; begins() != listed {
			t.Errorf("%s: disruption begins after five minutes: %t, want %t", test.name, !listed, listed)
		} else if listed {
			continue
		}
		c.failing(func(any) error { return nil })
		c.clock.Step(reread)
		if !test.want && !begins() {
			t.Errorf("%s: disruption does not begin after the next pass", test.name)
		}
	}
}

// when returns the error for objects of a type.
func when[T any](object any, err error) error {
	if _, is := object.(T); is {
		return err
	}
	return nil
}
