package node

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

func TestDiagnose(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	policies := []cloud.RepairPolicy{
		{ConditionType: "Ready", ConditionStatus: "False", Toleration: 10 * time.Minute},
		{ConditionType: "Ready", ConditionStatus: "Unknown", Toleration: 10 * time.Minute},
		{ConditionType: "KernelDeadlock", ConditionStatus: "True", Toleration: time.Minute},
	}
	condition := func(kind, status string, after time.Duration) corev1.NodeCondition {
		return corev1.NodeCondition{Type: corev1.NodeConditionType(kind), Status: corev1.ConditionStatus(status),
			LastTransitionTime: metav1.NewTime(began.Add(after))}
	}
	for _, test := range []struct {
		name       string
		conditions []corev1.NodeCondition
		want       corev1.NodeConditionType
		due        time.Duration
	}{
		{"never reported", nil, "", 0},
		{"well", []corev1.NodeCondition{condition("Ready", "True", 0), condition("KernelDeadlock", "False", 0)}, "", 0},
		{"a condition that no policy names", []corev1.NodeCondition{condition("DiskPressure", "True", 0)}, "", 0},
		{"not ready", []corev1.NodeCondition{condition("Ready", "False", time.Hour)}, "Ready", 70 * time.Minute},
		{"silent", []corev1.NodeCondition{condition("Ready", "Unknown", 0)}, "Ready", 10 * time.Minute},
		{"what is due first counts, not what began first",
			[]corev1.NodeCondition{condition("Ready", "False", 0), condition("KernelDeadlock", "True", 5*time.Minute)},
			"KernelDeadlock", 6 * time.Minute},
		{"what began first if it is due first",
			[]corev1.NodeCondition{condition("Ready", "False", 0), condition("KernelDeadlock", "True", 15*time.Minute)}, "Ready", 10 * time.Minute},
	} {
		node := &corev1.Node{Status: corev1.NodeStatus{Conditions: test.conditions}}
		got := unhealthy(node, policies)
		switch {
		case got.condition != test.want:
			t.Errorf("%s: got.condition is %v, want %v", test.name, got.condition, test.want)
		case got.found() && got.toleratedUntil.Sub(began) != test.due:
			t.Errorf("%s: got.found() && got.toleratedUntil.Sub(began) != test.due, %+v, due after %s", test.name, got, test.due)
		}
	}
	if problem := unhealthy(&corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{condition("Ready", "False", 0)}}},
		nil); problem.found() {
		t.Errorf("without policies: %+v", problem)
	}
}

// TestMostIll verifies the limit of a fifth, rounded up: one of one node may be unhealthy, two of six.
func TestMostIll(t *testing.T) {
	for nodes, want := range map[int]int{0: 0, 1: 1, 5: 1, 6: 2, 10: 2, 11: 3, 100: 20, 101: 21} {
		if got := karpv1.DefaultRepairRules().MaxUnhealthy(nodes); got != want {
			t.Errorf("of %d nodes %d, want %d", nodes, got, want)
		}
	}
}

func TestSnake(t *testing.T) {
	for word, want := range map[string]string{
		"Ready": "ready", "KernelDeadlock": "kernel_deadlock", "GPUReady": "gpu_ready", "NetworkUnavailableV2": "network_unavailable_v2",
		"already_snake": "already_snake", "X_Y": "x_y", "": "",
	} {
		if got := snake(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
