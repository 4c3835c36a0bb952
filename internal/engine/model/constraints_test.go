package model_test

import (
	"testing"
	"time"

	"github.com/karpenter-go/karpenter/internal/engine/model"
)

// TestHostPorts checks that only an empty address and 0.0.0.0 mean every address (kube-scheduler, HostPortInfo).
func TestHostPorts(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want bool
	}{
		{"", "10.0.0.1", true},
		{"0.0.0.0", "10.0.0.1", true},
		{"0.0.0.0", "", true},
		{"", "::", true},
		{"::", "::", true},
		{"::", "10.0.0.1", false},
		{"10.0.0.2", "10.0.0.1", false},
	} {
		a, b := model.HostPort{IP: test.a, Protocol: "TCP", Port: 80}, model.HostPort{IP: test.b, Protocol: "TCP", Port: 80}
		if a.Conflicts(b) != test.want || b.Conflicts(a) != test.want {
			t.Errorf("%q and %q: conflict %t and %t, want %t", test.a, test.b, a.Conflicts(b), b.Conflicts(a), test.want)
		}
	}
}

// TestSharedVolumeWithoutDriver checks that no resource counts volumes without a driver.
func TestSharedVolumeWithoutDriver(t *testing.T) {
	b := model.NewBuilder()
	b.UpsertPod(model.PodSpec{UID: "a", Name: "a", Volumes: []model.Volume{{Claim: "default/by-hand", Shared: true}}})
	for _, name := range b.Snapshot(time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)).Resources {
		if model.IsVolumeResource(name) {
			t.Errorf("resource %q counts volumes without a driver", name)
		}
	}
}
