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
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	karpv1alpha1 "github.com/karpenter-go/karpenter/api/karpenter/v1alpha1"
)

// TestGateOff verifies that objects of a feature gate are findings exactly while nothing reads them.
func TestGateOff(t *testing.T) {
	overlay := karpv1alpha1.NodeOverlay{ObjectMeta: metav1.ObjectMeta{Name: "discount"}}
	buffer := autoscalingv1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "room"}}
	other := *buffer.DeepCopy()
	other.Status.Conditions = []metav1.Condition{{Type: autoscalingv1beta1.ConditionReadyForProvisioning}}
	before := *other.DeepCopy()
	before.Status.ReadyReplicas = new(int32)
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
		"this controller had the buffer before": {[]Controller{none}, before,
			[]string{"GateOff capacitybuffers.autoscaling.x-k8s.io", "GateOff nodeoverlays.karpenter.sh"}},
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

// TestQueueNotSet verifies that the annotation for rebalance recommendations is a finding while nothing receives them.
func TestQueueNotSet(t *testing.T) {
	asks := karpv1.NodePool{ObjectMeta: metav1.ObjectMeta{Name: "spot", Annotations: map[string]string{karpv1.AnnotationRebalance: "replace"}}}
	queue := func(name string) corev1.EnvVar { return corev1.EnvVar{Name: "INTERRUPTION_QUEUE", Value: name} }
	elsewhere := corev1.EnvVar{Name: "INTERRUPTION_QUEUE", ValueFrom: &corev1.EnvVarSource{}}
	for name, c := range map[string]struct {
		controllers []Controller
		pool        karpv1.NodePool
		want        int
	}{
		"no controller is known": {nil, asks, 0},
		"no queue":               {[]Controller{*controllerOf(deployment("a", "aws", 1))}, asks, 1},
		"an empty queue":         {[]Controller{*controllerOf(deployment("a", "aws", 1, queue("")))}, asks, 1},
		"a queue":                {[]Controller{*controllerOf(deployment("a", "aws", 1, queue("q")))}, asks, 0},
		"a queue from elsewhere": {[]Controller{*controllerOf(deployment("a", "aws", 1, elsewhere))}, asks, 0},
		"nothing asks":           {[]Controller{*controllerOf(deployment("a", "aws", 1))}, karpv1.NodePool{}, 0},
		"kwok":                   {[]Controller{*controllerOf(deployment("a", "kwok", 1))}, asks, 0},
	} {
		f := &Facts{Now: now, NoElection: true, Controllers: c.controllers, Pools: []karpv1.NodePool{c.pool}}
		got := slices.DeleteFunc(codes(f), func(code string) bool { return !strings.HasPrefix(code, QueueNotSet) })
		if len(got) != c.want {
			t.Errorf("%s: findings %q, want %d", name, got, c.want)
		}
	}
}

// TestBufferNotReady verifies that a buffer is a finding while its room cannot exist, unless another autoscaler processes
// it, or nothing does.
func TestBufferNotReady(t *testing.T) {
	on := *controllerOf(deployment("a", "kwok", 1, corev1.EnvVar{Name: "FEATURE_GATES", Value: "CapacityBuffer=true"}))
	off := *controllerOf(deployment("a", "kwok", 1))
	condition := func(kind, status, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: metav1.ConditionStatus(status), Reason: reason, Message: "because"}
	}
	infeasible := condition(autoscalingv1beta1.ConditionProvisioning, "False", autoscalingv1beta1.ReasonInfeasible)
	for name, c := range map[string]struct {
		controller Controller
		ready      *int32
		condition  metav1.Condition
		want       []string
	}{
		"infeasible":            {on, new(int32), infeasible, []string{"BufferNotReady capacitybuffer/web/spare"}},
		"of another autoscaler": {on, nil, infeasible, nil},
		"with the gate off":     {off, new(int32), infeasible, nil},
		"of an unknown shape": {on, new(int32), condition(autoscalingv1beta1.ConditionReadyForProvisioning, "False", "PodTemplateNotFound"),
			[]string{"BufferNotReady capacitybuffer/web/spare"}},
		"waiting for a new node": {on, new(int32), condition(autoscalingv1beta1.ConditionProvisioning, "False", "RequiresNewCapacity"), nil},
	} {
		buffer := autoscalingv1beta1.CapacityBuffer{ObjectMeta: metav1.ObjectMeta{Namespace: "web", Name: "spare"},
			Status: autoscalingv1beta1.CapacityBufferStatus{ReadyReplicas: c.ready, Conditions: []metav1.Condition{c.condition}}}
		f := &Facts{Now: now, NoElection: true, Controllers: []Controller{c.controller}, Buffers: []autoscalingv1beta1.CapacityBuffer{buffer}}
		got := slices.DeleteFunc(codes(f), func(code string) bool { return !strings.HasPrefix(code, BufferNotReady) })
		if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: findings (-want +got):\n%s", name, diff)
		}
	}
}
