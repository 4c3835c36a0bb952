package cluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestNoVirtualPodsNoChange verifies that an owner without virtual pods that still has none is no change: a loop
// that follows what it wrote itself would never rest.
func TestNoVirtualPodsNoChange(t *testing.T) {
	s := newStore(t, Config{})
	changes := s.Subscribe(PodsPending | PodsMoved)
	changed := func() bool {
		select {
		case <-changes:
			return true
		default:
			return false
		}
	}
	s.SetVirtual(model.VirtualBuffer, "default/spare", "", nil)
	if changed() {
		t.Error("an owner that has had no virtual pods is a change")
	}
	s.SetVirtual(model.VirtualBuffer, "default/spare", "one", func() []*corev1.Pod { return nil })
	if !changed() {
		t.Error("the pods of a new owner are no change")
	}
	s.SetVirtual(model.VirtualBuffer, "default/spare", "", nil)
	if !changed() {
		t.Error("the end of the pods is no change")
	}
	s.SetVirtual(model.VirtualBuffer, "default/spare", "", nil)
	if changed() {
		t.Error("an owner without virtual pods is a change")
	}
}
