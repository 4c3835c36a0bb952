package state

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestNoVirtualPodsNoChange verifies that an owner without virtual pods that still has none is no change: a loop
// that follows what it wrote itself would never rest.
func TestNoVirtualPodsNoChange(t *testing.T) {
	s := newState(Config{})
	changed := func() bool { return changed(s, PodsPending|PodsMoved) }
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

// TestVirtualPodsFollow verifies that virtual pods are converted as the API server would store them, and again when
// something changes that this depends on.
func TestVirtualPodsFollow(t *testing.T) {
	s := newState(Config{})
	class := "sandboxed"
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "spare-0", UID: "spare-0"},
		Spec: corev1.PodSpec{RuntimeClassName: &class, Containers: []corev1.Container{{Name: "c", Image: "i"}},
			Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{},
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}}}}}},
		Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}}}}
	s.SetVirtual(model.VirtualBuffer, "spare", "one", func() []*corev1.Pod { return []*corev1.Pod{pod} })
	spec := func() model.PodSpec { return s.virtuals.owners["spare"].specs["spare-0"] }
	cpu := func() (n int64) {
		for _, a := range spec().Requests {
			if a.Name == "cpu" {
				n += a.Value
			}
		}
		return n
	}
	if got := cpu(); got != 0 {
		t.Errorf("the pod requests %d millicores, want none", got)
	}
	ranges := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "r", UID: "r"},
		Spec: corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{
			Type: corev1.LimitTypeContainer, DefaultRequest: corev1.ResourceList{"cpu": resource.MustParse("500m")}}}}}
	s.Saw(ranges)
	if got := cpu(); got != 500 {
		t.Errorf("with a LimitRange the pod requests %d millicores, want 500", got)
	}
	s.Saw(&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: class, UID: "c"}, Handler: "h",
		Overhead: &nodev1.Overhead{PodFixed: corev1.ResourceList{"cpu": resource.MustParse("250m")}}})
	if got := cpu(); got != 750 {
		t.Errorf("with a RuntimeClass the pod requests %d millicores, want 750", got)
	}
	before := spec()
	s.Saw(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "of-a", UID: "ns", Labels: map[string]string{"team": "a"}}})
	if cmp.Equal(before, spec()) {
		t.Error("the pod does not follow the labels of namespaces")
	}
	lost(s, ranges)
	if got := cpu(); got != 250 {
		t.Errorf("without the LimitRange the pod requests %d millicores, want 250", got)
	}
	if pod.Spec.Containers[0].Resources.Requests != nil || pod.Spec.Overhead != nil {
		t.Error("the pod of the owner was changed")
	}
}
