package convert

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func TestUnits(t *testing.T) {
	tests := []struct {
		name     corev1.ResourceName
		text     string
		up, down int64
	}{
		{"cpu", "1", 1000, 1000},
		{"cpu", "1500u", 2, 1},
		{"cpu", "0", 0, 0},
		{"cpu", "10Ei", math.MaxInt64, math.MaxInt64},
		{"memory", "1Gi", 1 << 30, 1 << 30},
		{"memory", "1500m", 2, 1},
		{"memory", "100Ei", math.MaxInt64, math.MaxInt64},
		{"memory", "9223372036854775807", math.MaxInt64, math.MaxInt64},
		{"nvidia.com/gpu", "8", 8, 8},
		{"karpenter-go.github.io/usd-per-hour", "12500m", 12_500_000_000, 12_500_000_000},
		{"karpenter-go.github.io/usd-per-hour", "100Ei", math.MaxInt64, math.MaxInt64},
		{"cpu", "1e100000000", math.MaxInt64, math.MaxInt64},
		{"memory", "-1e100000000", math.MinInt64, math.MinInt64},
	}
	for _, test := range tests {
		t.Run(string(test.name)+" "+test.text, func(t *testing.T) {
			q := resource.MustParse(test.text)
			if got := units(test.name, q, up); got != test.up {
				t.Errorf("rounded up: %d, want %d", got, test.up)
			}
			if got := units(test.name, q, down); got != test.down {
				t.Errorf("rounded down: %d, want %d", got, test.down)
			}
		})
	}
}

// TestPlainPodsAreLikeOthers checks that the fast path for pods with one container gives the same result as the
// general rule.
func TestPlainPodsAreLikeOthers(t *testing.T) {
	for _, requests := range []string{
		"{}", "{cpu: 250m}", "{cpu: 250.5m, memory: 1Gi}", "{cpu: 0, memory: '0'}", "{pods: 5, cpu: 1}", "{nvidia.com/gpu: 1, ephemeral-storage: 1500m}",
		"{cpu: 1n}", "{memory: 9223372036854775807}", "{cpu: 1e100000000}", "{memory: 1e-100000000}",
	} {
		pod := decode[corev1.Pod](t, "spec: {containers: [{name: a, resources: {requests: "+requests+"}}]}")
		got, refused := podRequests(pod)
		pod.Spec.InitContainers = []corev1.Container{{Name: "nothing"}}
		want, why := podRequests(pod)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-general rule +fast path):\n%s", requests, diff)
		}
		if diff := cmp.Diff(why, refused); diff != "" {
			t.Errorf("%s refused (-general rule +fast path):\n%s", requests, diff)
		}
	}
}
