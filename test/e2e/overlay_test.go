package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// TestOverlayPrice is OV-14: an overlay makes another type cheaper, and consolidation replaces the node with one of that
// type. The node is not drifted.
func TestOverlayPrice(t *testing.T) {
	s := onShared(t, "overlay")
	s.scale("app", 1)
	await(t, patience, "the pod to run", s.running("app", 1))
	if kind := s.node(s.pods("app")[0]).Labels[corev1.LabelInstanceTypeStable]; kind != "c-4x-amd64-linux" {
		t.Fatalf("the node is a %s, want the cheaper c-4x-amd64-linux", kind)
	}
	cheap := overlayOf("overlay-price", "c-8x-amd64-linux")
	cheap.Spec.Price = new("0.001")
	s.create(cheap)
	await(t, patience, "the pod to run on the type that the overlay makes cheaper", func(ctx context.Context) error {
		if err := s.running("app", 1)(ctx); err != nil {
			return err
		}
		if kind := s.node(s.pods("app")[0]).Labels[corev1.LabelInstanceTypeStable]; kind != "c-8x-amd64-linux" {
			return fmt.Errorf("it runs on a %s", kind)
		}
		return nil
	})
	await(t, patience, "one node to be left", s.nodesReady(1))
	claims := s.ledger.claimsOf("overlay")
	if len(claims) != 2 || s.leftFor("overlay")["Underutilized"] != 1 {
		t.Fatalf("%d claims were created, and nodes were removed as %v; want two, and one as underutilized", len(claims), s.leftFor("overlay"))
	}
	if claims[1].object.Annotations[karpv1.AnnotationPriceOverlayApplied] != "true" {
		t.Errorf("the replacement has the annotations %v, want %s", claims[1].object.Annotations, karpv1.AnnotationPriceOverlayApplied)
	}

	s.scale("fuse", 1)
	await(t, patience, "the pod that requests a device to be refused", func(ctx context.Context) error {
		pods := s.pods("fuse")
		if len(pods) == 0 {
			return errors.New("it does not exist yet")
		}
		return s.says(pods[0], "FailedScheduling", "smarter-devices/fuse")(ctx)
	})
	device := overlayOf("overlay-capacity", "c-4x-amd64-linux", "c-8x-amd64-linux")
	device.Spec.Capacity = corev1.ResourceList{"smarter-devices/fuse": resource.MustParse("1")}
	s.create(device)
	await(t, patience, "the pod to run on a node with the device", s.running("fuse", 1))
	claims = s.ledger.claimsOf("overlay")
	if len(claims) != 3 || claims[2].object.Annotations[karpv1.AnnotationCapacityOverlayApplied] != "true" {
		t.Errorf("%d claims were created, want three, and the last one with %s", len(claims), karpv1.AnnotationCapacityOverlayApplied)
	}
	s.scale("app", 0)
	s.scale("fuse", 0)
	await(t, patience, "no node to be left", s.empty)
}

// overlayOf returns an overlay of the case's pool and the types, without an effect.
func overlayOf(name string, types ...string) *v1alpha1.NodeOverlay {
	o := &v1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{caseLabel: "overlay"}}}
	o.Spec.Requirements = []v1alpha1.Requirement{
		{Key: karpv1.LabelNodePool, Operator: "In", Values: []string{"overlay"}},
		{Key: corev1.LabelInstanceTypeStable, Operator: "In", Values: types},
	}
	return o
}
