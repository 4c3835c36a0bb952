package doctor

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	autoscalingv1beta1 "github.com/karpenter-go/karpenter/api/autoscaling/v1beta1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// TestGateOff verifies that objects of a feature gate are findings exactly while nothing reads them.
func TestGateOff(t *testing.T) {
	overlay := karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "discount"}}
	buffer := autoscalingv1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "room"}}
	other := *buffer.DeepCopy()
	other.Status.Conditions = []metav1.Condition{{Type: autoscalingv1beta1.ConditionReadyForProvisioning}}
	gates := func(value string) corev1.EnvVar { return corev1.EnvVar{Name: "FEATURE_GATES", Value: value} }
	none := *controllerOf(deployment("a", "kwok", 1))
	for name, c := range map[string]struct {
		controllers []Controller
		buffer      autoscalingv1beta1.CapacityBuffer
		want        []string
	}{
		"no controller is known": {nil, buffer, nil},
		"both off": {[]Controller{none}, buffer,
			[]string{"GateOff capacitybuffers.autoscaling.x-k8s.io", "GateOff nodeoverlays.karpenter.sh"}},
		"another autoscaler has the buffer": {[]Controller{none}, other, []string{"GateOff nodeoverlays.karpenter.sh"}},
		"one on": {[]Controller{*controllerOf(deployment("a", "kwok", 1, gates("NodeOverlay=true,CapacityBuffer=false")))}, buffer,
			[]string{"GateOff capacitybuffers.autoscaling.x-k8s.io"}},
		"on in one of two controllers": {[]Controller{none, *controllerOf(deployment("b", "aws", 1, gates("NodeOverlay=true,CapacityBuffer=true")))},
			buffer, nil},
	} {
		f := &Facts{Now: now, NoElection: true, Controllers: c.controllers, Overlays: []karpv1alpha1.NodeOverlay{overlay},
			Buffers: []autoscalingv1beta1.CapacityBuffer{c.buffer}}
		got := slices.DeleteFunc(codes(f), func(code string) bool { return !strings.HasPrefix(code, GateOff) })
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
}
