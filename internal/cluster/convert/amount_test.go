package convert

import (
	"math"
	"testing"

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
